import { faultsOf, type Mutant } from './mutant.ts';

/** Faults that count rejections of one batch for another, or restart a count that should survive restarts. */
export const REFUSED_BATCHES: readonly Mutant[] = [
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/batches.pg.test.ts'],
    [
      'followers: parts of a batch inherit its refusals',
      "    this.#anew();\n    tell({ event: 'smaller'",
      "    this.#kept.place = { ...this.#kept.place, sendingTo: null };\n    tell({ event: 'smaller'",
    ],
    [
      'followers: what passes no filter leaves its refusals to what comes behind it in the page',
      'if (!isGone && !exceeds(',
      'if (!exceeds(',
    ],
    ['followers: each restart begins the day of a wrong clock', 'begun - clockFailingForMs', 'begun'],
  ),
  ...faultsOf(
    'src/store/history/follower-name.ts',
    ['test/follow/batches.pg.test.ts'],
    [
      'followers: what is cut anew inherits refusals where the process ends',
      'failures = $6, refusals = $7,',
      'failures = greatest(failures, $4), refusals = greatest(refusals, $5),',
    ],
    [
      'followers: what passes no filter leaves its refusals to the next batch',
      'failures = 0, refusals = 0, failing_since = null, clock_failing_since = null ${',
      "refusals = ${said === null ? 'refusals' : 0} ${",
    ],
    [
      'followers: a receiver that was down has no patience left for its clock',
      'case when $9 then clock_timestamp() end',
      'clock_timestamp()',
    ],
  ),
  ...faultsOf(
    'drizzle/0083_clock_failing.sql',
    ['test/store/clock-model.pg.test.ts'],
    [
      'clock: a follower has failed since a time to come',
      '    failing_since = catalog_internal.happened(failing_since, moment, shift),\n    clock',
      '    clock',
    ],
    [
      'clock: a follower has failed for a wrong clock since a time to come',
      'clock_failing_since = catalog_internal.happened(clock_failing_since, moment, shift),\n',
      '\n',
    ],
  ),
  ...faultsOf(
    'src/follow/follower.ts',
    ['test/follow/standby.pg.test.ts'],
    [
      'followers: a standby is asked once a minute',
      'return { heard, pollMs: UNHEARD_POLL_MS };',
      'return { heard, pollMs: POLL_MS };',
    ],
    [
      'followers: who has begun on a standby never hears of changes',
      'if (!isListening) {\n        const { rows }',
      'if (!isListening) {\n        isListening = true;\n        const { rows }',
    ],
  ),
  ...faultsOf(
    'src/cli/follow/following.ts',
    ['test/follow/standby.pg.test.ts'],
    [
      'followers: a standby that is behind is back each time',
      'if (known.place !== null) await checkReached(client, known.place);',
      '',
    ],
  ),
];
