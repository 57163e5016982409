import type { Clock } from '../../lib/clock.ts';
import type { Sql } from '../connection/db.ts';
import type { PriorLesson } from '../live/rate-prior.ts';
import type { SecondLooks } from './late-prices.ts';

/*
 * How often beliefs about prices were right. Each answered refresh tests the probability believed just before it
 * (catalog.sku_trust, p_right). The results are counted here, by cohort and by where the probability was.
 */

/** One test: of `looks` things that were each believed with `probability`, `right` were so. */
export interface RefreshTest {
  readonly cohort: string;
  readonly probability: number;
  readonly looks: number;
  readonly right: number;
  /** Since the previous refresh. */
  readonly minutes: number;
  /** The refresh proved that a move had never been reported (store/catalog/audit.ts). */
  readonly missed?: boolean;
  /** How much the probability depends on the prior of rates (rate-prior.ts); 0 if it does not. */
  readonly leverage?: number;
  /** How many answers with nothing new about a report can now be judged, and how many of them were late. */
  readonly judged?: number;
  readonly late?: number;
}

/**
 * Lower ends of the bins: tenths, the last one in three, because sellers act on it. catalog.calibration names them.
 */
export const BINS = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99] as const;

/** Returns the bin of a probability, from 0. */
export function binOf(probability: number): number {
  return Math.max(
    0,
    BINS.findLastIndex((from) => probability >= from),
  );
}

export interface CalibrationBin {
  readonly cohort: string;
  readonly bin: number;
  looks: number;
  right: number;
  claimed: number;
  minutes: number;
  missed: number;
  leverage: number;
  judged: number;
  late: number;
}

const SUMS = ['looks', 'right', 'claimed', 'minutes', 'missed', 'leverage', 'judged', 'late'] as const;

/** The time between two writes of the counts: each replaces some dozens of rows, and costs a round trip. */
const WRITTEN_EVERY_MS = 10_000;

/** What one process has counted and not written yet, and loses when it dies: at most ten seconds' worth. */
export class CalibrationCounts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #everyMs: number;
  #counts = new Map<string, CalibrationBin>();
  #writtenAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>, everyMs: number = WRITTEN_EVERY_MS) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#writtenAt = clock.monotonic();
  }

  note(tests: readonly RefreshTest[]): void {
    for (const test of tests) {
      const { cohort, probability, looks, right, minutes } = test;
      const { missed = false, leverage = 0, judged = 0, late = 0 } = test;
      this.#add({
        cohort,
        bin: binOf(probability),
        looks,
        right,
        claimed: probability * looks,
        minutes: minutes * looks,
        missed: Number(missed),
        leverage,
        judged,
        late,
      });
    }
  }

  /** Takes back what could not be written. */
  giveBack(counts: readonly CalibrationBin[]): void {
    for (const each of counts) this.#add(each);
  }

  #add({ cohort, bin, ...numbers }: CalibrationBin): void {
    const key = `${cohort} ${bin}`;
    const counts = this.#counts.get(key);
    if (counts === undefined) this.#counts.set(key, { cohort, bin, ...numbers });
    else for (const each of SUMS) counts[each] += numbers[each];
  }

  /** Returns all counts if they are due to be written; otherwise nothing. */
  take(): readonly CalibrationBin[] {
    const now = this.#clock.monotonic();
    if (now - this.#writtenAt < this.#everyMs || this.#counts.size === 0) return [];
    this.#writtenAt = now;
    const taken = [...this.#counts.values()];
    this.#counts = new Map();
    return taken;
  }
}

/**
 * Adds counts to those of the present hour, in order of their keys, as every process does, and to what the prior of
 * rates and the worth of second looks are learned from.
 */
export async function storeCalibration(sql: Sql, counts: readonly CalibrationBin[]): Promise<void> {
  if (counts.length === 0) return;
  const shown = counts.filter(({ looks }) => looks > 0);
  const numbers = (of: (counts: CalibrationBin) => number) => shown.map(of);
  const { surprise, leverage, noise } = priorLessonOf(counts);
  const again = secondLooksOf(counts);
  await sql`
    with lesson as (
      update catalog_internal.beliefs set live_prior_surprise = live_prior_surprise + ${surprise},
        live_prior_leverage = live_prior_leverage + ${leverage}, live_prior_noise = live_prior_noise + ${noise},
        again_new_looks = again_new_looks + ${again.looks}, again_new_found = again_new_found + ${again.found}
      where ${leverage > 0 || again.looks > 0} and id in (select id from catalog_internal.beliefs for update skip locked)
    )
    insert into catalog_internal.calibration_hours as h (hour, cohort, bin, looks, "right", claimed, minutes, missed)
    select date_trunc('hour', clock_timestamp()), n.*
    from unnest(${shown.map(({ cohort }) => cohort)}::text[], ${numbers(({ bin }) => bin)}::smallint[],
      ${numbers(({ looks }) => looks)}::bigint[],
      ${numbers(({ right }) => right)}::bigint[], ${numbers(({ claimed }) => claimed)}::float8[],
      ${numbers(({ minutes }) => minutes)}::float8[],
      ${numbers(({ missed }) => missed)}::bigint[]) as n(cohort, bin, looks, "right", claimed, minutes, missed)
    order by n.cohort, n.bin
    on conflict (hour, cohort, bin) do update set looks = h.looks + excluded.looks, "right" = h."right" + excluded."right",
      claimed = h.claimed + excluded.claimed, minutes = h.minutes + excluded.minutes, missed = h.missed + excluded.missed`;
}

/** Computes what counts say about the prior of rates. Pure. */
export function priorLessonOf(counts: readonly CalibrationBin[]): PriorLesson {
  const lesson = { surprise: 0, leverage: 0, noise: 0 };
  for (const { looks, right, claimed, leverage } of counts) {
    if (leverage === 0) continue;
    lesson.surprise += right - claimed;
    lesson.leverage += leverage;
    lesson.noise += claimed * (1 - claimed / looks);
  }
  return lesson;
}

/** Counts the second looks that are judged, and those which show that the answer before was late. Pure. */
export function secondLooksOf(counts: readonly CalibrationBin[]): Pick<SecondLooks, 'looks' | 'found'> {
  const sum = (of: (each: CalibrationBin) => number) => counts.reduce((n, each) => n + of(each), 0);
  return { looks: sum(({ judged }) => judged), found: sum(({ late }) => late) };
}

/** Deletes counts that are older than what the view catalog.calibration shows, and those of a clock that was ahead. */
export async function pruneCalibration(sql: Sql): Promise<void> {
  await sql`
    delete from catalog_internal.calibration_hours
    where hour < clock_timestamp() - interval '7 days 1 hour' or hour > clock_timestamp() + interval '1 hour'`;
}

/**
 * A cohort's tests of the last seven days, compared with what was claimed (view catalog.calibration, over all
 * tenths).
 */
export interface CohortCalibration {
  readonly cohort: string;
  readonly looks: number;
  readonly rightShare: number;
  readonly claimedShare: number;
  /** Mean distance between the two over the tenths, weighted by `looks`: the expected calibration error, in [0, 1]. */
  readonly error: number;
}

/** Reads how well p_right has held in seven days, by cohort, in order of their names. */
export async function readCalibration(sql: Sql): Promise<CohortCalibration[]> {
  return await sql<CohortCalibration[]>`
    select cohort, sum(looks)::float8 as looks, (sum(looks * right_share) / sum(looks))::float8 as "rightShare",
      (sum(looks * claimed_share) / sum(looks))::float8 as "claimedShare",
      (sum(looks * abs(right_share - claimed_share)) / sum(looks))::float8 as error
    from catalog.calibration group by cohort order by cohort`;
}
