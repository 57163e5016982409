import { faultsOf, type Mutant } from './mutant.ts';

const FOREIGN_KEYS = ['test/store/foreign-keys.pg.test.ts'];
const NOT_STORED = ['test/sync/not-stored.pg.test.ts'];

/** Faults in handling sellers' foreign keys, triggers, locks and logins. */
export const SELLERS: readonly Mutant[] = [
  ...faultsOf(
    'drizzle/0084_seller_joins.sql',
    ['test/store/seller-joins.pg.test.ts'],
    [
      'seller joins: a view with as many relations as Postgres orders',
      'trust_now((SELECT catalog_internal.moment())) t\n',
      'trust_now((SELECT catalog_internal.moment())) t\nCROSS JOIN catalog_internal.price_beliefs() x\nCROSS JOIN catalog_internal.believable_until() y\n',
    ],
    [
      'seller joins: a condition on the SKU reaches the prices only',
      'SELECT s.sku, s.state, s.price_source',
      'SELECT s.sku || substr(s.sku, 1, 0) AS sku, s.state, s.price_source',
    ],
  ),
  ...faultsOf(
    'drizzle/0084_seller_joins.sql',
    ['test/store/clock.pg.test.ts', 'test/store/trust.pg.test.ts'],
    [
      'trust_now: what was written by a wrong clock is believed',
      'believable_until := catalog_internal.believable_until();',
      "believable_until := 'infinity';",
    ],
    [
      'trust_now: beliefs of moves take the place of each other',
      't.reported_moves, t.waiting_moves, t.missed_rate',
      't.waiting_moves, t.reported_moves, t.missed_rate',
    ],
  ),
  ...faultsOf(
    'src/store/connection/own-session.ts',
    ['test/store/instance.pg.test.ts', 'test/follow/names.pg.test.ts'],
    ['logins: when a session began is asked as another role', '    ${AS_LOGIN};\n', '    select;\n'],
  ),
  ...faultsOf(
    'src/store/connection/own-session.ts',
    ['test/store/answer-limit.pg.test.ts'],
    ['logins: a session is ended as another role', '    await tx.unsafe(AS_LOGIN);\n', ''],
  ),
  ...faultsOf(
    'src/store/connection/db.ts',
    ['test/store/answer-limit.pg.test.ts'],
    [
      'logins: what is not shown of a session is no work',
      "when coalesce(state, 'disabled') = 'disabled'",
      'when false',
    ],
    [
      'logins: a session that is not shown is at work for ever',
      "case when not exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'virtualxid') then false end",
      'null',
    ],
  ),
  ...faultsOf(
    'src/store/status/holders.ts',
    ['test/store/lock-holders.pg.test.ts'],
    [
      'logins: those that act as the role wait unseen',
      "(not r.rolsuper and pg_has_role(r.oid, current_user, 'MEMBER'))",
      'false',
    ],
  ),
  ...faultsOf('src/store/connection/sql-errors.ts', NOT_STORED, [
    'triggers: one that fails for what it names blocks all',
    '/^(?:08|25|40|53|57|58)|',
    '/^(?:08|25|40|42|53|57|58)|',
  ]),
  ...faultsOf('src/store/answer/writes.ts', NOT_STORED, [
    'triggers: an error of a SKU is stored with all states',
    '  if (answered.length === 0) return;\n',
    '',
  ]),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    NOT_STORED,
    ['watchlist: one SKU that is not taken ends all calls', '.catch(\n      rejectionOrThrow,\n    );', ';'],
    ['locks: one SKU keeps its companions', '{ largestCall: Math.ceil(skus / 2), holdMs }', '{ holdMs }'],
    [
      'locks: a SKU that is alone is asked for at once again',
      'const holdMs = skus > 1 ? 0 : ctx.settings.intervals.errorMs;',
      'const holdMs = 0;',
    ],
  ),
  ...faultsOf('src/store/answer/lock.ts', NOT_STORED, [
    'foreign keys: an answer waits for them',
    'order by sku for no key update`',
    'order by sku for update`',
  ]),
  ...['catalog/delta', 'sellers/refresh', 'catalog/baseline-sql'].flatMap((file) =>
    faultsOf(`src/store/${file}.ts`, FOREIGN_KEYS, [
      `foreign keys: ${file} waits for them`,
      'for no key update',
      'for update',
    ]),
  ),
  ...faultsOf(
    'src/store/history/changes.ts',
    FOREIGN_KEYS,
    [
      'foreign keys: one that is checked at the end is not seen',
      '  await tx`set constraints all immediate`;\n',
      '',
    ],
    [
      'foreign keys: a price that must stay is one to act on',
      '  await attempt(tx, (inner) => emptyPrices(inner, first));\n',
      '',
    ],
    [
      'foreign keys: who keeps prices is not named',
      "  await quarantine(tx, 'store', await keptOf(tx, skus));\n",
      '  await keptOf(tx, skus);\n',
    ],
    ['foreign keys: an open transaction fails a delta', 'isLockNotAvailable(error)\n', 'error === null\n'],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/e2e/long-watchlist.e2e.test.ts'],
    ['watchlist: no setting limits it', 'most: settings.catalog.watchedSkus', 'most: 100_000'],
  ),
  ...faultsOf(
    'src/sync/reprice/reprice.ts',
    ['test/e2e/long-watchlist.e2e.test.ts'],
    [
      'watchlist: what is added goes beyond the limit',
      'most: ctx.settings.catalog.watchedSkus',
      'most: 100_000',
    ],
  ),
  ...faultsOf(
    'src/sync/maintenance.ts',
    ['test/sync/maintenance.pg.test.ts'],
    ['maintenance: nobody hears of a step that fails', 'return steps.failure(nextInMs) ?? {', 'return {'],
  ),
  ...faultsOf(
    'src/sync/steps.ts',
    ['test/sync/maintenance.pg.test.ts'],
    [
      'maintenance: a step that fails ends the run',
      'if (!isAnswer(error) || storeFailure(error) !== null) throw',
      'throw',
    ],
    [
      'maintenance: a full disk is a step of it',
      'if (!isAnswer(error) || storeFailure(error) !== null) throw error;',
      'if (!isAnswer(error)) throw error;',
    ],
  ),
  ...faultsOf(
    'src/status/failing.ts',
    ['test/status/health.test.ts'],
    ['health: maintenance fails in silence', "new Set(['maintenance', 'metadata',", "new Set(['metadata',"],
  ),
  ...faultsOf(
    'src/client/read-batch.ts',
    ['test/client/restored.pg.test.ts'],
    ['clients: what a copy has shown is not asked after', 'seen === undefined\n', 'true\n'],
    [
      'clients: what a copy has shown is forgotten',
      'afterSku: last.sku, seen: last.position }',
      'afterSku: last.sku }',
    ],
    [
      'clients: what a copy has shown is forgotten at its end',
      "{ at: 'changes', ...readingOf(place) }",
      "{ at: 'changes', position }",
    ],
  ),
  ...faultsOf(
    'src/client/read-batch.ts',
    ['test/client/follow.pg.test.ts'],
    ['clients: a time has as many digits as the session writes', '* 1000)::text', '* 1000)::float8::text'],
  ),
  ...faultsOf(
    'src/client/position.ts',
    ['test/client/restored.pg.test.ts', 'test/client/change.test.ts'],
    ['clients: what a copy has shown is asked after for ever', 'BigInt(seen) <= BigInt(position)', 'false'],
  ),
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/restored.pg.test.ts'],
    [
      'followers: what a first copy has shown is forgotten',
      'if (page.shownTo !== undefined) this.#shown(page.shownTo);',
      '',
    ],
    ['followers: what was delivered as the session was lost is forgotten', 'this.#shown(batch.to);', ''],
  ),
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/restored.pg.test.ts'],
    [
      'followers: the next process does not know what a copy has shown',
      'await held.delivered(newest, newest',
      'await held.delivered(delivered.position, newest',
    ],
  ),
  ...faultsOf(
    'src/store/setup/account.ts',
    ['test/store/account.pg.test.ts'],
    ['account: an adopted one is deaf to members that moved in the other', "  'muted_members',\n", ''],
  ),
  ...faultsOf(
    'src/follow/output.ts',
    ['test/follow/output.test.ts'],
    [
      'followers: a half line of a killed process takes the next one with it',
      '!isBegun && file.isCutOff()',
      'false',
    ],
    [
      'followers: a half line is forgotten where the next cut is not taken',
      'taken === 0 ? bytes[0] === NEWLINE : bytes',
      'taken !== 0 && bytes',
    ],
    ['followers: a line without its end is not found', "last.toString() !== '\\n'", 'false'],
  ),
  ...faultsOf(
    'src/store/history/changes.ts',
    ['test/store/changes-model.pg.test.ts'],
    ['feed: a column comes after the object and makes it text', "field = 'product', field`", 'field`'],
  ),
  ...faultsOf(
    'src/store/answer/effects.ts',
    ['test/store/answer-effects.test.ts'],
    [
      'feed: a member that a column tells of is muted',
      "if (keys.get(sku)?.has(keyOf({ part: 'column', path })) !== true)",
      'if (keys.size > 0)',
    ],
  ),
  ...faultsOf(
    'drizzle/0078_seller_views.sql',
    ['test/store/documented-queries.pg.test.ts'],
    [
      'views: prices do not say that they are implausible',
      '       t.doubt\n',
      '       NULL::text AS doubt\n',
    ],
  ),
  ...['docs/trust.md', 'docs/steering.md'].flatMap((page) =>
    faultsOf(
      page,
      ['test/store/documented-queries.pg.test.ts'],
      [
        `${page}: a bound lets implausible prices pass`,
        'doubt IS NULL AND price IS NOT NULL AND p_right >= 0.8',
        'p_right >= 0.8',
      ],
    ),
  ),
  ...faultsOf(
    'docs/queries.md',
    ['test/store/documented-queries.pg.test.ts'],
    [
      'queries: an offer is compared with a size that means something else',
      ' AND c.size_type IS NOT DISTINCT FROM o.size_type',
      '',
    ],
    ['queries: SKUs of no model are one', 'WHERE brand IS NOT NULL AND model IS NOT NULL ORDER', 'ORDER'],
    [
      "queries: a seller's table is read from end to end",
      'my_offers (sku text COLLATE "C", size text COLLATE "C",',
      'my_offers (sku text, size text,',
    ],
  ),
  // None for examples/follower.py: copies of the repository lack psycopg2, without which its test is skipped.
  ...faultsOf(
    'src/store/history/feed.ts',
    ['test/follow/moved-on.pg.test.ts'],
    [
      'followers: who was moved on in a restored database is not told',
      'kept.position !== newest',
      'kept.position < newest',
    ],
  ),
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/moved-on.pg.test.ts'],
    [
      'followers: who was moved on in a restored database moves the name back',
      ' && kept.position <= newest',
      '',
    ],
  ),
];
