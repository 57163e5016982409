import {
  assert,
  boolean,
  constantFrom,
  double,
  integer,
  property,
  record,
  subarray,
  tuple,
} from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Early } from '../../src/store/call/bulk-call.ts';
import {
  DUE_LANES,
  type LaneClass,
  type DueClass,
  PROMISED,
  type Quota,
} from '../../src/store/ledger/due.ts';
import {
  FIRST_PACKING,
  type PackingTurns,
  planBatch,
  type PlanLimits,
} from '../../src/sync/reprice/packing.ts';
import { runs } from '../support/soak.ts';

const NOT_EARLY: Early = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
const USUAL: PlanLimits = { callSkus: 100, liveBudget: 5, turns: FIRST_PACKING, spareSeconds: 60 };

const CLASSES = DUE_LANES.flatMap((lane): LaneClass[] => [
  { lane, live: true },
  { lane, live: false },
]);

const owe = (lane: DueClass['lane'], live: boolean, count: number): DueClass => ({
  lane,
  live,
  count,
});
const sum = (quotas: readonly { count: number }[]) => quotas.reduce((total, { count }) => total + count, 0);
const sameClass = (a: LaneClass) => (b: LaneClass) => a.lane === b.lane && a.live === b.live;
const plan = (due: readonly DueClass[], limits: Partial<PlanLimits> = {}): readonly Quota[] =>
  planBatch(due, NOT_EARLY, { ...USUAL, ...limits })?.quotas ?? [];

/**
 * Returns the quotas of `calls` consecutive calls while all that is due stays due. `limits` may depend on the
 * number of the call.
 */
function planEach(
  calls: number,
  due: readonly DueClass[],
  limits: Partial<PlanLimits> | ((n: number) => Partial<PlanLimits>) = {},
): readonly (readonly Quota[])[] {
  let turns: PackingTurns = FIRST_PACKING;
  return Array.from({ length: calls }, (_, n) => {
    const more = typeof limits === 'function' ? limits(n) : limits;
    const batch = planBatch(due, NOT_EARLY, { ...USUAL, ...more, turns });
    turns = batch?.turns ?? turns;
    return batch?.quotas ?? [];
  });
}

const counts = (quotas: readonly Quota[]) =>
  Object.fromEntries(quotas.map(({ lane, live, count }) => [`${lane}${live ? ' live' : ''}`, count]));

const anyDue = subarray(CLASSES, { minLength: 1 }).chain((classes) =>
  tuple(
    ...classes.map(({ lane, live }) => integer({ min: 1, max: 100 }).map((count) => owe(lane, live, count))),
  ),
);
const anyLimits = record({
  callSkus: constantFrom(1, 2, 3, 6, 12, 25, 50, 100),
  liveBudget: double({ min: 1, max: 120, noNaN: true }),
  spareSeconds: integer({ min: 0, max: 86_400 }),
  recovering: boolean(),
});

describe('a batch', () => {
  test('fills the call exactly, keeps within the live budget, and names each class once', () => {
    assert(
      property(anyDue, anyLimits, (due, limits) => {
        const quotas = plan(due, limits);
        expect(sum(quotas)).toBe(limits.callSkus);
        expect(sum(quotas.filter(({ live }) => live))).toBeLessThanOrEqual(Math.floor(limits.liveBudget));
        for (const quota of quotas) expect(quotas.filter(sameClass(quota))).toHaveLength(1);
      }),
    );
  });

  test('leaves no slot empty that something due could use', () => {
    assert(
      property(anyDue, anyLimits, (due, limits) => {
        const quotas = plan(due, limits);
        const useful = quotas.map((quota) => Math.min(quota.count, due.find(sameClass(quota))?.count ?? 0));
        const served = useful.reduce((total, n) => total + n, 0);
        const cheap = sum(due.filter(({ live }) => !live));
        const live = Math.min(sum(due.filter(({ live }) => live)), Math.floor(limits.liveBudget));
        expect(served).toBeGreaterThanOrEqual(Math.min(limits.callSkus, cheap + live));
      }),
    );
  });

  test('starves no class: each gets slots within a few calls, whatever else stays due', () => {
    assert(
      property(anyDue, anyLimits, (due, limits) => {
        const everFull = due.map(({ lane, live }) => owe(lane, live, 100));
        // Ten calls of one slot serve each of five lanes behind. Live SKUs alternate with others, and recovering
        // ones take turns, too.
        const served = new Set(
          planEach(limits.recovering ? 30 : 20, everFull, limits)
            .flat()
            .map(({ lane, live }) => `${lane} ${live}`),
        );
        for (const { lane, live } of due) expect(served).toContain(`${lane} ${live}`);
      }),
    );
  });

  test('gives every class its part in the long run, in whatever rhythm live slots come', () => {
    const anyRhythm = record({
      promised: subarray([true, false]),
      /** Calls from one live slot to the next, under a ceiling. 0: no ceiling. */
      every: constantFrom(0, 0.4, 1, 2, 3, 4, 7, 10, 14, 16, 20, 32),
    });
    assert(
      property(anyDue, anyLimits, anyRhythm, (some, limits, { promised, every }) => {
        const due = [
          ...promised.map((live) => owe(PROMISED, live, 100)),
          ...some.map(({ lane, live }) => owe(lane, live, 100)),
        ];
        const liveBudget = (n: number) =>
          every === 0 ? limits.liveBudget : Math.floor((n + 1) / every) - Math.floor(n / every);
        const calls = planEach(1500, due, (n) => ({
          ...limits,
          liveBudget: Math.min(limits.liveBudget, liveBudget(n)),
        }));
        for (const live of [true, false]) {
          const lanes = DUE_LANES.filter((lane) => some.some(sameClass({ lane, live })));
          const wanted = new Map<string, number>();
          for (const quotas of calls) {
            const slots = sum(quotas.filter((quota) => quota.live === live));
            // If promised SKUs take the rest, a twentieth of the slots. Half of a slot rotates among the lanes
            // behind the first.
            const left = promised.includes(live) ? Math.min(1, slots / 20) : Math.min(1, slots);
            // Recovering SKUs take half of the live slots first.
            const shared = live && limits.recovering ? slots / 2 : slots;
            const part = promised.includes(live) ? 0 : Math.floor(shared / 20);
            for (const [n, lane] of lanes.entries())
              wanted.set(
                lane,
                (wanted.get(lane) ?? 0) +
                  (n > 0 && part > 0 ? part : left / (n === 0 ? 2 : 2 * (lanes.length - 1))),
              );
          }
          const factor = live && limits.recovering ? 0.45 : 0.95;
          for (const [lane, slots] of wanted) {
            const given = sum(calls.flat().filter((quota) => quota.live === live && quota.lane === lane));
            expect([lane, live, given >= factor * slots - 4]).toEqual([lane, live, true]);
          }
        }
      }),
      { numRuns: runs(100) },
    );
  });

  test('is null if nothing is due', () => {
    expect(planBatch([], NOT_EARLY, USUAL)).toBeNull();
  });

  test('goes to urgent SKUs first, and gives each lane behind a twentieth', () => {
    const due = DUE_LANES.map((lane) => owe(lane, false, 100));
    expect(counts(plan(due))).toEqual({ urgent: 75, live: 5, new: 5, error: 5, metadata: 5, sweep: 5 });
  });

  test('of only live SKUs fills its other slots with the SKUs whose sweep comes next', () => {
    const quotas = plan([owe('live', true, 100)], { spareSeconds: 1234 });
    expect(quotas).toEqual([
      { lane: 'live', live: true, count: 5, earlySeconds: 0 },
      { lane: 'sweep', live: false, count: 95, earlySeconds: 1234 },
    ]);
  });

  test('takes each lane as early as it is told, and the sweep by the greater of both values', () => {
    const early = { ...NOT_EARLY, live: 7, sweep: 100 };
    const due = [owe('live', true, 1), owe('sweep', false, 1)];
    expect(planBatch(due, early, USUAL)?.quotas.map(({ earlySeconds }) => earlySeconds)).toEqual([7, 100]);
  });

  test('takes unlisted SKUs of the live lane no earlier than due', () => {
    const early = { ...NOT_EARLY, live: 7, sweep: 100 };
    const due = [owe('live', true, 1), owe('live', false, 1)];
    const [live, unlisted] = planBatch(due, early, USUAL)?.quotas ?? [];
    expect([live, unlisted]).toEqual([
      { lane: 'live', live: true, count: 1, earlySeconds: 7 },
      { lane: 'live', live: false, count: 1, earlySeconds: 0 },
    ]);
  });

  test('full of unlisted SKUs leaves live SKUs their slots, and each lane behind a twentieth', () => {
    const due = [owe('live', true, 100), ...DUE_LANES.slice(1).map((lane) => owe(lane, false, 100))];
    expect(counts(plan(due))).toEqual({ 'live live': 5, live: 79, new: 4, error: 4, metadata: 4, sweep: 4 });
  });

  test('gives live SKUs that recover from deferrals half of the live slots, up to their number', () => {
    const liveOf = (errors: number, limits: Partial<PlanLimits> = {}) =>
      planEach(14, [owe('live', true, 100), owe('error', true, errors)], limits).map((quotas) =>
        counts(quotas.filter(({ live }) => live)),
      );
    const recovering = true;
    expect(liveOf(100)[0]).toEqual({ 'live live': 5 });
    const [first, second, third] = liveOf(100, { recovering });
    expect(first).toEqual({ 'live live': 2, 'error live': 3 });
    expect(second).toEqual({ 'live live': 1, 'error live': 4 });
    expect(third).toEqual({ 'live live': 3, 'error live': 2 });
    // Of single slots two in seven, and half of the others.
    const single = liveOf(100, { liveBudget: 1, recovering });
    expect(single.filter((of) => of['error live'] === 1)).toHaveLength(9);
    expect(single.filter((of) => of['live live'] === 1)).toHaveLength(5);
    expect(liveOf(1, { recovering })[0]).toEqual({ 'live live': 4, 'error live': 1 });
    expect(counts(plan([owe('error', true, 9)], { recovering }).filter(({ live }) => live))).toEqual({
      'error live': 5,
    });
  });

  test('with few live slots gives one in every second turn to the lanes behind, in rotation', () => {
    const due = (['urgent', 'live', 'sweep'] as const).map((lane) => owe(lane, true, 100));
    const calls = planEach(4, due).map((quotas) => counts(quotas.filter(({ live }) => live)));
    expect(calls).toEqual([
      { 'urgent live': 5 },
      { 'urgent live': 4, 'live live': 1 },
      { 'urgent live': 5 },
      { 'urgent live': 4, 'sweep live': 1 },
    ]);
  });

  test('no larger than the live budget alternates between live SKUs and others', () => {
    const due = [owe('live', true, 100), owe('urgent', false, 100)];
    const sides = planEach(3, due, { callSkus: 3 }).map(counts);
    expect(sides).toEqual([{ 'live live': 3 }, { urgent: 3 }, { 'live live': 3 }]);
  });
});

describe('promised refreshes', () => {
  const promised = (live: boolean, count: number) => owe(PROMISED, live, count);
  const slotsOf = (quotas: readonly Quota[], live: boolean) =>
    quotas.find((quota) => quota.lane === PROMISED && quota.live === live)?.count ?? 0;

  test('come first, and get all slots they need except the part of the others', () => {
    assert(
      property(
        anyDue,
        anyLimits,
        integer({ min: 1, max: 100 }),
        integer({ min: 1, max: 100 }),
        (due, limits, live, others) => {
          const all = [promised(true, live), promised(false, others), ...due];
          let [given, slots] = [0, 0];
          for (const quotas of planEach(40, all, { ...limits, callSkus: 100 })) {
            expect(quotas.slice(0, 2).map(({ lane }) => lane)).toContain(PROMISED);
            expect(sum(quotas)).toBe(100);
            const room = 100 - sum(quotas.filter((quota) => quota.live));
            given += slotsOf(quotas, false);
            slots += Math.min(others, room);
          }
          expect(given).toBeGreaterThanOrEqual(0.94 * slots - 1);
        },
      ),
    );
  });

  test('never overfill a call, even if the others got less than their part before and have no slot now', () => {
    const due = [promised(true, 49), promised(false, 88), owe('urgent', true, 51), owe('live', false, 1)];
    for (const quotas of planEach(200, due, { liveBudget: 100 })) expect(sum(quotas)).toBe(100);
  });

  test('leave no slot empty and each lane its part, in calls of any size', () => {
    const lanes = DUE_LANES.map((lane) => owe(lane, false, 100));
    for (const callSkus of [1, 2, 5, 20, 100]) {
      const seen = new Map<string, number>();
      for (const { lane, count } of planEach(2000, [promised(false, 100), ...lanes], {
        callSkus,
        liveBudget: 0,
      }).flat())
        seen.set(lane, (seen.get(lane) ?? 0) + count);
      expect([callSkus, [...seen].filter(([, count]) => count < 5)]).toEqual([callSkus, []]);
      expect(seen.size).toBe(DUE_LANES.length + 1);
      expect((seen.get(PROMISED) ?? 0) / (2000 * callSkus)).toBeCloseTo(0.95, 2);
    }
    expect(counts(plan([promised(false, 100), owe('new', false, 2)]))).toMatchObject({
      promised: 98,
      new: 2,
    });
    const [, , third, fourth] = planEach(4, [promised(true, 9), owe('live', true, 2)]).map(counts);
    expect(third).toMatchObject({ 'promised live': 5 });
    expect(fourth).toMatchObject({ 'promised live': 4, 'live live': 1 });
    expect(counts(plan([promised(true, 9)]))).toMatchObject({ 'promised live': 5 });
  });
});
