import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { callInputs, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const LANES = { live: 2, error: 4 };

/** SKUs that the partner always defers, or always has in errors. It does not know any other. */
let deferred: readonly string[];
let errors: readonly string[];
let asked: (readonly string[])[];
let ctx: SyncContext;

function answer(skus: readonly string[]): BulkAnswer {
  asked.push(skus.toSorted());
  return {
    results: new Map(),
    notFound: skus.filter((sku) => !deferred.includes(sku) && !errors.includes(sku)),
    deferred: skus.filter((sku) => deferred.includes(sku)),
    errors: skus.filter((sku) => errors.includes(sku)),
    requested: null,
  };
}

beforeEach(() => {
  [deferred, errors, asked] = [[], [], []];
  ctx = {
    observers: NO_OBSERVERS,
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, { maxPerWindow: 1e6, windowMs: MINUTE, backoffMs: MINUTE }),
    client: { bulk: async (_: unknown, skus: readonly string[]) => answer(skus) },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0,
    emit: () => {},
    settings: settingsWith({ BULK_MAX_SKUS: '20' }),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
});

/** Makes one call for what is due, after ending all waits. */
async function call(): Promise<readonly string[]> {
  await store.sql`update catalog_internal.due set held_until = null`;
  ctx.floors.reset();
  const done = await repriceOnce(ctx, { sinceLastCallMs: Infinity }, MINUTE, signals);
  expect(done.kind).toBe('called');
  return asked.at(-1) ?? [];
}

const rows = async () => {
  const found = await store.sql<
    { sku: string; lane: number; deferrals: number; failures: number; minutes: number | null }[]
  >`
    select sku, lane, deferrals, failures, round(extract(epoch from held_until - now()) / 60)::int as minutes
    from catalog_internal.due order by sku`;
  return new Map(found.map(({ sku, ...row }) => [sku, row]));
};

async function live(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus, { priceSource: 'live' });
  await mark(store.sql, skus, 'live', true);
}

describe('a live SKU that is deferred each time while another is computed', () => {
  const again = async (times: number) => {
    for (let n = 0; n < times; n += 1) {
      await mark(store.sql, ['B'], 'live', true);
      await call();
    }
    return (await rows()).get('A');
  };

  test('waits longer from the third time on, and no longer comes before the others', async () => {
    await live('A', 'B');
    deferred = ['A'];
    expect(await again(1)).toMatchObject({ deferrals: 1, lane: LANES.live, minutes: 5 });
    expect(await again(1)).toMatchObject({ deferrals: 2, lane: LANES.error, minutes: 5 });
    expect(await again(1)).toMatchObject({ deferrals: 3, lane: LANES.error, minutes: 10 });
    expect(await again(4)).toMatchObject({ deferrals: 7, lane: LANES.error, minutes: 30 });
    deferred = [];
    expect(await again(1)).toMatchObject({ deferrals: 0 });
  });

  test('is no evidence of a ceiling or of a smaller budget', async () => {
    await live('A', 'B');
    deferred = ['A'];
    await again(1);
    const before = await readLivePlan(store.sql);
    await again(3);
    const plan = await readLivePlan(store.sql);
    expect(plan.ceiling).toEqual(before.ceiling);
    expect([before.partlyDeferred, plan.partlyDeferred, plan.lastDeferred]).toEqual([1, 1, 1]);
    // Alone in its calls it would be all of them.
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku = 'B'`;
    expect([await call(), await call()]).toEqual([['A'], ['A']]);
    expect((await readLivePlan(store.sql)).ceiling).toMatchObject({ perMinute: null, failedAt: null });
  });
});

test('a live SKU that is deferred again uses nothing of the ceiling: another may be asked for at once', async () => {
  await live('A', 'B');
  deferred = ['A'];
  const asOf = async () => {
    const [{ seconds }] = await store.sql<[{ seconds: number }]>`
      select extract(epoch from credit_from - now())::float8 as seconds from catalog_internal.live_ceiling`;
    return seconds;
  };
  await store.sql`update catalog_internal.due set deferrals = 1 where sku = 'A'`;
  await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku = 'B'`;
  await store.sql`
    update catalog_internal.live_ceiling set per_minute = 1, since = now(), credit_from = now() - interval '2 minutes'`;
  expect(await call()).toEqual(['A']);
  // One SKU takes a minute.
  expect(await asOf()).toBeLessThan(-50);
  await store.sql`update catalog_internal.due set due_at = now() where sku = 'B'`;
  expect(await call()).toContain('B');
  expect(await asOf()).toBeGreaterThan(-30);
});

test('if all live SKUs of two calls are deferred for the first time, the ceiling is met', async () => {
  const skus = Array.from({ length: 10 }, (_, i) => `L${i}`);
  await live(...skus);
  deferred = skus;
  await call();
  await store.sql`update catalog_internal.due set due_at = due_at - interval '1 hour' where deferrals = 0`;
  await call();
  expect((await readLivePlan(store.sql)).ceiling.blockedAt).not.toBeNull();
});

describe('while the ceiling is met', () => {
  const blocked = async () => {
    await store.sql`
      update catalog_internal.live_ceiling set per_minute = 100, blocked_at = now() - interval '2 minutes',
        failed_at = now() - interval '2 minutes', credit_from = now() - interval '2 minutes'`;
  };

  test('the SKU to try is one that was not deferred before, whichever SKUs are due first', async () => {
    await live('A', 'B', 'C', 'D');
    await mark(store.sql, ['A'], 'changed', true);
    await store.sql`update catalog_internal.due set deferrals = 1 where sku in ('A', 'B')`;
    await store.sql`update catalog_internal.due set due_at = now() - interval '1 minute' * (1 + (sku = 'D')::int) where sku in ('C', 'D')`;
    expect((await callInputs(store.sql)).untried).toBeNull();
    await blocked();
    expect((await callInputs(store.sql)).untried).toBe('D');
    expect(await call()).toEqual(['D']);
  });

  test('a SKU that is tried and deferred keeps its lane without a penalty, five times in a row', async () => {
    await live('A');
    deferred = ['A'];
    for (let n = 1; n <= 6; n += 1) {
      await blocked();
      expect((await callInputs(store.sql)).untried).toBe(n === 1 ? 'A' : null);
      await call();
      const lane = n < 6 ? LANES.live : LANES.error;
      expect((await rows()).get('A')).toMatchObject({ deferrals: n, lane, minutes: 5 });
      await store.sql`update catalog_internal.due set held_until = null`;
      expect((await callInputs(store.sql)).untried).toBe('A');
      await store.sql`update catalog_internal.due set held_until = now() + interval '1 hour'`;
    }
    expect([...(await store.sql`select catalog.explain('A') -> 'next' ->> 'deferrals' as times`)]).toEqual([
      { times: '6' },
    ]);
  });

  test('the SKU tried least often comes first, so that one that never computes does not block the others', async () => {
    await live('A', 'B', 'C');
    await store.sql`
      update catalog_internal.due set deferrals = case sku when 'A' then 3 else 1 end, last_error = 'ceiling' where sku <> 'C'`;
    await store.sql`update catalog_internal.due set due_at = now() - interval '1 minute' * (1 + (sku = 'A')::int)`;
    await blocked();
    const tried: (string | null)[] = [];
    for (let n = 0; n < 3; n += 1) {
      const { untried } = await callInputs(store.sql);
      tried.push(untried);
      await store.sql`update catalog_internal.due set held_until = now() + interval '1 hour' where sku = ${untried}`;
    }
    expect(tried).toEqual(['C', 'B', 'A']);
  });

  test('a SKU that is requested by name keeps its place after it was tried', async () => {
    await live('A', 'B');
    await store.sql`select catalog.refresh(array['B'])`;
    deferred = ['A', 'B'];
    await call();
    await store.sql`update catalog_internal.due set deferrals = 0, lane = catalog_internal.lane_of(reason)`;
    for (let n = 0; n < 3; n += 1) {
      await blocked();
      expect(await call()).toEqual(['B']);
      await store.sql`update catalog_internal.due set held_until = null`;
      expect((await rows()).get('B')).toMatchObject({ lane: 1 });
    }
  });

  test('if all were deferred often, each gets its turn, and none that never computes blocks the others', async () => {
    await live('A', 'B', 'C');
    await store.sql`
      update catalog_internal.due set deferrals = 6, lane = catalog_internal.lane_of('error'),
        due_at = now() - interval '1 minute' * (1 + (sku = 'A')::int)`;
    expect((await callInputs(store.sql)).untried).toBeNull();
    deferred = ['A', 'B', 'C'];
    const tried: (readonly string[])[] = [];
    for (let n = 0; n < 4; n += 1) {
      await blocked();
      tried.push(await call());
    }
    expect(new Set(tried.slice(0, 3).flat())).toEqual(new Set(['A', 'B', 'C']));
    expect(tried.map(({ length }) => length)).toEqual([1, 1, 1, 1]);
    expect(tried[3]).toEqual(tried[0]);
  });
});

describe('errors of all SKUs', () => {
  test('from the third call in a row on, count once against each SKU and leave its lane', async () => {
    await knownSkus(store.sql, ['A', 'B', 'C', 'D']);
    await mark(store.sql, ['A', 'B', 'C'], 'changed');
    errors = ['A', 'B', 'C', 'D'];
    await call();
    expect((await rows()).get('A')).toMatchObject({ failures: 1, lane: LANES.error, minutes: 1 });
    await call();
    await mark(store.sql, ['D'], 'changed');
    await call();
    expect((await rows()).get('A')).toMatchObject({ failures: 2, lane: LANES.error, minutes: 5 });
    expect((await rows()).get('D')).toMatchObject({ failures: 1, lane: 1, minutes: 5 });
    errors = [];
    await call();
    expect((await rows()).get('D')).toMatchObject({ failures: 0, minutes: null });
  });
});
