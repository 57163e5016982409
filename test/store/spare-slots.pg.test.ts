import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { ErrorCause, SkuResult } from '../../src/store/answer/types.ts';
import { stillDue } from '../../src/store/catalog/sync-state.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, endWaits } from '../../src/store/ledger/due.ts';
import { baseline, line } from './manifest.ts';
import { onlyScope } from './scoping.ts';
import {
  answerAsked,
  claimAll,
  found,
  HOUR,
  LEASE_MS,
  ledger,
  passHours,
  REFRESH,
  useStore,
} from './support.ts';

/* What a spare slot brings of a SKU that was not due is not to be forgotten until its own time. */

const store = useStore();

const MINUTE = 60_000;
const error = (because: ErrorCause): SkuResult => ({ sku: 'A', kind: 'error', because, waitMs: MINUTE });
const deferred: SkuResult = { sku: 'A', kind: 'deferred', waitMs: 5 * MINUTE };

async function pricedAnHourAgo(): Promise<void> {
  await baseline(store.url, [line('A')]);
  await answerAsked(store.sql, found('A', { 9: 100 }));
  await passHours(store.sql, 1);
}

/** Claims A for a spare slot, a day before its time at most. */
async function claimEarly(): Promise<Claim> {
  const spare = { lane: 'sweep', live: false, count: 5, earlySeconds: 24 * 3600 } as const;
  const claim = await claimDue(store.sql, { quotas: [spare] }, LEASE_MS);
  if (claim === null) throw new Error('nothing is to be had early');
  return claim;
}

const inSpareSlot = async (result: SkuResult) =>
  await applyAnswer(store.sql, await claimEarly(), [result], REFRESH);

const rowOfA = async () => (await ledger(store.sql)).get('A');

async function trustOfA() {
  const [row] = await store.sql`select doubt, actionable, owed_reason from catalog.sku_trust where sku = 'A'`;
  return row;
}

describe('an answer that is not the price of before, and that nobody can read', () => {
  test.each(['unreadable', 'contradictory'] as const)('makes its SKU due: %s', async (because) => {
    await pricedAnHourAgo();
    expect(await trustOfA()).toMatchObject({ doubt: null, actionable: true });
    await inSpareSlot(error(because));
    expect(await trustOfA()).toEqual({ doubt: 'owed', actionable: false, owed_reason: 'sweep' });
    expect(await rowOfA()).toMatchObject({ lane: 4, failures: 1 });
  });

  test.each(['live', 'again', 'metadata'])('also where it was due already, as %s', async (reason) => {
    await pricedAnHourAgo();
    await store.sql`update catalog_internal.due set reason = ${reason}, lane = catalog_internal.lane_of(${reason}), due_at = now()`;
    await applyAnswer(store.sql, await claimAll(store.sql), [error('unreadable')], REFRESH);
    expect(await trustOfA()).toEqual({ doubt: 'owed', actionable: false, owed_reason: 'missed' });
  });

  test('leaves one that is out of scope alone until it is in scope again', async () => {
    await pricedAnHourAgo();
    const claim = await claimEarly();
    await store.sql`update catalog_internal.due set outside_due_at = due_at, due_at = 'infinity' where sku = 'A'`;
    await applyAnswer(store.sql, claim, [error('unreadable')], REFRESH);
    expect(await rowOfA()).toMatchObject({ dueIn: Infinity, reason: 'sweep' });
    const [row] =
      await store.sql`select outside_due_at <= now() as due from catalog_internal.due where sku = 'A'`;
    expect(row).toEqual({ due: true });
  });
});

test('a deferral has its SKU asked again after the wait, and not when its sweep comes', async () => {
  await pricedAnHourAgo();
  await inSpareSlot(deferred);
  const row = await rowOfA();
  expect(row).toMatchObject({ lane: 6, live: true, deferrals: 1, reason: 'sweep' });
  expect(row?.dueIn).toBeCloseTo((5 * MINUTE) / HOUR, 2);
  expect(row?.heldFor).toBeCloseTo((5 * MINUTE) / HOUR, 2);
});

test.each(['reported', 'omitted'] as const)(
  'an error that says nothing leaves spare slots their SKU: %s',
  async (because) => {
    await pricedAnHourAgo();
    await inSpareSlot(error(because));
    expect(await trustOfA()).toMatchObject({ doubt: null, actionable: true });
    expect(await rowOfA()).toMatchObject({ lane: 6, reason: 'sweep', failures: 1 });
    await passHours(store.sql, 1);
    await endWaits(store.sql, 9);
    expect((await claimEarly()).skus).toMatchObject([{ sku: 'A', failures: 1, setBack: false }]);
  },
);

test('and one that is due is set back', async () => {
  await pricedAnHourAgo();
  await passHours(store.sql, 24);
  await applyAnswer(store.sql, await claimAll(store.sql), [error('reported')], REFRESH);
  expect(await rowOfA()).toMatchObject({ lane: 4, failures: 1 });
});

test('what it has brought as deferred is still due for whoever waits until nothing is, but not out of scope', async () => {
  const { sql } = store;
  const due = async () => (await stillDue(sql, new Date(0))).due;
  await pricedAnHourAgo();
  expect(await due()).toEqual([]);
  await applyAnswer(sql, await claimEarly(), [deferred], REFRESH);
  expect(await due()).toEqual([{ reason: 'deferred', count: 1 }]);
  await onlyScope(sql, ['sku', 'B']);
  expect(await due()).toEqual([]);
});
