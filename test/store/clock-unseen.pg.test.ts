import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { acceptDoubted } from '../../src/store/answer/seller-doubts.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { storeFailedCall } from '../../src/store/call/call-lesson.ts';
import { putClockRight, readClock } from '../../src/store/clock.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { setClockAhead, timesAfter } from '../support/movable-clock.ts';
import { answerAsked, claimAll, found, knownSkus, mark, REFRESH, useStore } from './support.ts';

/*
 * Postgres's clock is set ahead while a call is under way, and is right again before anybody has checked it; the
 * process that stored the call's end has ended with it.
 */

const SKUS = ['A', 'B', 'C'];
const DAY = 86_400;

const store = useStore({ movableClock: true });
beforeEach(async () => {
  await store.sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now(), delta_checked_at = now()`;
  await store.sql`
    update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp()`;
  await knownSkus(store.sql, SKUS);
  await answerAsked(store.sql, ...SKUS.map((sku) => found(sku, { 9: 10_000, 10: 12_000 })));
  await mark(store.sql, SKUS);
});

const results: Readonly<Record<string, SkuResult>> = {
  'a price that moved': found('A', { 9: 11_000, 10: 12_000 }),
  'an implausible price': found('A', { 9: 100, 10: 12_000 }),
  'a deferral': { sku: 'A', kind: 'deferred', waitMs: 5000 },
  'an error': { sku: 'A', kind: 'error', waitMs: 60_000 },
  'not found': { sku: 'A', kind: 'not_found' },
};
const ends: Readonly<Record<string, (claim: Claim) => Promise<unknown>>> = {
  ...Object.fromEntries(
    Object.entries(results).map(([name, result]) => [
      name,
      (claim: Claim) => applyAnswer(store.sql, claim, [result], REFRESH),
    ]),
  ),
  'a call that failed': (claim) =>
    storeFailedCall(store.sql, {
      claim,
      because: 'timeout',
      failures: 0,
      pauseMs: 60_000,
      holdMs: 60_000,
      largestCall: 1,
      callSize: null,
    }),
};

describe.each([
  ['while a call is under way', claimAll],
  [
    'before its claim',
    async (sql: Sql) => {
      await setClockAhead(sql, 90 * DAY);
      return await claimAll(sql);
    },
  ],
] as const)('set ahead %s', (when, claimed) => {
  const claimIsAhead = when === 'before its claim';
  test.each([...(claimIsAhead ? ['nothing more'] : []), ...Object.keys(ends)])(
    '%s: the next daemon corrects what the clock has dated',
    async (name) => {
      const claim = await claimed(store.sql);
      await setClockAhead(store.sql, 90 * DAY);
      await ends[name]?.(claim);
      await setClockAhead(store.sql, 0);
      const [{ now }] = await store.sql<[{ now: Date }]>`select clock_timestamp() as now`;
      const inTime = new Date(now.getTime() + 8 * DAY * 1000);
      expect(await timesAfter(store.sql, inTime)).not.toEqual({});
      expect((await putClockRight(store.sql))?.seconds).toBeCloseTo(90 * DAY, -1);
      expect(await timesAfter(store.sql, inTime)).toEqual({});
    },
  );
});

const COMMANDS: Readonly<Record<string, () => Promise<unknown>>> = {
  'SKUs refreshed by name': () => refreshSkus(store.sql, ['A', 'NEW']),
  'all prices refreshed': () => refreshAll(store.sql, 'prices'),
  'doubts accepted': () => acceptDoubted(store.sql, null),
};

test.each(Object.keys(COMMANDS))(
  'set ahead while no daemon runs, %s: the next daemon detects it',
  async (name) => {
    await store.sql`
      update catalog_internal.due set due_at = 'infinity', doubt = 'implausible', reason = 'doubted' where sku = 'A'`;
    await setClockAhead(store.sql, 90 * DAY);
    await COMMANDS[name]?.();
    await setClockAhead(store.sql, 0);
    expect((await putClockRight(store.sql))?.seconds).toBeCloseTo(90 * DAY, -1);
    const [{ now }] = await store.sql<[{ now: Date }]>`select clock_timestamp() as now`;
    const late = await timesAfter(store.sql, new Date(now.getTime() + 8 * DAY * 1000));
    expect(late).toEqual({});
  },
);

test('an answer in time leaves the high-water mark; a late one by a correct clock raises it to the present', async () => {
  const before = await readClock(store.sql);
  await applyAnswer(store.sql, await claimAll(store.sql), [found('A', { 9: 11_000, 10: 12_000 })], REFRESH);
  expect((await readClock(store.sql))?.highWater).toBe(before?.highWater);
  await mark(store.sql, SKUS);
  const claim = await claimAll(store.sql);
  const askedAt = new Date(claim.askedAt.getTime() - 61_000);
  await applyAnswer(store.sql, { ...claim, askedAt }, [found('A', { 9: 12_000, 10: 12_000 })], REFRESH);
  const after = await readClock(store.sql);
  expect(after?.highWater).toBeGreaterThan(before?.highWater ?? 0);
  expect(after?.highWater).toBeLessThanOrEqual(after?.now ?? 0);
  expect(await putClockRight(store.sql)).toBeNull();
});

test('set ahead while the partner refuses a request: the back-off is no longer than configured', async () => {
  const pacer = createPacer(store.sql, systemClock, {
    maxPerWindow: 120,
    windowMs: 60_000,
    backoffMs: 60_000,
  });
  const sent = await pacer.acquire('delta', 0);
  if (sent.kind !== 'granted') throw new Error('no permit');
  await setClockAhead(store.sql, 90 * DAY);
  await sent.permit.settle('throttled-or-forbidden');
  await setClockAhead(store.sql, 0);
  expect((await pacer.acquire('delta', 0)).kind).toBe('wait');
  expect((await putClockRight(store.sql))?.seconds).toBeCloseTo(90 * DAY, -1);
  const waits = await pacer.acquire('delta', 0);
  expect(waits).toMatchObject({ kind: 'wait', because: 'silence' });
  expect(waits).toHaveProperty('forMs', expect.closeTo(60_000, -4));
});
