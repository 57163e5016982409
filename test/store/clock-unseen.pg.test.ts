import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { putClockRight, readClock } from '../../src/store/clock.ts';
import { connect, type Sql } from '../../src/store/db.ts';
import type { Claim } from '../../src/store/due.ts';
import { storeFailedCall } from '../../src/store/call-lesson.ts';
import { migrateDatabase } from '../../src/store/migrations.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { makeClockMovable, setClockAhead, timesAfter } from '../support/movable-clock.ts';
import { answerAsked, claimAll, found, knownSkus, mark, REFRESH } from './support.ts';

/*
 * Postgres's clock is set ahead while a call is under way, and right again before anybody has looked at it; the process that stored the
 * call's end has ended with it.
 */

const SKUS = ['A', 'B', 'C'];
const DAY = 86_400;

let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createDatabase('empty');
  await makeClockMovable(database.url);
  await migrateDatabase(database.url);
  sql = connect(database.url, { max: 2 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});
beforeEach(async () => {
  await setClockAhead(sql, 0);
  for (const table of ['skus', 'prices', 'products', 'price_history'])
    await sql.unsafe(`delete from catalog.${table}`);
  for (const table of ['due', 'unreported_moves']) await sql.unsafe(`delete from catalog_internal.${table}`);
  await sql`update catalog_internal.tasks set next_at = now(), failures = 0`;
  await sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now(), delta_checked_at = now()`;
  await sql`
    update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp(), set_back_seconds = null`;
  await knownSkus(sql, SKUS);
  await answerAsked(sql, ...SKUS.map((sku) => found(sku, { 9: 10_000, 10: 12_000 })));
  await mark(sql, SKUS);
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
      (claim: Claim) => applyAnswer(sql, claim, [result], REFRESH),
    ]),
  ),
  'a call that failed': (claim) =>
    storeFailedCall(sql, {
      claim,
      because: 'timeout',
      failures: 0,
      pauseMs: 60_000,
      holdMs: 60_000,
      largestCall: 1,
      callSize: null,
    }),
};

test.each(Object.keys(ends))(
  '%s: what that clock has dated is put right by the next daemon',
  async (name) => {
    const claim = await claimAll(sql);
    await setClockAhead(sql, 90 * DAY);
    await ends[name]?.(claim);
    await setClockAhead(sql, 0);
    const [{ now }] = await sql<[{ now: Date }]>`select clock_timestamp() as now`;
    const inTime = new Date(now.getTime() + 8 * DAY * 1000);
    expect(await timesAfter(sql, inTime)).not.toEqual({});
    expect((await putClockRight(sql))?.seconds).toBeCloseTo(90 * DAY, -1);
    expect(await timesAfter(sql, inTime)).toEqual({});
  },
);

test('an answer in time notes nothing, and one that comes late by a clock that is right raises the mark to it and no further', async () => {
  const before = await readClock(sql);
  await applyAnswer(sql, await claimAll(sql), [found('A', { 9: 11_000, 10: 12_000 })], REFRESH);
  expect((await readClock(sql))?.highWater).toBe(before?.highWater);
  await mark(sql, SKUS);
  const claim = await claimAll(sql);
  const askedAt = new Date(claim.askedAt.getTime() - 61_000);
  await applyAnswer(sql, { ...claim, askedAt }, [found('A', { 9: 12_000, 10: 12_000 })], REFRESH);
  const after = await readClock(sql);
  expect(after?.highWater).toBeGreaterThan(before?.highWater ?? 0);
  expect(after?.highWater).toBeLessThanOrEqual(after?.now ?? 0);
  expect(await putClockRight(sql)).toBeNull();
});
