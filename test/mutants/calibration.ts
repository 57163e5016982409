import { faultsOf, type Mutant } from './mutant.ts';

const CALIBRATION = ['test/store/calibration.test.ts', 'test/store/calibration.pg.test.ts'];

/** Faults in testing each probability of a price, and in showing how far off it was. */
export const CALIBRATION_FAULTS: readonly Mutant[] = [
  ...faultsOf(
    'src/store/answer/calibration-evidence.ts',
    CALIBRATION,
    [
      'calibration: every refresh finds its SKU unmoved',
      'right: Number(!moved), minutes',
      'right: 1, minutes',
    ],
    ['calibration: every size is found unmoved', 'right: held - sizesMoved', 'right: held'],
    [
      'calibration: those drawn at random are no cohort of their own',
      "random ? [cohort, 'random'] : [cohort]",
      '[cohort]',
    ],
    [
      'calibration: a refresh at random counts for the prior twice',
      'leverage: of === cohort ? leverage : 0',
      'leverage',
    ],
    ['calibration: what is never reported is not seen', "finding === 'overdue'", 'false'],
    [
      'calibration: snapshot-priced SKUs teach the prior of rates',
      "new Set(['live', 'unlisted'])",
      "new Set(['live', 'snapshot', 'unlisted'])",
    ],
    [
      'calibration: a size that vanished was never held',
      'Number(oldPrice !== null) - Number(newPrice !== null)',
      '-Number(newPrice !== null)',
    ],
    ['calibration: a new size has moved', 'of.moved += Number(oldPrice !== null)', 'of.moved += 1'],
  ),
  ...faultsOf(
    'src/store/trust/calibration.ts',
    CALIBRATION,
    ['calibration: a probability is in the bin below its own', 'probability >= from', 'probability > from'],
    ['calibration: of many sizes one is claimed', 'claimed: probability * looks', 'claimed: probability'],
    ['calibration: of many sizes one has waited', 'minutes: minutes * looks', 'minutes'],
    [
      'calibration: all claims of an hour are the last ones',
      'claimed = h.claimed + excluded.claimed',
      'claimed = excluded.claimed',
    ],
    ['calibration: the noise of a claim is all of it', 'claimed * (1 - claimed / looks)', 'claimed'],
    [
      'calibration: what a clock that was ahead has counted stays',
      " or hour > clock_timestamp() + interval '1 hour'",
      '',
    ],
    [
      'calibration: too much here makes up for too little there',
      'abs(right_share - claimed_share)',
      '(right_share - claimed_share)',
    ],
    [
      'calibration: counts that could not be written are lost',
      'for (const each of counts) this.#add(each);',
      '',
    ],
    ['calibration: counts are written with each answer', 'now - this.#writtenAt < this.#everyMs || ', ''],
  ),
  ...faultsOf('src/store/answer/apply.ts', CALIBRATION, [
    'calibration: no refresh tests anything',
    'calibration.note(tests);',
    '',
  ]),
  ...faultsOf(
    'src/store/live/rate-prior.ts',
    ['test/store/rate-prior.test.ts', 'test/store/calibration.pg.test.ts'],
    [
      'prior of rates: one lesson changes it beyond a factor of three',
      'Math.max(-MAX_STEP, Math.min(MAX_STEP, gain * surprise))',
      'gain * surprise',
    ],
    [
      'prior of rates: is as uncertain after a lesson as before',
      '(1 - gain * leverage) * variance + DRIFT',
      'variance + DRIFT',
    ],
    [
      'prior of rates: what many refreshes have found weighs as little as what few have',
      'variance * leverage ** 2',
      'variance * leverage',
    ],
    [
      'prior of rates: replaces what a SKU has shown itself',
      'rate.beta + prior * (minutes - RATES_START_AS.beta)',
      '(rate.beta * minutes) / RATES_START_AS.beta',
    ],
  ),
  ...faultsOf(
    'src/store/trust/beliefs.ts',
    ['test/store/report-waits.pg.test.ts', 'test/sync/live-backlog.pg.test.ts'],
    [
      'first hour: moves that wait are those that other refreshes find',
      'least(1, (4 + told.reported_moved * waits.each) / (200 + catalog.skus * spans.told))',
      '0',
    ],
    [
      'first hour: what moved in minutes has moved in an hour',
      'least(covered.span, catalog.known_minutes) as covered',
      'covered.span as covered',
    ],
    ['first hour: what was known before a night is known', "interval '8 hours'", "interval '800 hours'"],
    ['first hour: a new market is known within minutes', "now() - interval '2 hours'", 'now()'],
  ),
  ...faultsOf(
    'src/sync/live/plan-live.ts',
    ['test/sync/live-backlog.pg.test.ts'],
    [
      'first hour: beliefs of a new market are those of before for ten minutes',
      ' || (await areBeliefsYoung(sql))',
      '',
    ],
  ),
  ...faultsOf(
    'src/store/catalog/report-waits.ts',
    ['test/store/report-waits.pg.test.ts'],
    ['first hour: moves wait for no poll', '(now() - greatest(y.token_at, c.at))', "interval '0'"],
    [
      'first hour: in an outage of the delta moves wait for its reports',
      ' and now() - c.at <= make_interval(secs => 2 * g.delta_interval + 60)',
      '',
    ],
  ),
];
