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
import { planBatch, type PlanLimits } from '../../src/sync/reprice/packing.ts';

const NOT_EARLY: Early = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
const USUAL: PlanLimits = { callSkus: 100, liveBudget: 5, iteration: 1, spareSeconds: 60 };

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
  planBatch(due, NOT_EARLY, { ...USUAL, ...limits }) ?? [];
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
  iteration: integer({ min: 0, max: 10_000 }),
  spareSeconds: integer({ min: 0, max: 86_400 }),
  recovering: boolean(),
});

describe('a batch', () => {
  test('asks for as many SKUs as a call may hold and never more, for no more live ones than the budget, and for each class once', () => {
    assert(
      property(anyDue, anyLimits, (due, limits) => {
        const quotas = plan(due, limits);
        expect(sum(quotas)).toBe(limits.callSkus);
        expect(sum(quotas.filter(({ live }) => live))).toBeLessThanOrEqual(Math.floor(limits.liveBudget));
        for (const quota of quotas) expect(quotas.filter(sameClass(quota))).toHaveLength(1);
      }),
    );
  });

  test('leaves no slot empty while something due could have it', () => {
    assert(
      property(anyDue, anyLimits, (due, limits) => {
        const quotas = plan(due, limits);
        const useful = quotas.map((quota) => Math.min(quota.count, due.find(sameClass(quota))?.count ?? 0));
        const served = useful.reduce((total, n) => total + n, 0);
        const cheap = sum(due.filter(({ live }) => !live));
        const live = Math.min(sum(due.filter(({ live }) => live)), Math.floor(limits.liveBudget));
        // A call too small for its live budget goes to either side in turn; every other one is filled from both.
        const possible = limits.callSkus > limits.liveBudget ? Math.min(limits.callSkus, cheap + live) : 1;
        expect(served).toBeGreaterThanOrEqual(possible);
      }),
    );
  });

  test('starves nobody: whatever stays due beside it, every class gets its slots within a few iterations', () => {
    assert(
      property(anyDue, anyLimits, (due, limits) => {
        const everFull = due.map(({ lane, live }) => owe(lane, live, 100));
        // With one slot a call, which those that recover have in part, a class waits for longer.
        const iterations = Array.from({ length: limits.recovering ? 96 : 64 }, (_, i) =>
          plan(everFull, { ...limits, iteration: limits.iteration + i }),
        );
        const served = new Set(iterations.flat().map(({ lane, live }) => `${lane} ${live}`));
        for (const { lane, live } of due) expect(served).toContain(`${lane} ${live}`);
      }),
    );
  });

  test('of nothing due is none at all', () => {
    expect(planBatch([], NOT_EARLY, USUAL)).toBeNull();
  });

  test('goes to what changed first, and gives every lane behind it a twentieth', () => {
    const due = DUE_LANES.map((lane) => owe(lane, false, 100));
    expect(counts(plan(due))).toEqual({ urgent: 75, live: 5, new: 5, error: 5, metadata: 5, sweep: 5 });
  });

  test('for live SKUs alone fills its cheap slots with the SKUs whose sweep comes next', () => {
    const quotas = plan([owe('live', true, 100)], { spareSeconds: 1234 });
    expect(quotas).toEqual([
      { lane: 'live', live: true, count: 5, earlySeconds: 0 },
      { lane: 'sweep', live: false, count: 95, earlySeconds: 1234 },
    ]);
  });

  test('takes a lane as early as it is told, the sweep by the greater of both', () => {
    const early = { ...NOT_EARLY, live: 7, sweep: 100 };
    const due = [owe('live', true, 1), owe('sweep', false, 1)];
    expect(planBatch(due, early, USUAL)?.map(({ earlySeconds }) => earlySeconds)).toEqual([7, 100]);
  });

  test('takes no SKU of the live lane early that does not count as live: nobody lists it, and its turn is LIVE_INTERVAL', () => {
    const early = { ...NOT_EARLY, live: 7, sweep: 100 };
    const due = [owe('live', true, 1), owe('live', false, 1)];
    const [live, unlisted] = planBatch(due, early, USUAL) ?? [];
    expect([live, unlisted]).toEqual([
      { lane: 'live', live: true, count: 1, earlySeconds: 7 },
      { lane: 'live', live: false, count: 1, earlySeconds: 0 },
    ]);
  });

  test('full of SKUs that nobody lists leaves live SKUs their slots, and every lane behind a twentieth', () => {
    const due = [owe('live', true, 100), ...DUE_LANES.slice(1).map((lane) => owe(lane, false, 100))];
    expect(counts(plan(due))).toEqual({ 'live live': 5, live: 79, new: 4, error: 4, metadata: 4, sweep: 4 });
  });

  test('gives live SKUs that recover from deferrals half of the live slots, and no more than there are of them', () => {
    const liveOf = (errors: number, limits: Partial<PlanLimits>) =>
      counts(plan([owe('live', true, 100), owe('error', true, errors)], limits).filter(({ live }) => live));
    const recovering = true;
    expect(liveOf(100, { iteration: 1 })).toEqual({ 'live live': 5 });
    expect(liveOf(100, { iteration: 1, recovering })).toEqual({ 'live live': 2, 'error live': 3 });
    expect(liveOf(100, { iteration: 1, liveBudget: 1, recovering })).toEqual({ 'error live': 1 });
    expect(liveOf(100, { iteration: 3, liveBudget: 1, recovering })).toEqual({ 'live live': 1 });
    expect(liveOf(1, { iteration: 1, recovering })).toEqual({ 'live live': 4, 'error live': 1 });
    expect(counts(plan([owe('error', true, 9)], { recovering }).filter(({ live }) => live))).toEqual({
      'error live': 5,
    });
  });

  test('with little room gives every second turn one live slot to a lane behind, each in its turn', () => {
    const due = (['urgent', 'live', 'sweep'] as const).map((lane) => owe(lane, true, 100));
    const iterations = [1, 2, 3, 4].map((iteration) =>
      counts(plan(due, { iteration }).filter(({ live }) => live)),
    );
    expect(iterations[0]).toEqual({ 'urgent live': 5 });
    expect(iterations[2]).toEqual({ 'urgent live': 5 });
    expect(
      [iterations[1], iterations[3]].toSorted((a, b) =>
        Object.keys(a ?? {}).join() < Object.keys(b ?? {}).join() ? -1 : 1,
      ),
    ).toEqual([
      { 'urgent live': 4, 'live live': 1 },
      { 'urgent live': 4, 'sweep live': 1 },
    ]);
  });

  test('no larger than the live budget goes to live SKUs for a while and then to the others', () => {
    const due = [owe('live', true, 100), owe('urgent', false, 100)];
    const sides = [0, 16, 32].map((iteration) => counts(plan(due, { callSkus: 3, iteration })));
    expect(sides).toEqual([{ 'live live': 3 }, { urgent: 3 }, { 'live live': 3 }]);
  });
});

describe('what is promised', () => {
  const promised = (live: boolean, count: number) => owe(PROMISED, live, count);
  const slotsOf = (quotas: readonly Quota[], live: boolean) =>
    quotas.find((quota) => quota.lane === PROMISED && quota.live === live)?.count ?? 0;

  test('comes first and has as many slots as it needs, up to the part that is the others’', () => {
    assert(
      property(
        anyDue,
        anyLimits,
        integer({ min: 1, max: 100 }),
        integer({ min: 1, max: 100 }),
        (due, limits, live, others) => {
          const all = [promised(true, live), promised(false, others), ...due];
          let [given, slots] = [0, 0];
          for (let iteration = 0; iteration < 40; iteration += 1) {
            const quotas = plan(all, { ...limits, callSkus: 100, iteration });
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

  test('leaves no slot empty, and each lane its turn, in calls of any size', () => {
    const lanes = DUE_LANES.map((lane) => owe(lane, false, 100));
    for (const callSkus of [1, 2, 5, 20, 100]) {
      const seen = new Map<string, number>();
      for (let iteration = 0; iteration < 2000; iteration += 1)
        for (const { lane, count } of plan([promised(false, 100), ...lanes], {
          callSkus,
          liveBudget: 0,
          iteration,
        }))
          seen.set(lane, (seen.get(lane) ?? 0) + count);
      expect([callSkus, [...seen].filter(([, count]) => count < 5)]).toEqual([callSkus, []]);
      expect(seen.size).toBe(DUE_LANES.length + 1);
      expect((seen.get(PROMISED) ?? 0) / (2000 * callSkus)).toBeCloseTo(0.95, 2);
    }
    expect(counts(plan([promised(false, 100), owe('new', false, 2)]))).toMatchObject({
      promised: 98,
      new: 2,
    });
    expect(counts(plan([promised(true, 9), owe('live', true, 2)], { iteration: 3 }))).toMatchObject({
      'promised live': 5,
    });
    expect(counts(plan([promised(true, 9), owe('live', true, 2)], { iteration: 4 }))).toMatchObject({
      'promised live': 4,
      'live live': 1,
    });
    expect(counts(plan([promised(true, 9)]))).toMatchObject({ 'promised live': 5 });
  });
});
