import { describe, expect, test } from 'vitest';
import { type Lesson, storeLesson } from '../../src/store/bulk-call.ts';
import { connect } from '../../src/store/db.ts';
import { readLivePlan } from '../../src/store/live.ts';
import { callPause } from '../../src/store/tasks.ts';
import { HOUR, useStore, failCall } from './support.ts';

const store = useStore();
const NOTHING: Lesson = { call: null, budget: null, ceiling: null, trial: false, incident: null };

describe('what a call has taught', () => {
  const stored = async () => {
    const [row] = await store.sql`
      select live_budget as budget, ceiling_per_minute as ceiling, extract(epoch from ceiling_at)::float8 * 1000 as at,
        (select count(*)::int from catalog_internal.live_calls) as calls
      from catalog_internal.sync, catalog_internal.live_plan`;
    return row;
  };
  const reprice = async () => {
    const [row] = await store.sql<[{ succeeded: Date | null; outcome: string | null }]>`
      select succeeded_at as succeeded, outcome from catalog_internal.tasks where task = 'reprice'`;
    return row;
  };

  test('is stored, and where it is nothing, everything stays as it is', async () => {
    const call = { computed: 3, deferred: 1, snapshotAsked: 90, snapshotDeferred: 0 };
    await storeLesson(
      store.sql,
      { ...NOTHING, call, budget: 4.5, ceiling: { perMinute: 88, at: 5000 } },
      { failures: 0, callSize: null, cleared: null },
    );
    const taught = { budget: 4.5, ceiling: 88, at: 5000, calls: 1 };
    expect(await stored()).toEqual(taught);
    expect(await readLivePlan(store.sql)).toMatchObject({ computed: 3, best: 3 });
    await storeLesson(store.sql, NOTHING, { failures: 0, callSize: null, cleared: null });
    expect(await stored()).toEqual(taught);
    await storeLesson(
      store.sql,
      { ...NOTHING, ceiling: { perMinute: null, at: 0 } },
      { failures: 0, callSize: null, cleared: null },
    );
    expect(await stored()).toEqual({ ...taught, ceiling: null, at: 0 });
  });

  test('an answer that was applied is noted, every five seconds at most', async () => {
    await storeLesson(store.sql, NOTHING, { failures: 0, callSize: null, cleared: null });
    const { succeeded } = await reprice();
    expect(succeeded).toBeInstanceOf(Date);
    await storeLesson(store.sql, NOTHING, { failures: 0, callSize: null, cleared: null });
    expect((await reprice()).succeeded).toEqual(succeeded);
    await store.sql`update catalog_internal.tasks set succeeded_at = now() - interval '6 seconds'`;
    await storeLesson(store.sql, NOTHING, { failures: 0, callSize: null, cleared: null });
    expect((await reprice()).succeeded?.getTime()).toBeGreaterThanOrEqual(succeeded?.getTime() ?? Infinity);
  });

  test('the pause between failing calls ends with one that works, and with no other', async () => {
    await failCall(store.sql, HOUR, 0);
    await storeLesson(store.sql, NOTHING, { failures: 0, callSize: null, cleared: null });
    expect(await callPause(store.sql)).toMatchObject({ failures: 1 });
    await storeLesson(store.sql, NOTHING, { failures: 1, callSize: null, cleared: null });
    expect(await callPause(store.sql)).toEqual({ ms: 0, failures: 0 });
    expect((await reprice()).outcome).toBe('done');
  });

  test('does not wait for a manifest that is being merged, and what is stored meanwhile is all but the budget', async () => {
    const other = connect(store.url, { max: 1 });
    await other.begin(async (tx) => {
      await tx`select from catalog_internal.sync for update`;
      await storeLesson(
        store.sql,
        { ...NOTHING, budget: 3, ceiling: { perMinute: 7, at: 0 } },
        { failures: 0, callSize: null, cleared: null },
      );
    });
    await other.end({ timeout: 2 });
    expect(await stored()).toMatchObject({ budget: null, ceiling: 7 });
    await storeLesson(store.sql, { ...NOTHING, budget: 3 }, { failures: 0, callSize: null, cleared: null });
    expect(await stored()).toMatchObject({ budget: 3 });
  });
});
