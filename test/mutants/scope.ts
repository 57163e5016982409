import { faultsOf, type Mutant } from './mutant.ts';

const STORE = [
  'test/store/scope.pg.test.ts',
  'test/store/scope-moves.pg.test.ts',
  'test/store/scope-metadata.pg.test.ts',
];
const JUDGE = ['test/status/scope.test.ts'];
const MIGRATION = 'drizzle/0029_scope.sql';
const METADATA_MIGRATION = 'drizzle/0073_metadata_that_never_came.sql';

/**
 * Faults in the scope: a request for a SKU outside of it, a SKU in it that is forgotten, or a wrong report about
 * it.
 */
export const SCOPE: readonly Mutant[] = [
  ...faultsOf(
    'drizzle/0057_reported_during_a_call.sql',
    ['test/store/scope-model.pg.test.ts'],
    [
      'mark_due: what is reported during its call and then watched is watched alone',
      'AND (d.claim IS NOT NULL OR d.asked_claim IS NOT NULL)',
      'AND false',
    ],
    [
      'mark_due: what was reported during its call and is then watched is watched alone, once it was answered',
      '(d.claim IS NOT NULL OR d.asked_claim IS NOT NULL)',
      'd.claim IS NOT NULL',
    ],
    [
      'mark_due: what was reported and is in the lane of errors is due for the next mark alone',
      "(d.reason = 'changed' OR o.lane <= excluded.lane)",
      'o.lane <= excluded.lane',
    ],
    [
      'mark_due: what is asked for at once is not known to be reported',
      "WHEN excluded.reason = 'changed' OR excluded.reason = 'new' AND o.is_owed AND o.lane = 1 THEN 'changed'",
      "WHEN excluded.reason = 'changed' AND NOT (o.is_owed AND o.lane = 1) THEN 'changed'",
    ],
  ),
  ...faultsOf(
    MIGRATION,
    STORE,
    [
      'scope: a rule of the SKU itself is one of many',
      "WHEN bool_or(m.include) FILTER (WHERE m.kind = 'sku') THEN 'in'",
      "WHEN false THEN 'in'",
    ],
    [
      'scope: who includes comes before who excludes',
      "WHEN bool_or(NOT m.include) THEN 'out'",
      "WHEN bool_and(NOT m.include) THEN 'out'",
    ],
    [
      'scope: metadata is asked for without a rule',
      'WHEN g.by_metadata AND NOT has_metadata',
      'WHEN NOT has_metadata',
    ],
    [
      'scope: brands are compared letter by letter',
      'lower(btrim(value, E\' \\t\\r\\n\') COLLATE "C")',
      'btrim(value, E\' \\t\\r\\n\') COLLATE "C"',
    ],
    [
      'scope: a mark brings what is outside in',
      "due_at = CASE WHEN d.outside_due_at IS NULL OR d.reason = 'scope' THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,\n      outside",
      'due_at = least(d.due_at, excluded.due_at),\n      outside',
    ],
    [
      'scope: a mark of what is outside is lost',
      'WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END',
      'WHEN d.outside_due_at IS NOT NULL THEN d.outside_due_at END',
    ],
    [
      'scope: new SKUs are in scope',
      'is_scoped AND (generation = 1 OR outside_due_at IS NOT NULL)',
      'is_scoped AND outside_due_at IS NOT NULL',
    ],
    [
      'scope: an UPDATE is not recorded',
      'WHERE before.include IS DISTINCT FROM after.include',
      'WHERE before.include <> after.include',
    ],
    [
      'scope: a TRUNCATE is not recorded',
      '    INSERT INTO catalog_internal.scope_changes DEFAULT VALUES;',
      '    NULL;',
    ],
    [
      'scope: new rules do not wait for who sorts',
      '  LOCK TABLE catalog_internal.lock_scope IN EXCLUSIVE MODE;\nEND',
      'END',
    ],
    ['scope: what comes back is due when it was', 'ELSE greatest(n.kept, now()) END,', 'ELSE n.kept END,'],
    [
      'scope: it is fresh outside',
      'AND NOT b.past_target AND d.outside_due_at IS NULL AS fresh',
      'AND NOT b.past_target AS fresh',
    ],
    [
      'scope: it is trusted outside',
      "WHEN d.outside_due_at IS NOT NULL THEN 'out_of_scope'",
      "WHEN false THEN 'out_of_scope'",
    ],
  ),
  ...faultsOf(
    METADATA_MIGRATION,
    ['test/store/scope-metadata.pg.test.ts', 'test/store/scope-model.pg.test.ts'],
    [
      'scope: metadata that an answer did not have is never asked for again',
      "WHEN state <> 'pending' AND kept = 'infinity' THEN 'out'",
      "WHEN state <> 'pending' THEN 'out'",
    ],
    [
      'scope: what was reported since waits for its metadata',
      "l.reason IN ('new', 'changed', 'watched', 'refresh') AND k.kept <= now()",
      'false',
    ],
    [
      'scope: a record without metadata is asked for in each call',
      'greatest(d.held_until, n.asks_at) ELSE d.held_until END',
      'd.held_until ELSE d.held_until END',
    ],
    [
      'scope: a report does not end the wait for metadata',
      "OR d.reason = 'scope' AND d.due_at > now())",
      ')',
    ],
    [
      'scope: what has waited for its metadata waits on in scope',
      "WHEN n.was = 'asked' AND d.due_at > now() THEN",
      'WHEN false THEN',
    ],
  ),
  ...faultsOf(
    METADATA_MIGRATION,
    ['test/store/unknown-skus.pg.test.ts'],
    [
      'scope: a rejected line that named it does not keep what was watched',
      "d.reason = 'scope' AND d.generation = 1",
      "d.reason = 'scope'",
    ],
    [
      'scope: who names it to refresh does not keep what was watched',
      "AND d.rank < 'Infinity'\n    AND d.claim IS NULL",
      'AND d.claim IS NULL',
    ],
  ),
  ...faultsOf(
    'src/store/sellers/watchlist.ts',
    ['test/store/unknown-skus.pg.test.ts'],
    [
      'scope: what was never asked for its metadata is forgotten',
      "d.reason = 'watched'",
      "d.reason in ('watched', 'scope')",
    ],
  ),
  ...faultsOf(
    'src/store/trust/beliefs.ts',
    ['test/store/move-rate.pg.test.ts'],
    [
      'beliefs: SKUs out of scope dilute how often one moves',
      'and d.outside_due_at is not null)\n    )',
      'and false)\n    )',
    ],
  ),
  ...faultsOf(
    'src/store/sellers/hints.ts',
    ['test/sync/manifest-hints.pg.test.ts'],
    [
      'hints: those at SKUs out of scope wait for a refresh',
      's.asked_at is not null and l.outside_due_at is null',
      's.asked_at is not null',
    ],
    [
      'hints: those at SKUs that have left the scope keep their places',
      's.asked_at >= q.hinted_at or d.outside_due_at is not null',
      's.asked_at >= q.hinted_at',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/sync-state.ts',
    ['test/store/spare-slots.pg.test.ts'],
    [
      'once: what a spare slot has brought as deferred is not due',
      'or deferrals > 0 and outside_due_at is null',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/sync-state.ts',
    ['test/store/refresh-asked.pg.test.ts'],
    [
      'once: what sellers have asked for is not due before it is marked',
      "union all select 'refresh', 1 where",
      "union all select 'refresh', 1 where false and",
    ],
  ),
  ...faultsOf('src/store/answer/apply.ts', STORE, [
    'scope: an answer sorts nothing',
    'scoped ? sortByScope(',
    '!scoped ? sortByScope(',
  ]),
  ...faultsOf('src/store/sellers/scope.ts', STORE, [
    'scope: what a claim has outside is asked for',
    'claim.skus.filter(({ sku }) => !outside.has(sku))',
    'claim.skus.filter(() => true)',
  ]),
  ...faultsOf('src/store/catalog/baseline-merge.ts', STORE, [
    'scope: SKUs of a manifest are in scope',
    'byScope === 1 ?',
    'byScope === 2 ?',
  ]),
  ...faultsOf('src/store/status/counts.ts', STORE, [
    'scope: SKUs outside are counted',
    '${inside} group by 1, 2, 3, 4',
    'group by 1, 2, 3, 4',
  ]),
  ...faultsOf(
    'src/status/catalog.ts',
    JUDGE,
    ['scope: no rules are no reason', 'if (rules === 0) return', 'if (rules < 0) return'],
    ['scope: nobody is told who disagrees', 'otherwise > 0 &&', 'otherwise > 9 &&'],
  ),
];
