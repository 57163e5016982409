import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_LEARNING, type SkuResult } from '../../src/store/answer/types.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { readLearnedRates, pruneLiveCalls, rateGroups, readLivePlan } from '../../src/store/live/live.ts';
import { NO_METADATA, useStore } from './support.ts';

const store = useStore();

async function liveSkus(...skus: string[]): Promise<void> {
  await store.sql`insert into catalog.skus (sku, price_source, in_manifest) select s, 'live', true from unnest(${skus}::text[]) s`;
  await store.sql`select catalog_internal.mark_due(${skus}::text[], 'live', true)`;
}

const quota = { lane: 'live', live: true, count: 1, earlySeconds: 0 } as const;
const next = { liveMs: 60_000, snapshotMs: 1, snapshotReason: 'sweep', notFoundMs: 1, lostMs: 1 } as const;
const record = (sku: string, price: number): SkuResult => ({
  sku,
  kind: 'record',
  prices: [{ size: '7', price, entry: null }],
  product: NO_METADATA,
});

test('what a refresh learned is stored, and determines when the next refresh is due', async () => {
  await liveSkus('A', 'B');
  await store.sql`insert into catalog_internal.watched (sku, weight) values ('A', 7)`;
  await store.sql`select catalog_internal.mark_due('{A,B}'::text[], 'live', true)`;
  const looks: unknown[] = [];
  const claim = await claimDue(store.sql, { named: ['A', 'B'] }, 60_000);
  if (claim === null) throw new Error('nothing claimed');
  await applyAnswer(store.sql, claim, [record('A', 1), record('B', 1)], next, {
    learning: {
      ...NO_LEARNING,
      live: (look) => {
        looks.push({
          sku: look.sku,
          weight: look.weight,
          alpha: look.alpha,
          minutes: look.minutes,
          moved: look.moved,
        });
        return {
          sku: look.sku,
          alpha: 2,
          beta: 30,
          sizesSeen: 0,
          sizesMoved: 0,
          nextMs: look.sku === 'A' ? 5000 : 500_000,
        };
      },
    },
  });
  expect(looks).toEqual([
    { sku: 'A', weight: 7, alpha: null, minutes: null, moved: false },
    { sku: 'B', weight: 1, alpha: null, minutes: null, moved: false },
  ]);
  expect(
    await store.sql`select sku, alpha, beta, sizes_seen, sizes_moved from catalog_internal.live_rates order by sku`,
  ).toEqual([
    { sku: 'A', alpha: 2, beta: 30, sizes_seen: 0, sizes_moved: 0 },
    { sku: 'B', alpha: 2, beta: 30, sizes_seen: 0, sizes_moved: 0 },
  ]);
  const [due] = await store.sql<[{ a: number; b: number }]>`
    select (extract(epoch from max(due_at) filter (where sku = 'A') - now()))::float8 as a,
      (extract(epoch from max(due_at) filter (where sku = 'B') - now()))::float8 as b from catalog_internal.due`;
  expect(due.a).toBeLessThanOrEqual(5);
  expect(due.b).toBeGreaterThan(400);
});

test('a later refresh learns whether a price moved, and how long ago the last refresh was', async () => {
  await liveSkus('A', 'B');
  const ask = async (prices: readonly [number, number]) => {
    const told: { sku: string; moved: boolean; minutes: number | null }[] = [];
    await store.sql`update catalog_internal.due set due_at = now() - interval '1 second'`;
    const claim = await claimDue(store.sql, { named: ['A', 'B'] }, 60_000);
    if (claim === null) throw new Error('nothing claimed');
    await applyAnswer(store.sql, claim, [record('A', prices[0]), record('B', prices[1])], next, {
      learning: {
        ...NO_LEARNING,
        live: ({ sku, moved, minutes }) => {
          told.push({ sku, moved, minutes });
          return { sku, alpha: 1, beta: 1, sizesSeen: 0, sizesMoved: 0, nextMs: 1000 };
        },
      },
    });
    return told;
  };
  await ask([1, 1]);
  await store.sql`update catalog.skus set asked_at = asked_at - interval '10 minutes'`;
  const [a, b] = await ask([2, 1]);
  expect(a).toMatchObject({ sku: 'A', moved: true });
  expect(b).toMatchObject({ sku: 'B', moved: false });
  expect(a?.minutes).toBeCloseTo(10, 0);
});

test('a later refresh gets both memories, or none for what an earlier version learned', async () => {
  await liveSkus('A', 'B');
  const memories = (odds: number) => ({
    long: { alpha: 2, beta: 4000 + odds, prior: 0.25 },
    short: { alpha: 1.5, beta: 30 + odds, prior: 0.125 },
    odds,
  });
  const ask = async (odds: number) => {
    const [told, priors] = [new Map<string, unknown>(), new Map<string, unknown>()];
    await store.sql`update catalog_internal.due set due_at = now() - interval '1 second'`;
    const claim = await claimDue(store.sql, { named: ['A', 'B'] }, 60_000);
    if (claim === null) throw new Error('nothing claimed');
    await applyAnswer(store.sql, claim, [record('A', 1), record('B', 1)], next, {
      learning: {
        ...NO_LEARNING,
        live: (refresh) => {
          told.set(refresh.sku, refresh.memories ?? null);
          priors.set(refresh.sku, refresh.prior);
          const learned = { sku: refresh.sku, alpha: 1, beta: 1, sizesSeen: 0, sizesMoved: 0, nextMs: 1000 };
          return refresh.sku === 'A' ? { ...learned, prior: 0.5, memories: memories(odds) } : learned;
        },
      },
    });
    return { memories: Object.fromEntries(told), priors: Object.fromEntries(priors) };
  };
  expect(await ask(2.5)).toEqual({ memories: { A: null, B: null }, priors: { A: null, B: null } });
  expect(await ask(-1.5)).toEqual({ memories: { A: memories(2.5), B: null }, priors: { A: 0.5, B: null } });
  expect(await ask(0)).toEqual({ memories: { A: memories(-1.5), B: null }, priors: { A: 0.5, B: null } });
});

test('named SKUs are claimed beside quotas, unless another claim holds them', async () => {
  await liveSkus('A', 'B', 'C');
  const first = await claimDue(store.sql, { named: ['B'] }, 60_000);
  expect(first?.skus.map(({ sku }) => sku)).toEqual(['B']);
  const second = await claimDue(store.sql, { quotas: [{ ...quota, count: 1 }], named: ['B', 'C'] }, 60_000);
  expect(second?.skus.map(({ sku }) => sku).toSorted()).toEqual(['A', 'C']);
  expect(await claimDue(store.sql, { named: ['A', 'B'] }, 60_000)).toBeNull();
});

test('SKUs with similar rate and weight form a group; unknown ones have the prior rate', async () => {
  await liveSkus('A', 'B', 'C', 'D');
  await store.sql`insert into catalog_internal.live_rates values ('A', 1, 100), ('B', 1.01, 100), ('C', 1, 2)`;
  const groups = (await rateGroups(store.sql, { alpha: 1, beta: 1000 }, false)).toSorted(
    (a, b) => b.lambda - a.lambda,
  );
  expect(groups.map(({ count }) => count)).toEqual([1, 2, 1]);
  expect(groups[0]?.lambda).toBeCloseTo(0.5);
  expect(groups[2]?.lambda).toBeCloseTo(0.001);
});

test('the past gives the rate of SKUs never refreshed as live; an incident counts everything priced', async () => {
  await liveSkus('A', 'B');
  await store.sql`update catalog.skus set state = 'priced', first_priced_at = now() - interval '1000 minutes'`;
  await store.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select 'A', size, 1, 2, now() - make_interval(mins => n * 10) from generate_series(1, 9) n, unnest(array['40', '41']) as size
    union all select 'A', '40', 1, 2, now() - interval '4 days'`;
  await store.sql`update catalog_internal.due set live = false where sku = 'B'`;
  const prior = { alpha: 1, beta: 1000 };
  const [only, none] = await rateGroups(store.sql, prior, false);
  expect([only?.count, none]).toEqual([1, undefined]);
  expect(only?.lambda).toBeCloseTo((1 + 9) / (1000 + 1000), 4);
  const all = (await rateGroups(store.sql, prior, true)).toSorted((a, b) => a.lambda - b.lambda);
  expect(all.map(({ count }) => count)).toEqual([1, 1]);
  expect(all[0]?.lambda).toBeCloseTo(1 / 2000, 5);
});

test('the plan contains recent live computations and deferrals, and the ceiling', async () => {
  await liveSkus('A', 'B', 'C');
  const calls = [
    [0, 5, 0, 0, 0],
    [0, 3, 2, 90, 10],
    [2, 8, 0, 95, 7],
    [2, 8, 0, 95, 0],
    [6, 9, 0, 80, 80],
  ];
  for (const [minutes, ...call] of calls)
    await store.sql`
      insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
      select now() - make_interval(mins => ${minutes ?? 0}), ${call[0] ?? 0}, ${call[1] ?? 0}, ${call[2] ?? 0}, ${call[3] ?? 0}`;
  await store.sql`
    update catalog_internal.live_ceiling set per_minute = 196, since = to_timestamp(1700000000), credit_from = to_timestamp(1700000001)`;
  expect(await readLivePlan(store.sql)).toMatchObject({
    computed: 8,
    best: 5,
    partlyDeferred: 0,
    othersDeferred: 1,
    ceiling: { perMinute: 196, since: 1_700_000_000_000, blockedAt: null, failedAt: null, alike: 0, step: 0 },
    creditFrom: 1_700_000_001_000,
  });
  await store.sql`update catalog_internal.live_calls set called_at = called_at - interval '9 minutes' where computed > 5`;
  await pruneLiveCalls(store.sql);
  expect(await store.sql`select computed from catalog_internal.live_calls order by id`).toEqual([
    { computed: 5 },
    { computed: 3 },
  ]);
});

test('estimates use the same rates as p_right, and the share of SKUs with a known rate', async () => {
  const { sql } = store;
  expect(await readLearnedRates(sql)).toEqual({ groups: [], knownPart: 0 });
  await liveSkus('A', 'B', 'C', 'D');
  await sql`update catalog.skus set state = 'priced'`;
  await sql`update catalog_internal.beliefs set live_prior_minutes = 60`;
  await sql`
    insert into catalog_internal.live_rates (sku, alpha, beta, prior_part) values ('A', 1, 1120, null), ('B', 5, 200, 0.5), ('C', 1, 200, 1)`;
  const { groups, knownPart } = await readLearnedRates(sql);
  expect(knownPart).toBe(0.5);
  const found = groups
    .toSorted((a, b) => a.lambda - b.lambda)
    .map(({ count, lambda }) => [count, 1 / lambda]);
  expect(found).toEqual([
    [1, expect.closeTo(1060)],
    [1, expect.closeTo(140)],
    // The SKU about which nothing is known.
    [1, expect.closeTo(75)],
    [1, expect.closeTo(34)],
  ]);
});
