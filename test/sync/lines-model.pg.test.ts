import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { planLive } from '../../src/sync/live/plan-live.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { empty, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';
import { runs } from '../support/soak.ts';

/*
 * Lines while anything may happen to their SKUs: releases and single moves, names that change, SKUs that are
 * deleted, withdrawn, marked and claimed by others, several calls at once. No SKU ever waits longer than the
 * longest wait, and in the end prices are the partner's.
 */

const store = useStore();
const MINUTE = 60_000;
const SKUS = Array.from({ length: 60 }, (_, i) => `L${String(i).padStart(2, '0')}`);
const NAMES = ['Acme', 'Other', 'x'.repeat(200), ' ', null] as const;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };

interface Truth {
  prices: number[];
  brand: string | null;
  model: string | null;
}

class Partner {
  readonly skus = new Map<string, Truth>(
    SKUS.map((sku) => [sku, { prices: [100, 200, 300, 400], brand: 'Acme', model: 'One' }]),
  );

  answer(asked: readonly string[]): BulkAnswer {
    const results = new Map(asked.map((sku): [string, LowestRecord] => [sku, this.#record(sku)]));
    return { results, notFound: [], deferred: [], errors: [], requested: null };
  }

  #record(sku: string): LowestRecord {
    const { prices, brand, model } = this.skus.get(sku) ?? { prices: [], brand: null, model: null };
    const metadata = { ...eachColumn(() => null), brand, model, name: sku };
    const sizes = new Map(prices.map((price, size) => [String(size), { price, entry: null }]));
    return { sizes, metadata, product: { name: sku, brand, model } };
  }
}

function context(partner: Partner, events: SyncEvent[]): SyncContext {
  const { sql } = store;
  const settings = settingsWith({
    LIVE_INTERVAL: '1s',
    PARTNER_RATE_LIMIT: '12',
    PARTNER_RATE_SHARE: '1',
    BULK_LIVE_BUDGET: '4',
    BULK_MAX_SKUS: '20',
  });
  return {
    observers: NO_OBSERVERS,
    sql,
    pacer: createPacer(sql, systemClock, { maxPerWindow: 1_000_000, windowMs: MINUTE, backoffMs: MINUTE }),
    client: {
      bulk: async (permit: { settle(outcome: string): Promise<void> }, skus: readonly string[]) => {
        await permit.settle('ok');
        return partner.answer(skus);
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings,
    tracer: NO_TRACER,
  } as unknown as SyncContext;
}

/** Advances everything that has a time by `minutes`. */
async function pass({ floors }: SyncContext, minutes: number): Promise<void> {
  await store.sql.unsafe(`
    update catalog.skus set asked_at = asked_at - interval '${minutes} minutes', priced_at = priced_at - interval '${minutes} minutes';
    update catalog_internal.due set due_at = due_at - interval '${minutes} minutes', held_until = held_until - interval '${minutes} minutes';
    update catalog_internal.live_lines set weighed_at = weighed_at - interval '${minutes} minutes', since = since - interval '${minutes} minutes';
    update catalog_internal.releases set early_at = early_at - interval '${minutes} minutes'`);
  floors.reset();
}

const index = fc.nat(SKUS.length - 1);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('calls' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), minutes: fc.integer({ min: 1, max: 20 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), odd: fc.nat(6) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), sku: index, size: fc.nat(3) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('rename' as const),
      sku: index,
      name: fc.nat(NAMES.length - 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('delete', 'withdraw', 'mark', 'claim', 'plan'),
      sku: index,
    }),
  },
);
type Step = (typeof step extends fc.Arbitrary<infer T> ? T : never) & { readonly kind: string };

async function carryOut(ctx: SyncContext, partner: Partner, taken: Step): Promise<void> {
  const { sql } = store;
  const skuOf = (at: number) => SKUS[at] ?? '';
  const truth = 'sku' in taken ? partner.skus.get(skuOf(taken.sku)) : undefined;
  if (taken.kind === 'calls') await calls(ctx, taken.count);
  else if (taken.kind === 'pass') await pass(ctx, taken.minutes);
  else if (taken.kind === 'release')
    for (const [at, each] of [...partner.skus.values()].entries())
      if (each.brand === 'Acme' && at % 7 !== taken.odd) each.prices = each.prices.map((price) => price + 7);
  if (taken.kind === 'move' && truth !== undefined)
    truth.prices[taken.size] = (truth.prices[taken.size] ?? 0) + 5;
  if (taken.kind === 'rename' && truth !== undefined) truth.brand = NAMES[taken.name] ?? null;
  if (!('sku' in taken)) return;
  const sku = skuOf(taken.sku);
  if (taken.kind === 'delete') {
    await sql`delete from catalog.skus where sku = ${sku}`;
    partner.skus.delete(sku);
  }
  if (taken.kind === 'withdraw')
    await sql`update catalog.skus set price_source = 'snapshot' where sku = ${sku}`;
  if (taken.kind === 'mark') await mark(sql, partner.skus.has(sku) ? [sku] : [], 'refresh');
  if (taken.kind === 'claim')
    await sql`update catalog_internal.due set claim = 7, held_until = now() + interval '5 minutes' where sku = ${sku} and claim is null`;
  if (taken.kind === 'plan') await planLive(ctx);
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
async function waiting(): Promise<string[]> {
  const { maxIntervalMinutes } = await readLivePlan(store.sql);
  const rows = await store.sql<{ sku: string }[]>`
    select sku from catalog_internal.due d join catalog.skus s using (sku)
    where d.reason = 'live' and s.price_source = 'live' and s.asked_at is not null and d.claim is null
      and d.due_at > greatest(now(), s.asked_at) + make_interval(secs => 60 * ${maxIntervalMinutes ?? 0}::float8 + 1)`;
  return rows.map(({ sku }) => sku);
}

async function wrong(partner: Partner): Promise<string[]> {
  const rows = await store.sql<{ sku: string; prices: number[] | null }[]>`
    select s.sku, (select array_agg(p.price order by p.size) from catalog.prices p where p.sku = s.sku) as prices
    from catalog.skus s where s.price_source = 'live' order by s.sku`;
  return rows.flatMap(({ sku, prices }) =>
    JSON.stringify(prices) === JSON.stringify(partner.skus.get(sku)?.prices) ? [] : [sku],
  );
}

/** Besides the drawn histories: one in which releases occur, are suspected and confirmed. */
const SHOWN = [5, 1, 4].flatMap((odd): Step[] => [
  { kind: 'pass', minutes: 20 },
  { kind: 'calls', count: 4 },
  { kind: 'release', odd },
  ...Array.from({ length: 6 }, (): Step[] => [
    { kind: 'pass', minutes: 3 },
    { kind: 'calls', count: 4 },
  ]).flat(),
]);
const HISTORIES = runs(2, 10);

test('whatever happens to the SKUs of lines, none waits too long, and in the end prices are the partner’s', async () => {
  const turns = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) => {
      await empty(store.sql);
      const [partner, events] = [new Partner(), [] as SyncEvent[]];
      const ctx = context(partner, events);
      await knownSkus(store.sql, SKUS, { priceSource: 'live' });
      await mark(store.sql, SKUS, 'live', true);
      await planLive(ctx);
      while (await calls(ctx, 2));
      await store.sql`update catalog_internal.live_rates set wholesale_minutes = 2880`;
      for (const taken of [
        ...steps,
        { kind: 'release', odd: 3 },
        { kind: 'pass', minutes: 3 },
        { kind: 'calls', count: 4 },
      ] as Step[]) {
        await carryOut(ctx, partner, taken);
        expect({ taken, waiting: await waiting() }).toEqual({ taken, waiting: [] });
      }
      await pass(ctx, 10_000);
      await store.sql`update catalog_internal.due set claim = null, held_until = null`;
      await allCalls(ctx);
      expect(await wrong(partner)).toEqual([]);
      // SKUs refreshed just before the last suspicion are refreshed again a minute later.
      for (let rounds = 0; rounds < 3; rounds += 1) {
        await pass(ctx, 10);
        await allCalls(ctx);
      }
      const [{ hazards }] = await store.sql<[{ hazards: number }]>`
        select count(*)::int as hazards from catalog_internal.live_rates join catalog.skus using (sku)
        where hazard is not null and price_source = 'live'`;
      expect(hazards).toBe(0);
      for (const { event } of events) turns.add(event);
    }),
    // Each run takes seconds: a failure is reported at once with its seed, instead of being shrunk for minutes.
    { numRuns: HISTORIES + 1, examples: [[SHOWN]], endOnFailure: true },
  );
  // The histories did exercise releases.
  expect(turns).toContain('release.suspected');
  expect(turns).toContain('release.confirmed');
}, 300_000);
