import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { type FailedCall, storeFailedCall, storeLesson } from '../../src/store/call/call-lesson.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { ANY_SIZE } from '../../src/sync/reprice/call-size.ts';
import {
  followWatchlist,
  allDue,
  callInputs,
  claimAll,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  mark,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();
const NOTHING = { call: null, budget: null, ceiling: null, ceilingStep: 0, trial: false, incident: null };
const WORKED = { failures: 0, callSize: null, cleared: null };

const fail = (claim: Claim, more: Partial<FailedCall> = {}) =>
  storeFailedCall(store.sql, {
    claim,
    because: 'timeout',
    failures: 0,
    pauseMs: 0,
    holdMs: 0,
    largestCall: Math.ceil(claim.skus.length / 2),
    callSize: null,
    ...more,
  });

const names = (claim: Claim | null) => (claim?.skus ?? []).map(({ sku }) => sku).toSorted();
const claimSuspects = (largestCall: number, count: number, live = false) =>
  claimDue(store.sql, { suspects: [{ largestCall, live, count }] }, LEASE_MS);

/** Returns for each SKU the size of the largest call that it may be in. */
async function largest(): Promise<Record<string, number | null>> {
  const rows = await store.sql<{ sku: string; most: number | null }[]>`
    select sku, largest_call as most from catalog_internal.due order by sku`;
  return Object.fromEntries(rows.map(({ sku, most }) => [sku, most]));
}

async function due(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await mark(store.sql, skus);
}

describe('the SKUs of a failed call', () => {
  test.each([
    ['urgent', 'changed'],
    ['new', 'new'],
    ['sweep', 'sweep'],
  ])(
    'stay due, in separate calls: no other claim takes them, and theirs takes no others (%s)',
    async (_, reason) => {
      await knownSkus(store.sql, ['A', 'B', 'C', 'D']);
      await mark(store.sql, ['A', 'B', 'C', 'D'], reason);
      await fail(await claimAll(store.sql));
      await due('X');
      const inputs = await callInputs(store.sql);
      expect(inputs.suspects).toEqual([{ largestCall: 2, live: false, count: 4 }]);
      expect(inputs.due.map(({ count }) => count)).toEqual([1]);
      expect(inputs.nextDueMs).toBe(0);
      const half = await claimSuspects(2, 2);
      expect(names(half)).toHaveLength(2);
      expect(
        names(await claimDue(store.sql, { quotas: allDue(9), named: ['A', 'B', 'C', 'D'] }, LEASE_MS)),
      ).toEqual(['X']);
      expect(names(await claimSuspects(2, 9))).toHaveLength(2);
    },
  );

  test('join calls like any other once a call with them was answered, in whatever way', async () => {
    await due('answered', 'deferred', 'error', 'left');
    await fail(await claimAll(store.sql));
    const claim = await claimSuspects(2, 9);
    if (claim === null) throw new Error('nothing claimed');
    const results = [
      found('answered', { '42': 1 }),
      { sku: 'deferred', kind: 'deferred', waitMs: HOUR },
      { sku: 'error', kind: 'error', waitMs: HOUR },
    ] as const;
    await applyAnswer(store.sql, claim, results, REFRESH);
    expect(await largest()).toEqual({ answered: null, deferred: null, error: null, left: 2 });
  });

  test('are not touched by a failure whose claim is over, and never join larger calls than before', async () => {
    await due('A', 'B');
    const late = await claimAll(store.sql);
    await fail(late);
    expect(await largest()).toEqual({ A: 1, B: 1 });
    await fail(late, { largestCall: 50 });
    expect(await largest()).toEqual({ A: 1, B: 1 });
    const again = await claimSuspects(1, 1);
    if (again !== null) await fail(again, { largestCall: 50 });
    expect(await largest()).toEqual({ A: 1, B: 1 });
  });

  test('are halved again once half of their call has worked, unless more than one half is left', async () => {
    await due('A', 'B', 'C', 'D', 'E', 'F');
    await fail(await claimAll(store.sql), { largestCall: 3 });
    await storeLesson(store.sql, NOTHING, { ...WORKED, cleared: 3 });
    expect(new Set(Object.values(await largest()))).toEqual(new Set([3]));
    const half = await claimSuspects(3, 3);
    await storeLesson(store.sql, NOTHING, { ...WORKED, cleared: 3 });
    const now = await largest();
    for (const [sku, most] of Object.entries(now)) expect(most).toBe(names(half).includes(sku) ? 3 : 2);
  });
});

describe('a SKU whose own call failed', () => {
  const setAside = async () => {
    await due('A');
    await applyAnswer(
      store.sql,
      await claimAll(store.sql),
      [{ sku: 'A', kind: 'error', waitMs: HOUR, blame: 'alone' }],
      REFRESH,
    );
  };
  const isHeld = async () =>
    (await store.sql`select from catalog_internal.due where held_until > now()`).length === 1;

  test('waits, stays alone, and no report shortens its wait', async () => {
    await setAside();
    expect(await largest()).toEqual({ A: 1 });
    await mark(store.sql, ['A'], 'changed');
    await store.sql`insert into catalog.watchlist (sku) values ('A')`;
    await followWatchlist(store.sql);
    expect(await isHeld()).toBe(true);
  });

  test('is due at once when somebody requests a refresh of it, still alone', async () => {
    await setAside();
    await refreshSkus(store.sql, ['A']);
    expect(await isHeld()).toBe(false);
    expect((await callInputs(store.sql)).suspects).toEqual([{ largestCall: 1, live: false, count: 1 }]);
  });
});

describe('the size of calls', () => {
  const size = { ...ANY_SIZE, size: 30, failing: 60, proven: 30 };

  test('is read with the plan and stored with the call, once for simultaneous calls', async () => {
    await due('A');
    const claim = await claimAll(store.sql);
    expect((await callInputs(store.sql)).callSize).toEqual({ step: 0, ...ANY_SIZE });
    await fail(claim, { callSize: { ...size, step: 1 } });
    await fail(claim, { callSize: { ...size, step: 1, size: 15 } });
    expect((await callInputs(store.sql)).callSize).toEqual({ ...size, step: 1 });
    await storeLesson(store.sql, NOTHING, { ...WORKED, callSize: { ...size, step: 2, worked: 1 } });
    expect((await callInputs(store.sql)).callSize).toEqual({ ...size, step: 2, worked: 1 });
    await storeLesson(store.sql, NOTHING, WORKED);
    expect((await callInputs(store.sql)).callSize).toEqual({ ...size, step: 2, worked: 1 });
  });

  test('a failed call is counted once for simultaneous ones, and postpones the next one', async () => {
    await due('A');
    const claim = await claimAll(store.sql);
    await fail(claim, { pauseMs: HOUR });
    await fail(claim, { pauseMs: 3 * HOUR });
    const pause = await callPause(store.sql);
    expect(pause.failures).toBe(1);
    expect(pause.ms).toBeLessThanOrEqual(HOUR);
  });
});

test('rejected calls among the failures in a row are counted separately, until one works', async () => {
  await due('A', 'B', 'C');
  const counted: unknown[] = [];
  for (const [failures, isRejection] of [false, true, false].entries()) {
    await store.sql`update catalog_internal.due set largest_call = null`;
    await fail(await claimAll(store.sql), { failures, isRejection });
    counted.push(await callPause(store.sql));
  }
  expect(counted).toEqual([
    { ms: 0, failures: 1, rejections: 0 },
    { ms: 0, failures: 2, rejections: 1 },
    { ms: 0, failures: 3, rejections: 1 },
  ]);
  await storeLesson(store.sql, NOTHING, { ...WORKED, failures: 3 });
  expect(await callPause(store.sql)).toEqual({ ms: 0, failures: 0, rejections: 0 });
});
