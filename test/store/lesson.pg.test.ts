import { describe, expect, test } from 'vitest';
import { type Lesson, storeLesson } from '../../src/store/call/call-lesson.ts';
import { connect } from '../../src/store/connection/db.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import { NO_CEILING, storeCeiling } from '../../src/store/live/limits.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import { HOUR, useStore, failCall } from './support.ts';

const store = useStore();
const NOTHING: Lesson = {
  call: null,
  budget: null,
  ceiling: null,
  ceilingStep: 0,
  trial: false,
  incident: null,
};

const WORKED = { failures: 0, callSize: null, cleared: null };

describe('what a call has taught', () => {
  const stored = async () => {
    const [row] = await store.sql`
      select live_budget as budget, per_minute as ceiling, extract(epoch from since)::float8 * 1000 as at,
        (select count(*)::int from catalog_internal.live_calls) as calls
      from catalog_internal.sync, catalog_internal.live_ceiling`;
    return row;
  };
  const reprice = async () => {
    const [row] = await store.sql<[{ succeeded: Date | null; outcome: string | null }]>`
      select succeeded_at as succeeded, outcome from catalog_internal.tasks where task = 'reprice'`;
    return row;
  };

  test('is stored, and if it is nothing, everything stays as it is', async () => {
    const call = { computed: 3, deferred: 1, snapshotAsked: 90, snapshotDeferred: 0 };
    await storeLesson(
      store.sql,
      { ...NOTHING, call, budget: 4.5, ceiling: { ...NO_CEILING, step: 1, perMinute: 88, since: 5000 } },
      WORKED,
    );
    const taught = { budget: 4.5, ceiling: 88, at: 5000, calls: 1 };
    expect(await stored()).toEqual(taught);
    expect(await readLivePlan(store.sql)).toMatchObject({ computed: 3, best: 3 });
    await storeLesson(store.sql, NOTHING, WORKED);
    expect(await stored()).toEqual(taught);
    const forgotten = { ...NOTHING, ceiling: { ...NO_CEILING, step: 2 }, ceilingStep: 1 };
    expect(await storeLesson(store.sql, forgotten, WORKED)).toMatchObject({ ceilingMoved: false });
    expect(await stored()).toEqual({ ...taught, ceiling: null, at: 0 });
  });

  test('returns unused credit, unless the ceiling is met', async () => {
    const from = async () => {
      const [{ at }] = await store.sql<[{ at: number }]>`
        select extract(epoch from credit_from - since)::float8 as at from catalog_internal.live_ceiling`;
      return at;
    };
    await store.sql`update catalog_internal.live_ceiling set since = now(), credit_from = now()`;
    expect(await storeLesson(store.sql, NOTHING, { ...WORKED, returnedMs: 1500 })).toMatchObject({
      ceilingMoved: false,
    });
    expect(await from()).toBeCloseTo(-1.5, 3);
    await storeLesson(store.sql, NOTHING, WORKED);
    expect(await from()).toBeCloseTo(-1.5, 3);
    await store.sql`update catalog_internal.live_ceiling set per_minute = 5, blocked_at = now(), failed_at = now()`;
    await storeLesson(store.sql, NOTHING, { ...WORKED, returnedMs: 1500 });
    expect(await from()).toBeCloseTo(-1.5, 3);
  });

  test('about the ceiling is not stored if another call has changed it, and each call learns whether it was', async () => {
    const first = { ...NO_CEILING, step: 1, perMinute: 88, since: 5000 };
    await storeLesson(store.sql, { ...NOTHING, ceiling: first }, WORKED);
    const late = { ...NOTHING, ceiling: { ...first, perMinute: 33 } };
    expect(await storeLesson(store.sql, late, WORKED)).toMatchObject({ ceilingMoved: true });
    expect(await storeLesson(store.sql, NOTHING, WORKED)).toMatchObject({ ceilingMoved: true });
    expect(await storeLesson(store.sql, { ...NOTHING, ceilingStep: 1 }, WORKED)).toMatchObject({
      ceilingMoved: false,
    });
    expect(await stored()).toMatchObject({ ceiling: 88 });
    expect(await storeCeiling(store.sql, { ...first, perMinute: 33 })).toBe(false);
    expect(await storeCeiling(store.sql, { ...first, step: 2, perMinute: 33 })).toBe(true);
    expect(await stored()).toMatchObject({ ceiling: 33 });
  });

  test('if it ends a block, restarts the growth of what may be requested', async () => {
    const from = async () => {
      const { creditFrom, now } = await readLivePlan(store.sql);
      return now - creditFrom;
    };
    await store.sql`update catalog_internal.live_ceiling set credit_from = now() - interval '1 hour'`;
    const blocked = { ...NO_CEILING, step: 1, perMinute: 88, blockedAt: 5000 };
    await storeCeiling(store.sql, blocked);
    expect(await from()).toBeGreaterThan(3_599_000);
    await storeCeiling(store.sql, { ...blocked, step: 2, blockedAt: null });
    expect(await from()).toBeLessThan(60_000);
  });

  test('includes an applied answer, noted every five seconds at most', async () => {
    await storeLesson(store.sql, NOTHING, WORKED);
    const { succeeded } = await reprice();
    expect(succeeded).toBeInstanceOf(Date);
    await storeLesson(store.sql, NOTHING, WORKED);
    expect((await reprice()).succeeded).toEqual(succeeded);
    await store.sql`update catalog_internal.tasks set succeeded_at = now() - interval '6 seconds'`;
    await storeLesson(store.sql, NOTHING, WORKED);
    expect((await reprice()).succeeded?.getTime()).toBeGreaterThanOrEqual(succeeded?.getTime() ?? Infinity);
  });

  test('ends the pause between failing calls if it comes from the call that works, and no other', async () => {
    await failCall(store.sql, HOUR, 0);
    await storeLesson(store.sql, NOTHING, WORKED);
    expect(await callPause(store.sql)).toMatchObject({ failures: 1 });
    await storeLesson(store.sql, NOTHING, { failures: 1, callSize: null, cleared: null });
    expect(await callPause(store.sql)).toEqual({ ms: 0, failures: 0, rejections: 0 });
    expect((await reprice()).outcome).toBe('done');
  });

  test('does not wait for a manifest being merged, and is then stored without the budget', async () => {
    const other = connect(store.url, { max: 1 });
    await other.begin(async (tx) => {
      await tx`select from catalog_internal.sync for update`;
      await storeLesson(
        store.sql,
        { ...NOTHING, budget: 3, ceiling: { ...NO_CEILING, step: 1, perMinute: 7 } },
        WORKED,
      );
    });
    await other.end({ timeout: 2 });
    expect(await stored()).toMatchObject({ budget: null, ceiling: 7 });
    await storeLesson(store.sql, { ...NOTHING, budget: 3 }, WORKED);
    expect(await stored()).toMatchObject({ budget: 3 });
  });
});
