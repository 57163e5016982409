import { describe, expect, test } from 'vitest';
import { Heap } from '../../bench/freshness/heap.ts';
import { DUE_LANES, type DueClass, PROMISED } from '../../src/store/ledger/due.ts';
import { countPromises, judgePromise } from '../../src/store/sellers/promises.ts';
import {
  promisedWait,
  type RateGroup,
  roundMinutes,
  roundOf,
  solveThreshold,
} from '../../src/sync/live/policy.ts';
import { FIRST_PACKING, planBatch } from '../../src/sync/reprice/packing.ts';
import { runs } from '../support/soak.ts';

const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const PART = 0.8;
const CALLS_A_MINUTE = 118;
const [CALL_SKUS, LIVE_BUDGET] = [20, 5];

/** Same as catalog_internal.promised_interval (test/store/promises.pg.test.ts). */
const intervalMs = (maxAge: number) => maxAge - Math.max(8 * SECOND, Math.min(45 * SECOND, maxAge / 5));

interface Promised {
  readonly number: number;
  readonly live: boolean;
  readonly maxAge: number;
  pricedAt: number;
  comesAt: number;
  /** Since when it can be kept. Null: it cannot be kept now. */
  since: number | null;
}

/** Returns numbers in [0, 1), the same ones for each seed. */
function drawn(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** Decides which promises fit at a rate, like catalog_internal.promises_that_fit: those of the greatest age first. */
function weigh(all: readonly Promised[], callsAMinute: number, now: number): void {
  for (const live of [true, false]) {
    let left = PART * callsAMinute * (live ? LIVE_BUDGET : CALL_SKUS - LIVE_BUDGET);
    for (const one of all.filter((each) => each.live === live).toSorted((a, b) => b.maxAge - a.maxAge)) {
      left -= MINUTE / intervalMs(one.maxAge);
      if (left < -1e-6) one.since = null;
      else one.since ??= now;
    }
  }
}

const deadline = ({ pricedAt, since, maxAge }: Promised) => Math.max(pricedAt, since ?? 0) + maxAge;

/** Makes promises that use up the part `filled` of their capacity, of all ages from 30 seconds to an hour. */
function promises(filled: number, random: () => number): Promised[] {
  const all: Promised[] = [];
  for (const live of [true, false]) {
    let left = filled * PART * CALLS_A_MINUTE * (live ? LIVE_BUDGET : CALL_SKUS - LIVE_BUDGET);
    while (left > 0) {
      const maxAge = 30 * SECOND * 120 ** random();
      const demand = MINUTE / intervalMs(maxAge);
      if (demand > left) break;
      left -= demand;
      const pricedAt = -random() * maxAge;
      all.push({
        number: all.length,
        live,
        maxAge,
        pricedAt,
        comesAt: pricedAt + intervalMs(maxAge),
        since: 0,
      });
    }
  }
  return all;
}

/** Nothing is sent in this time. After a back-off the rate starts at half. */
interface Quiet {
  readonly from: number;
  readonly until: number;
  readonly halves?: boolean;
}

/**
 * Simulates calls of one daemon at the account's pace, planned by planBatch, while a million SKUs wait for their
 * first price and each lane can fill a call. Answers take one to three seconds.
 */
function simulate(
  all: readonly Promised[],
  hours: number,
  quiet: readonly Quiet[],
  random: () => number,
  weighs = true,
) {
  const lanes = DUE_LANES.flatMap((lane): DueClass[] => [
    { lane, live: true, count: CALL_SKUS },
    { lane, live: false, count: CALL_SKUS },
  ]);
  /** Refreshes that are still to come, by time, and those that are due. */
  const later = new Heap();
  const come = new Set<Promised>();
  for (const { comesAt, number } of all) later.push(comesAt, number);
  const answers: { readonly at: number; readonly asked: Promised; readonly askedAt: number }[] = [];
  const cases = { kept: 0, late: 0, hindered: 0, others: 0 };
  for (let [now, turns] = [0, FIRST_PACKING]; now < hours * HOUR;) {
    const spell = quiet.find(({ from, until }) => now >= from && now < until);
    if (spell !== undefined) {
      now = spell.until;
      continue;
    }
    // After a refusal the rate grows from half by five a minute each minute.
    const since = quiet.find(
      ({ until, halves }) => halves === true && now >= until && now < until + 12 * MINUTE,
    );
    const rate =
      since === undefined ? CALLS_A_MINUTE : CALLS_A_MINUTE / 2 + (5 * (now - since.until)) / MINUTE;
    const [pace, before] = [Math.min(CALLS_A_MINUTE, rate), now];
    now += MINUTE / pace;
    if (weighs && Math.floor(now / MINUTE) > Math.floor(before / MINUTE)) weigh(all, pace, now);
    for (let at = answers.length - 1; at >= 0; at -= 1) {
      const answer = answers[at];
      if (answer === undefined || answer.at > now) continue;
      answers.splice(at, 1);
      const { asked, askedAt } = answer;
      const { outcome } = judgePromise('', {
        maxAge: asked.maxAge,
        seconds: answer.at - Math.max(asked.pricedAt, asked.since ?? 0),
        // A restart excuses nothing.
        excused:
          asked.since === null ||
          quiet.some(
            ({ from, until, halves }) =>
              halves === true && answer.at > from && Math.max(asked.pricedAt, asked.since ?? 0) < until,
          ),
      });
      cases[outcome === 'broken' ? 'late' : outcome] += 1;
      Object.assign(asked, { pricedAt: askedAt, comesAt: askedAt + intervalMs(asked.maxAge) });
      later.push(asked.comesAt, asked.number);
    }
    while (later.first <= now) come.add(all[later.pop()] as Promised);
    const due = [...come].filter((one) => one.since !== null).toSorted((a, b) => deadline(a) - deadline(b));
    const [live, others] = [due.filter((one) => one.live), due.filter((one) => !one.live)];
    const promised = [
      { lane: PROMISED, live: true, count: live.length },
      { lane: PROMISED, live: false, count: Math.min(CALL_SKUS, others.length) },
    ].filter(({ count }) => count > 0) as DueClass[];
    const batch = planBatch([...promised, ...lanes], NOT_EARLY, {
      callSkus: CALL_SKUS,
      liveBudget: LIVE_BUDGET,
      turns,
      spareSeconds: 0,
    });
    turns = batch?.turns ?? turns;
    const tookMs = SECOND * (1 + 2 * random());
    for (const { lane, live: isLive, count } of batch?.quotas ?? []) {
      if (lane !== PROMISED) {
        cases.others += count;
        continue;
      }
      for (const asked of (isLive ? live : others).slice(0, count)) {
        come.delete(asked);
        answers.push({ at: now + tookMs, asked, askedAt: now });
      }
    }
  }
  return cases;
}

describe('in simulated hours', () => {
  test('promises at full capacity are kept beside a fill of a million SKUs, across restarts and throttles', () => {
    const random = drawn(27);
    const hours = runs(3, 6);
    const all = promises(1, random);
    const restarts = [1, 3, 5].map((hour): Quiet => ({ from: hour * HOUR, until: hour * HOUR + 4 * SECOND }));
    const throttles = [2, 4].map((hour): Quiet => ({
      from: hour * HOUR,
      until: hour * HOUR + MINUTE,
      halves: true,
    }));
    const { kept, late, hindered, others } = simulate(all, hours, [...restarts, ...throttles], random);
    // The part of 118 calls a minute of twenty SKUs that is left to the others.
    const share = others / (hours * 60 * CALLS_A_MINUTE * CALL_SKUS);
    console.log(
      `${all.length} promises: ${kept} kept, ${late} late, ${hindered} hindered; others have ${(100 * share).toFixed(1)} % of the slots`,
    );
    expect(kept).toBeGreaterThan(1500 * hours);
    expect(kept / (kept + late)).toBeGreaterThanOrEqual(0.999);
    expect(share).toBeGreaterThanOrEqual(0.15);
  });

  test('promises beyond their capacity would all be late in turn if those that do not fit were not excluded', () => {
    const random = drawn(28);
    const { kept, late } = simulate(promises(1.5, random), 0.25, [], random, false);
    expect(late / (kept + late)).toBeGreaterThan(0.3);
  });
});

describe('the outcome of a promise', () => {
  test.each([
    [60, { cases: 1, kept: 1, outcome: 'kept' }],
    [60.1, { cases: 1, kept: 0, outcome: 'broken' }],
    [179, { cases: 2, kept: 0, outcome: 'broken' }],
    [180, { cases: 3, kept: 0, outcome: 'broken' }],
  ])('of a minute after %s seconds is %j', (seconds, expected) => {
    expect(judgePromise('A', { maxAge: 60, seconds, excused: false })).toEqual({ sku: 'A', ...expected });
  });

  test('is hindered if something else may have made it late, and kept if it was not late', () => {
    const judged = [59, 61, 200].map((seconds) => judgePromise('A', { maxAge: 60, seconds, excused: true }));
    expect(countPromises(judged)).toEqual({ kept: 1, hindered: 4, broken: 0 });
  });
});

describe('the plan of live SKUs', () => {
  const groups: RateGroup[] = [
    { count: 1000, lambda: 1 / 120, weight: 1 },
    { count: 100, lambda: 1 / 120, weight: 1, promised: 1 },
  ];

  test('serves promises first, leaves others the rest, and never exceeds the refreshes', () => {
    expect(roundOf(groups, 200)).toBeCloseTo(10, 5);
    expect(roundOf(groups.slice(0, 1), 200)).toBe(roundMinutes(1000, 200));
    expect(roundOf([{ count: 10, lambda: 1, weight: 1, promised: 500 }], 10)).toBe(1);
    const most = 30;
    const threshold = solveThreshold(groups, 200, most);
    const asked = groups.reduce((sum, { count, lambda, weight, promised }) => {
      const wanted = (-lambda + Math.sqrt(lambda ** 2 + (4 * weight * lambda) / threshold)) / 2;
      return sum + count * Math.max(wanted, 1 / promisedWait({ promised: promised ?? null }, most));
    }, 0);
    expect(asked).toBeLessThanOrEqual(0.971 * 200);
    expect(asked).toBeGreaterThan(0.9 * 200);
    // A promise below a minute demands more than any value does.
    expect(
      solveThreshold(
        [{ count: 100, lambda: 1 / 120, weight: 1, promised: 0.5 }, ...groups.slice(0, 1)],
        400,
        most,
      ),
    ).toBeLessThan(
      solveThreshold(
        [{ count: 100, lambda: 1 / 120, weight: 1, promised: 0.25 }, ...groups.slice(0, 1)],
        400,
        most,
      ) * 1.0001,
    );
  });
});
