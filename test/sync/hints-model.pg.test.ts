import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { readManifestSources, type HintableLines } from '../../src/store/catalog/manifest-hints.ts';
import { putClockRight } from '../../src/store/clock.ts';
import type { HintRecord } from '../../src/store/live/hint-state.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import { pruneHints } from '../../src/store/sellers/hints.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { hintPrecision, mostWaiting, mostByManifest } from '../../src/sync/live/hints.ts';
import { planLive } from '../../src/sync/live/plan-live.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { baseline, line } from '../store/manifest.ts';
import { empty, knownSkus, mark, useStore } from '../store/support.ts';
import { runs } from '../support/soak.ts';
import { MINUTE, contextOf, FIRST_PRICE, HintedPartner, passAll, SKUS } from './hint-histories.ts';

/*
 * Hints while everything else happens: moves that are told and others; sources that are right, wrong or flood;
 * SKUs that cross, are withdrawn, deleted, marked and claimed by others; several calls at once; and neighbours on
 * the database who lock hints, delete them or leave transactions open. No call waits or fails because of them, no
 * SKU waits longer than the longest wait, and in the end prices are the partner's.
 */

const store = useStore();
/** Less than any lock timeout, and less than the timeout of an idle transaction. */
const CALL_MS = 8000;
const NAMES = ['', ' \n', 'x'.repeat(61), 'manifest.sizes', 'delta.now_live', 'ÜNÏ\tx', null] as const;
const TABLES = ['hints', 'waiting_hints', 'hint_sources'] as const;
const LOCKS = [
  ...TABLES.flatMap((table) => [
    `lock table catalog_internal.${table}`,
    `lock table catalog_internal.${table} in share mode`,
    `select from catalog_internal.${table} for update`,
    `delete from catalog_internal.${table}`,
    `truncate catalog_internal.${table}`,
  ]),
  "select catalog.hint('L00', 'good')",
  "select catalog.hint(sku, 'flood') from catalog.skus",
];
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };

const index = fc.nat(SKUS.length - 1);
const of = <K extends string, T>(
  kind: K,
  more: { [P in keyof T]: fc.Arbitrary<T[P]> },
): fc.Arbitrary<{ readonly kind: K } & T> => fc.record<T>(more).map((rest) => ({ kind, ...(rest as T) }));
const step = fc.oneof(
  { weight: 4, arbitrary: of('calls', { count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 3, arbitrary: of('pass', { minutes: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 3, arbitrary: of('move', { sku: index, told: fc.boolean(), back: fc.boolean() }) },
  { weight: 2, arbitrary: of('junk', { skus: fc.array(index, { minLength: 1, maxLength: 20 }) }) },
  { weight: 1, arbitrary: of('flood', {}) },
  { weight: 1, arbitrary: of('odd', { sku: index, name: fc.nat(NAMES.length - 1) }) },
  {
    weight: 1,
    arbitrary: of('sku', {
      does: fc.constantFrom('delete', 'withdraw', 'cross', 'cross-back', 'mark', 'claim'),
      sku: index,
    }),
  },
  { weight: 2, arbitrary: of('neighbour', { does: fc.constantFrom(...LOCKS), keeps: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: of('operator', { table: fc.constantFrom(...TABLES), truncates: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: of('manifest', {
      newer: fc.subarray(SKUS, { maxLength: 40 }),
      resized: fc.subarray(SKUS, { maxLength: 10 }),
    }),
  },
  { weight: 1, arbitrary: of('plan', {}) },
  { weight: 1, arbitrary: of('clock', {}) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function hint(skus: readonly (string | undefined)[], source: string | null): Promise<boolean[]> {
  const rows = await store.sql<{ taken: boolean }[]>`
    select catalog.hint(sku, ${source}) as taken from unnest(${skus as string[]}::text[]) as s(sku)`;
  return rows.map(({ taken }) => taken);
}

/** Makes the live plan, and does what maintenance does with hints. */
async function plan(ctx: SyncContext): Promise<void> {
  await planLive(ctx);
  await pruneHints(ctx.sql);
}

async function carryOut(ctx: SyncContext, partner: HintedPartner, taken: Step): Promise<void> {
  const { sql } = store;
  switch (taken.kind) {
    case 'calls':
      await timely(ctx, taken.count);
      return;
    case 'pass':
      await passAll(ctx, taken.minutes);
      return;
    case 'move': {
      const sku = SKUS[taken.sku] ?? '';
      const prices = partner.prices.get(sku);
      if (prices === undefined) return;
      // Back to the first price, or on.
      prices[0] = taken.back ? FIRST_PRICE : (prices[0] ?? 0) + 5;
      if (taken.told) await hint([sku], 'good');
      return;
    }
    case 'junk':
      await hint(
        taken.skus.map((at) => SKUS[at]),
        'junk',
      );
      return;
    case 'flood':
      await hint(SKUS, 'flood');
      return;
    case 'odd': {
      expect(await hint(['nobody knows it'], 'good')).toEqual([false]);
      const [isTaken] = await hint([SKUS[taken.sku]], NAMES[taken.name] ?? null);
      if (NAMES[taken.name] !== 'ÜNÏ\tx') expect({ taken, isTaken }).toEqual({ taken, isTaken: false });
      return;
    }
    case 'sku':
      await happens(partner, taken.does, SKUS[taken.sku] ?? '');
      return;
    case 'neighbour':
      await beside(ctx, taken.does, taken.keeps);
      return;
    case 'operator':
      await sql.unsafe(`${taken.truncates ? 'truncate' : 'delete from'} catalog_internal.${taken.table}`);
      return;
    case 'manifest':
      await manifest(partner, taken.newer, taken.resized);
      ctx.floors.reset();
      return;
    case 'plan':
      await plan(ctx);
      return;
    case 'clock':
      await sql`update catalog_internal.clock set high_water = clock_timestamp() + interval '2 hours'`;
      await putClockRight(sql);
      ctx.floors.reset();
  }
}

async function happens(partner: HintedPartner, does: string, sku: string): Promise<void> {
  const { sql } = store;
  const delta = { since: 't', toSnapshot: 't', changed: [], removed: [], nowLive: [] };
  const isThere = partner.prices.has(sku);
  if (does === 'delete') {
    await sql`delete from catalog.skus where sku = ${sku}`;
    partner.prices.delete(sku);
  }
  if (does === 'withdraw' && isThere) {
    partner.prices.delete(sku);
    await applyDelta(sql, { ...delta, removed: [sku] });
  }
  if (does === 'cross' && isThere) await applyDelta(sql, { ...delta, changed: [sku] });
  if (does === 'cross-back' && isThere) await applyDelta(sql, { ...delta, changed: [sku], nowLive: [sku] });
  if (does === 'mark') await mark(sql, isThere ? [sku] : [], 'refresh');
  if (does === 'claim')
    await sql`update catalog_internal.due set claim = 7, held_until = now() + interval '5 minutes' where sku = ${sku} and claim is null`;
}

/** Applies a manifest of all SKUs. The lines of some are newer, or differ from the SKU in their sizes. */
async function manifest(
  partner: HintedPartner,
  newer: readonly string[],
  resized: readonly string[],
): Promise<void> {
  const records = await readManifestSources(store.sql);
  const updatedAt = new Date().toISOString();
  const lines = [...partner.prices].map(([sku, { length }]) => ({
    ...line(sku, { priceSource: 'live' }),
    sizes: resized.includes(sku) ? length + 1 : length,
    ...(newer.includes(sku) ? { updatedAt } : {}),
  }));
  const hinting = records && { most: (lines: HintableLines) => mostByManifest(records, lines), seed: 3 };
  await baseline(store.url, lines, { token: { snapshotId: 't', generatedAt: new Date(), hinting } });
}

/** Makes calls while a neighbour's transaction is open, which is then committed or rolled back. */
async function beside(ctx: SyncContext, does: string, keeps: boolean): Promise<void> {
  const undone = new Error('undone');
  await store.sql
    .begin(async (tx) => {
      await tx.unsafe(does);
      await timely(ctx, 3);
      await plan(ctx);
      if (!keeps) throw undone;
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error;
    });
}

async function timely(ctx: SyncContext, count: number): Promise<void> {
  const before = performance.now();
  await calls(ctx, count);
  expect(performance.now() - before).toBeLessThan(CALL_MS);
}

async function calls(ctx: SyncContext, count: number): Promise<boolean> {
  const iteration = { sinceLastCallMs: Infinity };
  const done = await Promise.all(
    Array.from({ length: count }, () => repriceOnce(ctx, iteration, MINUTE, signals)),
  );
  return done.some(({ kind }) => kind === 'called');
}

async function allCalls(ctx: SyncContext): Promise<void> {
  for (let left = 100; left > 0 && (await calls(ctx, 2)); left -= 1);
}

/** Returns SKUs that would wait longer than the longest wait. */
async function waitingTooLong(): Promise<string[]> {
  const { maxIntervalMinutes } = await readLivePlan(store.sql);
  const rows = await store.sql<{ sku: string }[]>`
    select sku from catalog_internal.due d join catalog.skus s using (sku)
    where d.reason = 'live' and s.price_source = 'live' and s.asked_at is not null and d.claim is null
      and d.due_at > greatest(now(), s.asked_at) + make_interval(secs => 60 * ${maxIntervalMinutes ?? 0}::float8 + 1)`;
  return rows.map(({ sku }) => sku);
}

interface Known {
  /** How many hints of each source wait, and how many may. */
  readonly sources: Map<string, { readonly waiting: number; readonly most: number }>;
  readonly asked: Map<string, string>;
  /** Sources with more predictions tested than made. */
  readonly odd: readonly string[];
  /** SKUs whose price is in doubt because of hints that no longer wait. */
  readonly left: readonly string[];
}

async function known(): Promise<Known> {
  const sources = await store.sql<(HintRecord & { source: string; waiting: number })[]>`
    select source, coalesce(tested, 0) as tested, coalesce(expected, 0) as expected, coalesce(unmoved, 0) as unmoved,
      coalesce(moves, 0) as moves, coalesce(followed, 0) as followed, coalesce(stayed, 0) as stayed, coalesce(undone, 0) as undone,
      coalesce(waiting, 0) as waiting
    from catalog_internal.hint_sources
    full join (select source, count(*)::int as waiting from catalog_internal.waiting_hints group by source) w using (source)`;
  const skus = await store.sql<{ sku: string; asked: string; left: boolean }[]>`
    select s.sku, s.asked_at::text as asked, r.hint_hazard is not null
      and not exists (select from catalog_internal.waiting_hints q where q.sku = s.sku) as left
    from catalog.skus s left join catalog_internal.live_rates r using (sku)`;
  return {
    sources: new Map(sources.map((row) => [row.source, { waiting: row.waiting, most: mostWaiting(row) }])),
    odd: sources
      .filter(({ followed, stayed, undone }) => stayed + undone > followed + 1e-6)
      .map(({ source }) => source),
    asked: new Map(skus.map(({ sku, asked }) => [sku, asked])),
    left: skus.filter(({ left }) => left).map(({ sku }) => sku),
  };
}

/** Returns what no step may cause. */
function faults(before: Known, after: Known, taken: Step): string[] {
  const grown = [...after.sources].flatMap(([source, { waiting, most }]) => {
    const then = before.sources.get(source) ?? { waiting: 0, most: 50 };
    return waiting > Math.max(then.waiting, then.most, most) ? [`${source}: ${waiting} wait`] : [];
  });
  const refreshes = ['calls', 'neighbour'].includes(taken.kind);
  const isRefreshed = (sku: string) => refreshes && before.asked.get(sku) !== after.asked.get(sku);
  return [
    ...grown,
    ...after.odd,
    ...after.left.filter(isRefreshed).map((sku) => `${sku} is doubted for nothing`),
  ];
}

/** Returns what is wrong in the end, when nobody has hinted since the last refresh of each SKU. */
async function wrong(partner: HintedPartner): Promise<string[]> {
  const rows = await store.sql<
    { sku: string; prices: number[] | null; hints: number; hazard: number | null; told: boolean }[]
  >`
    select s.sku, (select array_agg(p.price order by p.size) from catalog.prices p where p.sku = s.sku) as prices,
      (select count(*)::int from catalog_internal.waiting_hints q where q.sku = s.sku) as hints, r.hint_hazard as hazard,
      r.told is not null as told
    from catalog.skus s left join catalog_internal.live_rates r using (sku) where s.state = 'priced' order by s.sku`;
  return rows.flatMap(({ sku, prices, hints, hazard, told }) => [
    ...(JSON.stringify(prices) === JSON.stringify(partner.prices.get(sku)) ? [] : [`${sku}: wrong price`]),
    ...(hints === 0 && hazard === null ? [] : [`${sku}: ${hints} hints, hazard ${hazard}`]),
    // The last refreshes have found nothing.
    ...(told ? [`${sku}: its last refresh has found what hints told of`] : []),
  ]);
}

/** Hints at all SKUs, none of which moves, until enough refreshes have shown it. */
async function junkIsFound(ctx: SyncContext): Promise<void> {
  for (let rounds = 0; rounds < 3; rounds += 1) {
    await hint(SKUS, 'junk');
    await calls(ctx, 1);
    await passAll(ctx, 10_000);
    await allCalls(ctx);
  }
}

/** Besides the drawn histories: one in which hints come true, bring refreshes forward, and are junk. */
const SHOWN: Step[] = [
  { kind: 'junk', skus: [0, 1, 2, 3, 4, 5] },
  { kind: 'flood' },
  { kind: 'calls', count: 4 },
  ...Array.from({ length: 10 }, (_, n): Step[] => [
    { kind: 'pass', minutes: 5 },
    { kind: 'move', sku: 2 * n, told: true, back: false },
    { kind: 'move', sku: 2 * n + 1, told: true, back: false },
    { kind: 'calls', count: 4 },
  ]).flat(),
  { kind: 'plan' },
];
const HISTORIES = runs(2, 10);

test('whatever happens meanwhile, hints delay no call and are forgotten with the refresh', async () => {
  const sources = new Set<string>();
  let [pulled, followed] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 50, size: 'max' }), async (steps) => {
      await empty(store.sql);
      const [partner, events] = [new HintedPartner(), [] as SyncEvent[]];
      const ctx = contextOf(store.sql, partner, events);
      await store.sql`update catalog_internal.sync set snapshot_id = 't'`;
      await knownSkus(store.sql, SKUS, { priceSource: 'live' });
      await mark(store.sql, SKUS, 'live', true);
      await plan(ctx);
      while (await calls(ctx, 2));
      for (const taken of steps) {
        const before = await known();
        await carryOut(ctx, partner, taken);
        const found = { waiting: await waitingTooLong(), faults: faults(before, await known(), taken) };
        expect({ taken, ...found }).toEqual({ taken, waiting: [], faults: [] });
      }
      await passAll(ctx, 10_000);
      await store.sql`update catalog_internal.due set claim = null, held_until = null`;
      await allCalls(ctx);
      const [sums] = await store.sql<[{ pulled: number; followed: number }]>`
        select coalesce(sum(pulled), 0)::int as pulled, coalesce(sum(followed), 0)::float8 as followed from catalog_internal.hint_sources`;
      pulled += sums.pulled;
      followed += sums.followed;
      await junkIsFound(ctx);
      const [junk] = await store.sql<[HintRecord?]>`
        select tested, expected, unmoved, moves from catalog_internal.hint_sources where source = 'junk'`;
      expect(junk?.tested).toBeGreaterThan(60);
      expect(hintPrecision(junk as HintRecord)).toBeLessThan(0.02);
      await plan(ctx);
      expect(await wrong(partner)).toEqual([]);
      for (const event of events) if (event.event === 'hint.source') sources.add(String(event.source));
    }),
    // Each run takes seconds: a failure is reported at once with its seed, instead of being shrunk for minutes.
    { numRuns: HISTORIES + 1, examples: [[SHOWN]], endOnFailure: true },
  );
  // The histories did exercise hints.
  expect([...sources]).toEqual(expect.arrayContaining(['good', 'junk', 'flood']));
  expect(pulled).toBeGreaterThan(0);
  expect(followed).toBeGreaterThan(0);
}, 300_000);
