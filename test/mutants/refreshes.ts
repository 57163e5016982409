import { faultsOf, type Mutant } from './mutant.ts';

const STORE = ['test/store/refresh-now.pg.test.ts', 'test/store/refresh-asked.pg.test.ts'];
const BOUNDS = ['test/store/refresh-bounds.pg.test.ts'];

/**
 * Faults that report an answer that never came, wait for one that did, delay others, or let callers take too much.
 */
export const REFRESHES: readonly Mutant[] = [
  ...faultsOf('drizzle/0035_looked_up_by_key.sql', STORE, [
    'refresh: another weight takes its rank',
    "d.lane = 1 AND d.rank < 'Infinity'\n    AND d.rank",
    'd.lane = 1 AND d.rank',
  ]),
  ...faultsOf(
    'drizzle/0027_refresh_now.sql',
    STORE,
    [
      'refresh: an answer to the generation of before is one',
      'd.asked_generation <= w.after;',
      'd.asked_generation < w.after;',
    ],
    [
      'refresh: what is asked for at the moment is tried again and again',
      'WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku AND d.claim IS NOT NULL)\n  );',
      ');',
    ],
    [
      'refresh: whoever locks a SKU is waited for',
      'AND d.claim IS NULL ORDER BY d.sku FOR UPDATE SKIP LOCKED',
      'AND d.claim IS NULL ORDER BY d.sku FOR UPDATE',
    ],
    ['refresh: no rank', "SET rank = 'Infinity', held_until", 'SET held_until'],
    [
      'refresh_now: what is put off for long is waited for',
      'waits := NOT hopeless AND remaining > 0;',
      'waits := jsonb_array_length(skus) > 0 AND remaining > 0;',
    ],
    ['refresh_now: no COMMIT in a round', '  LOOP\n    COMMIT AND CHAIN;\n', '  COMMIT;\n  LOOP\n'],
    [
      'refresh_now: a place is not renewed',
      "p SET until = clock_timestamp() + interval '10 seconds' WHERE",
      'p SET until = until WHERE',
    ],
    ['refresh_now: a place is kept', '  IF NOT waits THEN\n    UPDATE', '  IF false THEN\n    UPDATE'],
    ['refresh_now: pg_catalog is not named', 'catalog.refresh_wait(held) AS w', 'refresh_wait(held) AS w'],
  ),
  ...faultsOf(
    'drizzle/0064_calls_of_sellers.sql',
    ['test/store/refresh-sessions.pg.test.ts', 'test/store/sellers-plans.pg.test.ts'],
    [
      'refresh_now: waits by the session’s isolation level',
      '  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\n',
      '',
    ],
    [
      'refresh_now: a row that is gone is an answer',
      'LEFT JOIN catalog_internal.due d ON d.sku = t.sku\n  WHERE d.asked_generation',
      'JOIN catalog_internal.due d ON d.sku = t.sku\n  WHERE d.asked_generation',
    ],
    [
      'refresh_now: a row that is made anew is never answered',
      'CASE WHEN d.sku IS NULL THEN -1 ELSE w.after END',
      'w.after',
    ],
    [
      'refresh_now: a SKU that is gone is waited for',
      'NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = t.sku)\n      ELSE',
      'false\n      ELSE',
    ],
    [
      'hint: transactions that are serializable fail for each other',
      "IF current_setting('transaction_isolation') = 'serializable' THEN\n    IF pg_relation_size",
      'IF false THEN\n    IF pg_relation_size',
    ],
    [
      'refresh: transactions that are serializable fail for each other',
      'CASE WHEN apart THEN false ELSE',
      'CASE WHEN false THEN false ELSE',
    ],
    [
      'sync_status: a table of one row is joined as hundreds',
      '(SELECT y AS one FROM catalog_internal.sync y LIMIT 1) s',
      '(SELECT y AS one FROM catalog_internal.sync y) s',
    ],
  ),
  ...faultsOf('drizzle/0045_one_rule_once.sql', STORE, [
    'refresh: an endless pause of an operator ends',
    "calls_are_paused(t) AND t.next_at < 'infinity';",
    'calls_are_paused(t);',
  ]),
  ...faultsOf('drizzle/0045_one_rule_once.sql', BOUNDS, [
    'nothing leaves: a daemon lives as long as anybody has its number',
    'catalog_internal.session_lives(i.pid, i.backend_start)',
    'EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = i.pid)',
  ]),
  ...faultsOf(
    'drizzle/0027_refresh_now.sql',
    BOUNDS,
    ['bounds: half of the requests', 's.rate_window / 4) INTO most', 's.rate_window / 2) INTO most'],
    ['bounds: a clock that was ahead', 'paid > moment + minute OR ', ''],
    [
      'bounds: not paid',
      "PERFORM setval('catalog_internal.refreshes_paid', floor(paid)::bigint),\n        setval",
      'PERFORM setval',
    ],
    [
      'bounds: what is next costs',
      'FILTER (WHERE NOT k.requested AND NOT k.next), 0)',
      'FILTER (WHERE NOT k.requested), 0)',
    ],
    ['bounds: while calls fail it costs as ever', 'calls := greatest(calls, 1);', 'calls := calls;'],
    ['refresh_now: refused only when it commits', 'IF SQLERRM = refused THEN', 'IF SQLERRM <> refused THEN'],
    [
      'nothing leaves: not while paused',
      "IF FOUND THEN\n    RETURN format('requests",
      "IF false THEN\n    RETURN format('requests",
    ],
  ),
  ...faultsOf(
    'drizzle/0027_refresh_now.sql',
    ['test/store/forgotten-skus.pg.test.ts'],
    [
      'forgotten: requests stay',
      '  DELETE FROM catalog_internal.refresh_requests WHERE refresh_requests.sku = ANY (deleted);\n',
      '',
    ],
  ),
  ...faultsOf('src/store/answer/writes.ts', STORE, [
    'apply: the generation of an answer is not noted',
    '      asked_generation = a.generation, deferrals = 0',
    '      deferrals = 0',
  ]),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    ['test/e2e/refresh-now.e2e.test.ts'],
    [
      'reprice: nobody marks what sellers ask for',
      '  if (refreshesCame) await takeRefreshes(ctx.sql);\n',
      '',
    ],
  ),
];
