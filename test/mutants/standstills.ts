import { faultsOf, type Mutant } from './mutant.ts';

const PURE = ['test/sync/catalog-standing.test.ts'];
const CHECKS = ['test/sync/catalog-check.pg.test.ts'];
const APART = ['test/store/unreported.pg.test.ts'];
const DEFERRED = ['test/status/live-deferred.test.ts'];

/** Faults that remove a report about a partner that answers while nothing progresses. */
export const STANDSTILLS: readonly Mutant[] = [
  ...faultsOf(
    'src/sync/catalog-check-decision.ts',
    PURE,
    [
      'standstill: a delta that was distrusted is behind before it could lead on',
      "isAfter(deltaCheckedAt, newerNamedAt) ? 'behind' : doubt",
      "newerNamedAt !== null ? 'behind' : doubt",
    ],
    [
      'standstill: the manifest route is asked as rarely as ever',
      "doubt === 'distrusted' ? Math.max",
      'false ? Math.max',
    ],
    [
      'standstill: the manifest route is asked whatever its cache keeps',
      'Math.max(SOONEST_CHECK_MS, deltaMs)',
      'deltaMs',
    ],
  ),
  ...faultsOf('src/sync/catalog-check.ts', CHECKS, [
    'standstill: a distrusted delta is not asked once more',
    "(doubt === 'distrusted' ||",
    '(false ||',
  ]),
  ...faultsOf(
    'src/store/catalog/standing.ts',
    CHECKS,
    [
      'standstill: a delta that was behind once stands still',
      "when ${doubt === 'behind'} and delta_doubt = 'distrusted' then",
      "when ${doubt === 'behind'} then",
    ],
    [
      'standstill: nobody knows that a delta stands still',
      'then coalesce(delta_still_since, now())',
      'then delta_still_since',
    ],
    ['standstill: snapshots of before the token are newer', ' and at > token_at)', ')'],
  ),
  ...faultsOf('src/store/catalog/delta.ts', CHECKS, [
    'standstill: a delta that moves stands still for ever',
    'delta_still_since = case when snapshot_id = ${toSnapshot} then delta_still_since end',
    'delta_still_since = delta_still_since',
  ]),
  ...faultsOf('src/store/catalog/delta.ts', APART, [
    'standstill: what it has shown is a burden for days',
    'if (end.toSnapshot !== end.since) await setApartUnreported(tx);',
    '',
  ]),
  ...faultsOf('src/store/catalog/baseline-merge.ts', APART, [
    'standstill: what it has shown is a burden after the manifest',
    'await run(SET_APART_UNREPORTED, [false]);',
    '',
  ]),
  ...faultsOf(
    'src/store/catalog/unreported.ts',
    APART,
    [
      'standstill: what shows that a catalog stands still is set apart by a manifest',
      "delta_doubt = 'distrusted' and $1::boolean",
      "delta_doubt = 'distrusted' and ($1::boolean or true)",
    ],
    [
      'standstill: a suspicion of some minutes sets apart what a delta leaves out',
      "delta_doubt = 'suspected' and behind_since < now() - late.after",
      "delta_doubt = 'suspected'",
    ],
    [
      'standstill: an outage of the route is evidence of the delta',
      ' or read_at < now() - late.after then',
      ' then',
    ],
    ['standstill: sizes are set apart as SKUs', "when cohort like '% sizes'", 'when false'],
  ),
  ...faultsOf('src/store/trust/beliefs.ts', APART, [
    'standstill: how often prices move is not learned from it',
    "cohort in ('snapshot', 'reported', 'unreported')",
    "cohort in ('snapshot', 'reported')",
  ]),
  ...faultsOf(
    'src/status/health.ts',
    DEFERRED,
    ['standstill: nobody hears that nothing is computed live', '      liveDeferred(facts),\n', ''],
    ['standstill: nothing is computed live while no daemon asks', '/ 1000, daemonSeconds);', '/ 1000);'],
  ),
  ...faultsOf(
    'src/store/live/live.ts',
    DEFERRED,
    [
      'standstill: a computation in a block counts for nothing',
      '[computedAt, ceiling.blockedAt]',
      '[ceiling.blockedAt]',
    ],
    ['standstill: an outage of the live source is told twice', '|| outageSince !== null', ''],
  ),
  ...faultsOf(
    'src/store/status/counts.ts',
    ['test/sim/standstill.pg.test.ts'],
    [
      'standstill: deferred live SKUs are not looked for',
      'where deferrals > 0 and live and held',
      'where deferrals > 99 and live and held',
    ],
  ),
];
