import { describe, expect, test } from 'vitest';
import type { Early } from '../../src/store/call/bulk-call.ts';
import type { DueClass, Lane, Quota } from '../../src/store/ledger/due.ts';
import { FIRST_PACKING, planBatch, type PlanLimits, planSuspects } from '../../src/sync/reprice/packing.ts';

const NOT_EARLY: Early = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
const LIMITS: PlanLimits = { callSkus: 100, liveBudget: 5, turns: FIRST_PACKING, spareSeconds: 60 };

const live = (count: number, lane: Lane = 'live'): DueClass => ({ lane, live: true, count });
const other = (lane: Lane, count = 1000): DueClass => ({ lane, live: false, count });
const plan = (due: readonly DueClass[], limits: Partial<PlanLimits> = {}, early = NOT_EARLY) =>
  planBatch(due, early, { ...LIMITS, ...limits })?.quotas ?? null;

/** Returns the quotas of `calls` consecutive calls. */
function planEach(
  calls: number,
  due: readonly DueClass[],
  limits: Partial<PlanLimits> | ((n: number) => Partial<PlanLimits>),
): readonly (readonly Quota[])[] {
  let turns = FIRST_PACKING;
  return Array.from({ length: calls }, (_, n) => {
    const more = typeof limits === 'function' ? limits(n) : limits;
    const batch = planBatch(due, NOT_EARLY, { ...LIMITS, ...more, turns });
    turns = batch?.turns ?? turns;
    return batch?.quotas ?? [];
  });
}

const slotsOf = (quotas: readonly Quota[] | null, lane: Lane, isLive = false) =>
  quotas?.find((quota) => quota.lane === lane && quota.live === isLive)?.count ?? 0;

describe('a call', () => {
  test('is not made if only live SKUs are due and none may be asked: spare slots alone are no reason', () => {
    expect(plan([live(10)], { liveBudget: 0 })).toBeNull();
    expect(plan([live(10)], { liveBudget: 0.9 })).toBeNull();
    expect(plan([])).toBeNull();
  });

  test('takes live SKUs up to the whole part of the budget, and others for the rest of its slots', () => {
    const quotas = plan([live(10), other('new')], { liveBudget: 5.9 });
    expect([slotsOf(quotas, 'live', true), slotsOf(quotas, 'new')]).toEqual([5, 95]);
  });

  test('shares live slots between refreshes and SKUs without a price, however many refreshes are due', () => {
    const slots = (due: readonly DueClass[], liveBudget: number) =>
      planEach(4, due, { liveBudget }).map((quotas) => [
        slotsOf(quotas, 'live', true),
        slotsOf(quotas, 'new', true),
      ]);
    const both = [live(1000), live(1000, 'new')];
    expect(slots(both, 5)).toEqual([
      [3, 2],
      [3, 2],
      [3, 2],
      [3, 2],
    ]);
    expect(slots(both, 1)).toEqual([
      [1, 0],
      [0, 1],
      [1, 0],
      [0, 1],
    ]);
    expect(slots([live(1000), live(1, 'new')], 5)).toEqual([
      [4, 1],
      [4, 1],
      [4, 1],
      [4, 1],
    ]);
    expect(slots([live(1), live(1000, 'new')], 5)).toEqual([
      [1, 4],
      [1, 4],
      [1, 4],
      [1, 4],
    ]);
    // What is urgent goes before both.
    expect(slots([live(1000, 'urgent'), ...both], 1)).toEqual([
      [0, 0],
      [1, 0],
      [0, 0],
      [0, 1],
    ]);
  });

  test('is filled up from the sweep ahead of time, by no more than the spare seconds', () => {
    expect(plan([other('new', 30)])).toEqual([
      { lane: 'new', live: false, count: 30, earlySeconds: 0 },
      { lane: 'sweep', live: false, count: 70, earlySeconds: 60 },
    ]);
    expect(plan([other('sweep', 30)], {}, { ...NOT_EARLY, sweep: 900 })).toEqual([
      { lane: 'sweep', live: false, count: 100, earlySeconds: 900 },
    ]);
  });

  test('of one slot goes to the lanes behind every second time, to each in rotation', () => {
    const due = [other('urgent'), other('new'), other('metadata'), other('sweep')];
    const lanes = planEach(12, due, { callSkus: 1, liveBudget: 0 }).map((quotas) =>
      quotas.map(({ lane }) => lane).join(' '),
    );
    const [U, N, M, S] = ['urgent', 'new', 'metadata', 'sweep'];
    expect(lanes).toEqual([U, N, U, M, U, S, U, N, U, M, U, S]);
  });

  test('of few slots alternates between live SKUs and others if both would not fit', () => {
    const sides = (due: readonly DueClass[], callSkus: number, liveBudget: number) =>
      planEach(4, due, { callSkus, liveBudget }).map((quotas) => slotsOf(quotas, 'live', true));
    expect(sides([live(10), other('sweep')], 4, 5)).toEqual([4, 0, 4, 0]);
    expect(sides([live(10)], 4, 5)).toEqual([4, 4, 4, 4]);
    // Live SKUs take what the others leave of their turn.
    expect(sides([live(10), other('urgent', 1)], 4, 5)).toEqual([4, 3, 4, 3]);
    // Under a ceiling on live computations the others had their turn in the calls before.
    const scarce = planEach(6, [live(10), other('sweep')], (n) => ({
      callSkus: 1,
      liveBudget: n % 3 === 0 ? 1 : 0,
    }));
    expect(scarce.map((quotas) => slotsOf(quotas, 'live', true))).toEqual([1, 0, 0, 1, 0, 0]);
    // Less than a twentieth is no room for the others.
    expect(sides([live(100), other('sweep')], 100, 96)).toEqual([96, 0, 96, 0]);
    expect(sides([live(100), other('sweep')], 100, 95)).toEqual([95, 95, 95, 95]);
  });

  test('has a twentieth for each lane behind the first', () => {
    const quotas = plan([other('urgent'), other('new'), other('sweep')]);
    expect(['urgent', 'new', 'sweep'].map((lane) => slotsOf(quotas, lane as Lane))).toEqual([90, 5, 5]);
  });
});

describe('a call of SKUs that were in failed calls', () => {
  const suspect = (largestCall: number, isLive: boolean, count: number) => ({
    largestCall,
    live: isLive,
    count,
  });

  test('leaves out SKUs that may only share smaller calls', () => {
    const suspects = [suspect(50, true, 2), suspect(50, false, 10), suspect(25, false, 20)];
    expect(planSuspects(suspects, LIMITS)).toEqual([suspect(50, true, 2), suspect(50, false, 10)]);
  });

  test('takes live SKUs up to the budget, and no more SKUs than these may share or a call may hold', () => {
    const suspects = [suspect(50, true, 30), suspect(50, false, 60)];
    expect(planSuspects(suspects, LIMITS)).toEqual([suspect(50, true, 5), suspect(50, false, 45)]);
    expect(planSuspects(suspects, { callSkus: 20, liveBudget: 5 })).toEqual([
      suspect(50, true, 5),
      suspect(50, false, 15),
    ]);
  });

  test('skips SKUs that may not be asked now', () => {
    const suspects = [suspect(50, true, 30), suspect(25, false, 3)];
    expect(planSuspects(suspects, { callSkus: 100, liveBudget: 0 })).toEqual([suspect(25, false, 3)]);
    expect(planSuspects([suspect(50, true, 30)], { callSkus: 100, liveBudget: 0.5 })).toBeNull();
  });
});
