import { faultsOf, type Mutant } from './mutant.ts';

const WATCH = ['test/store/watchlist.pg.test.ts', 'test/store/watchlist-changes.pg.test.ts'];

const BY_KEY = 'drizzle/0035_looked_up_by_key.sql';

/** Faults in what sellers and their services call and write. */
export const NEIGHBOURS: readonly Mutant[] = [
  ...faultsOf(
    'drizzle/0016_strange_databases.sql',
    WATCH,
    [
      'watchlist: a SKU that is taken off again is marked',
      "CASE WHEN is_new AND weight IS NOT NULL THEN 'mark'",
      "CASE WHEN is_new THEN 'mark'",
    ],
    ['watchlist: a new weight asks for a refresh', 'n.added OR o.weight IS NULL AS is_new', 'true AS is_new'],
    [
      'watchlist: a SKU that was watched already is not marked anew',
      'n.added OR o.weight IS NULL AS is_new',
      'o.weight IS NULL AS is_new',
    ],
    [
      'watchlist: an emptied list keeps what it had',
      'WHERE everything OR EXISTS (SELECT FROM taken WHERE skus IS NULL)',
      'WHERE everything',
    ],
    [
      'watchlist: replicated rows do not count',
      'UNION ALL SELECT sku, false FROM catalog.watchlist WHERE everything',
      'UNION ALL SELECT sku, false FROM catalog.watchlist WHERE false',
    ],
    ['watchlist: one more than there is room for is watched', 'place <= room.skus', 'place <= room.skus + 1'],
    [
      'watchlist: what leaves makes no room',
      '+ (SELECT count(*) FROM present WHERE weight IS NULL) AS',
      'AS',
    ],
    [
      'watchlist: the lightest come first',
      'ORDER BY weight DESC, sku) AS place',
      'ORDER BY weight, sku) AS place',
    ],
    [
      'watchlist: a mark that is not told yet is lost with a new weight',
      "pending = CASE WHEN o.pending = 'mark' AND excluded.weight IS NOT NULL THEN 'mark' ELSE excluded.pending END",
      'pending = excluded.pending',
    ],
  ),
  ...faultsOf(
    'drizzle/0014_watchlist_is_read.sql',
    WATCH,
    [
      'watchlist: an unknown SKU is not mirrored',
      'SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT',
      'SELECT sku, false FROM unnest(marked) AS sku WHERE false ORDER BY sku ON CONFLICT',
    ],
    [
      'watchlist: what is watched no longer is kept',
      '  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;\n',
      '',
    ],
    ['watchlist: one piece is all that is told', 'RETURN cardinality(told) = most', 'RETURN false'],
  ),
  ...faultsOf(BY_KEY, WATCH, [
    'watchlist: a weight counts with the next mark only',
    'WHERE d.sku = ANY (told) AND d.lane = 1 AND',
    'WHERE d.sku = ANY (told) AND d.lane = 2 AND',
  ]),
  ...faultsOf(
    BY_KEY,
    ['test/store/old-statistics.pg.test.ts'],
    [
      'hints: each is compared with each',
      '(SELECT id FROM catalog_internal.hints ORDER BY id DESC LIMIT 1) - (SELECT id FROM catalog_internal.hints ORDER BY id LIMIT 1)',
      '(SELECT max(id) - min(id) FROM catalog_internal.hints)',
    ],
  ),
  ...faultsOf(
    'drizzle/0043_take_request_without_lane.sql',
    ['test/pace/take-request.pg.test.ts'],
    [
      'take_request: without a lane fails once it is counted',
      "coalesce(take_request.lane, 'other')",
      'take_request.lane',
    ],
  ),
  ...faultsOf(
    'drizzle/0013_take_request_holds_nothing.sql',
    ['test/pace/others.pg.test.ts', 'test/pace/take-request.pg.test.ts'],
    ['take_request: keeps the lock', "    RAISE SQLSTATE 'CM000';\n", ''],
    [
      'take_request: waits for the lock without end',
      " SET lock_timeout = '2s' AS $$\nDECLARE\n  s ",
      ' AS $$\nDECLARE\n  s ',
    ],
    [
      'take_request: is let through where the transaction is old',
      "IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') AND",
      'IF false AND',
    ],
    [
      'take_request: services that are serializable fail for each other',
      "IF wait = 0 AND current_setting('transaction_isolation') <> 'serializable' THEN",
      'IF wait = 0 THEN',
    ],
    ['others_sent: counts each part once', 'THEN counted + 1 ELSE', 'THEN counted ELSE'],
    [
      'others_sent: a part goes on from what it had a window ago',
      'ELSE number * part << 20 | 1 END',
      'ELSE counted + 1 END',
    ],
    ['others_sent: forgets the oldest part', 'began + present.part > now - ms', 'began > now - ms'],
  ),
];
