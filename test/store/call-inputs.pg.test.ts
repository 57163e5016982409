import { describe, expect, test } from 'vitest';
import {
  pruneLiveCalls,
  rateGroups,
  readLivePlan,
  storeRefreshThreshold,
} from '../../src/store/live/live.ts';
import { unscheduledLive } from '../../src/store/live/order.ts';
import { callInputs, knownSkus, mark, useStore } from './support.ts';

const store = useStore();
const NOT_IDLE = { minutes: 0, overdueMinutes: null, refreshedAt: null };
const NO_THRESHOLD = { refreshThreshold: null, maxIntervalMinutes: null, earlyMinutes: null };

describe('the inputs of a call', () => {
  test('count live SKUs as due as many minutes early as the plan says', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B'], { priceSource: 'live' });
    await mark(sql, ['A', 'B'], 'live', true);
    await sql`
      update catalog_internal.due set due_at = now() + case sku when 'A' then interval '9 minutes' else interval '11 minutes' end`;
    await sql`update catalog_internal.live_plan set early_minutes = 10`;
    expect((await callInputs(sql)).due).toEqual([{ lane: 'live', live: true, count: 1 }]);
    await sql`update catalog_internal.live_plan set early_minutes = null`;
    expect((await callInputs(sql)).due).toEqual([]);
  });

  test('contain the suspects of the largest calls first, and live ones before others', async () => {
    const { sql } = store;
    await mark(sql, ['A', 'B', 'C', 'D']);
    await sql`
      update catalog_internal.due set largest_call = case when sku in ('A', 'B') then 25 else 50 end, live = sku in ('A', 'C')`;
    expect((await callInputs(sql)).suspects.map(({ largestCall, live }) => [largestCall, live])).toEqual([
      [50, true],
      [50, false],
      [25, true],
      [25, false],
    ]);
  });
});

describe('the plan of live refreshes', () => {
  const calls = async (...secondsAgo: readonly number[]) => {
    for (const seconds of secondsAgo)
      await store.sql`
        insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
        values (now() - make_interval(secs => ${seconds}), 1, 0, 0, 0)`;
  };

  test('counts the calls of the last minute, which are kept for ten', async () => {
    await calls(20, 30, 90, 500, 700);
    await pruneLiveCalls(store.sql);
    expect(await store.sql`select from catalog_internal.live_calls`).toHaveLength(4);
    expect(await readLivePlan(store.sql)).toMatchObject({ computed: 2 });
  });

  test('is not stored if an incident has begun or ended since it was made', async () => {
    const { sql } = store;
    await sql`update catalog_internal.live_plan set incident_because = 'live-count', incident_since = to_timestamp(1000), solved_at = null`;
    await storeRefreshThreshold(sql, { ...NO_THRESHOLD, refreshThreshold: 1 }, NOT_IDLE, null);
    await storeRefreshThreshold(sql, { ...NO_THRESHOLD, refreshThreshold: 2 }, NOT_IDLE, 2_000_000);
    expect(await readLivePlan(sql)).toMatchObject({ refreshThreshold: null, unsolved: true });
    await storeRefreshThreshold(sql, { ...NO_THRESHOLD, refreshThreshold: 3 }, NOT_IDLE, 1_000_000);
    expect(await readLivePlan(sql)).toMatchObject({ refreshThreshold: 3, unsolved: false });
  });

  test('groups live SKUs by rate and weight; during an incident, all SKUs with a price', async () => {
    const { sql } = store;
    await knownSkus(sql, ['live', 'heavy'], { priceSource: 'live' });
    await knownSkus(sql, ['priced', 'pending']);
    await sql`update catalog.skus set state = 'priced' where sku = 'priced'`;
    await mark(sql, ['live', 'heavy'], 'live', true);
    await mark(sql, ['priced', 'pending'], 'sweep', false);
    await sql`insert into catalog_internal.watched (sku, weight) values ('heavy', 64)`;
    const groups = async (everything: boolean) =>
      (await rateGroups(sql, { alpha: 1, beta: 120 }, everything))
        .map(({ count, weight }) => [count, weight])
        .toSorted(([, a = 0], [, b = 0]) => a - b);
    expect(await groups(false)).toEqual([
      [1, 1],
      [1, 64],
    ]);
    expect(await groups(true)).toEqual([
      [2, 1],
      [1, 64],
    ]);
  });

  test('leaves out SKUs that are being requested', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B'], { priceSource: 'live' });
    await sql`update catalog.skus set state = 'priced'`;
    await mark(sql, ['A', 'B'], 'live', true);
    await sql`update catalog_internal.due set claim = 7, held_until = now() + interval '1 minute' where sku = 'A'`;
    const all = { after: '', limit: 10, scheduled: true, incident: false };
    expect((await unscheduledLive(sql, all)).map(({ sku }) => sku)).toEqual(['B']);
  });
});
