import { faultsOf, type Mutant } from './mutant.ts';

const PURE = ['test/sync/promises.test.ts'];
const PLAN = ['test/sync/batch.test.ts'];
const STORE = ['test/store/promises.pg.test.ts', 'test/store/promises-kept.pg.test.ts'];

/** Faults that break a promised price age, keep one at the expense of others, or report it wrongly. */
export const PROMISES: readonly Mutant[] = [
  ...faultsOf(
    'src/store/sellers/promises.ts',
    PURE,
    ['promise: kept only where it is younger', 'seconds <= maxAge', 'seconds < maxAge'],
    ['promise: a late one counts once', 'Math.floor(seconds / maxAge)', '1'],
    ['promise: whatever hindered it, it is broken', "excused ? 'hindered' : 'broken'", "'broken'"],
  ),
  ...faultsOf(
    'src/store/sellers/promises.ts',
    STORE,
    ['promise: a refusal is no hindrance', 'raised_at >= since or ', ''],
    ['promise: a pause is no hindrance', 'set_at >= since', 'false'],
    ['promise: a deferral is no hindrance', 'd.deferrals > 0 or ', ''],
    [
      'promise: it counts from before it was made',
      'greatest(s.priced_at, least(w.promised_since, now()))',
      's.priced_at',
    ],
  ),
  ...faultsOf(
    'src/sync/reprice/packing.ts',
    PLAN,
    ['plan: promises take turns with others', 'const BESIDE_PROMISED = 0.05', 'const BESIDE_PROMISED = 0.5'],
    [
      'plan: promises leave nothing',
      'Math.min(wanted, slots - Math.min(Math.floor(missing), others, slots))',
      'Math.min(wanted, slots)',
    ],
    ['plan: others beside promises have slots that there are not', 'others, slots))', 'others))'],
    [
      'plan: lanes beside promises take no turns',
      'share(lanes, slots - promised, turns)',
      'share(lanes, slots - promised, { ...turns, ...FIRST_SIDE })',
    ],
  ),
  ...faultsOf(
    'src/sync/live/policy.ts',
    PURE,
    [
      'live plan: promises are planned by worth',
      'maxIntervalMinutes: promisedWait(group, most) }',
      'maxIntervalMinutes: most }',
    ],
    ['live plan: promises take nothing of a round', 'refreshes - taken', 'refreshes'],
  ),
  ...faultsOf(
    'src/store/ledger/claim.ts',
    [...STORE, 'test/store/promises-model.pg.test.ts'],
    [
      'claim: promises with time to spare come first',
      'order by d.promised_by limit',
      'order by d.promised_by desc limit',
    ],
  ),
  ...faultsOf(
    'src/store/ledger/due.ts',
    [...STORE, 'test/store/promises-model.pg.test.ts'],
    ['claim: promises before their time', 'd.promised_at <= now() and ', ''],
  ),
  ...faultsOf(
    'drizzle/0068_moment_of_a_query.sql',
    ['test/store/promises.pg.test.ts'],
    ['promise: a deferral speaks against nothing', "WHEN d.deferrals > 0 THEN 'deferred by the partner'", ''],
    [
      'promise: an error speaks against nothing',
      'd.failures > 0 OR d.largest_call IS NOT NULL THEN',
      'd.largest_call IS NOT NULL THEN',
    ],
    [
      'promise: a call that failed as a whole speaks against nothing',
      'd.failures > 0 OR d.largest_call IS NOT NULL THEN',
      'd.failures > 0 THEN',
    ],
    [
      'promise: a doubt speaks against nothing',
      "WHEN d.doubt IS NOT NULL THEN 'waits for a second answer'",
      '',
    ],
  ),
  ...faultsOf(
    'drizzle/0055_one_division.sql',
    ['test/store/promises.pg.test.ts'],
    [
      'promise: calls that fail are no hindrance',
      "WHEN EXISTS (SELECT FROM catalog_internal.tasks t WHERE catalog_internal.calls_are_paused(t)) THEN 'calls are failing'",
      '',
    ],
  ),
  ...faultsOf(
    'drizzle/0068_moment_of_a_query.sql',
    ['test/store/scope-steering.pg.test.ts'],
    [
      'promise: what is out of scope is said to be promised',
      'w.feasible AND d.outside_due_at IS NULL AND c.hindered',
      'w.feasible AND c.hindered',
    ],
    [
      'promise: that it is out of scope is not said',
      "WHEN d.outside_due_at IS NOT NULL THEN 'out of scope'",
      '',
    ],
  ),
  ...faultsOf('src/store/answer/writes.ts', STORE, [
    'answer: a promise is over with it',
    'w.max_age is not null and w.feasible and',
    'false and',
  ]),
];
