import {
  type Arbitrary,
  array,
  assert,
  asyncProperty,
  boolean,
  constantFrom,
  integer,
  option,
  record,
} from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readCallInputs } from '../../src/store/call/bulk-call.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { type Lane, DUE_LANES, type DueClass, endWaits } from '../../src/store/ledger/due.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import { type LivePlan, readLivePlan } from '../../src/store/live/live.ts';
import { callInputs, claimAll, empty, HOUR, LEASE_MS, mark, NOT_EARLY, useStore } from './support.ts';

const store = useStore();
const MINUTE = 60_000;

async function liveSkus(...skus: string[]): Promise<void> {
  await store.sql`insert into catalog.skus (sku, price_source, in_manifest) select s, 'live', true from unnest(${skus}::text[]) s`;
  await store.sql`select catalog_internal.mark_due(${skus}::text[], 'live', true)`;
}

/** Sets a threshold for refreshes, so that live SKUs are chosen by value. */
const chooseByValue = () =>
  store.sql`update catalog_internal.live_plan set refresh_threshold = 1, max_interval_minutes = 60`;

/** Times are minutes from now, and far from any boundary. */
const anyRow = record({
  lane: integer({ min: 1, max: 6 }),
  live: boolean(),
  due: constantFrom<(number | null)[]>(-90, -30, 15, 45, 75, null),
  held: constantFrom<(number | null)[]>(null, null, null, -20, -10, 10, 300),
  claimed: boolean(),
  asked: constantFrom<(number | null)[]>(null, -0.4, -5.2, -50.2),
  weight: option(integer({ min: 1, max: 9 })),
  rated: boolean(),
});
const anyFacts = record({
  rows: array(anyRow, { maxLength: 30, size: 'max' }),
  fault: option(constantFrom('0014')),
  liveBudget: option(integer({ min: 1, max: 9 })),
  refreshThreshold: option(integer({ min: 1, max: 9 })),
  earlyMinutes: option(constantFrom(20, 60)),
  pause: constantFrom(-60, 60),
  failures: integer({ min: 0, max: 3 }),
  calls: array(record({ at: constantFrom(-0.5, -3, -7), n: integer({ min: 0, max: 9 }) }), { maxLength: 4 }),
  limit: integer({ min: 1, max: 5 }),
  perBudget: integer({ min: 1, max: 3 }),
});
type Facts = typeof anyFacts extends Arbitrary<infer T> ? T : never;

async function put(sql: Sql, facts: Facts): Promise<void> {
  await empty(sql);
  const rows = facts.rows.map((row, i) => ({ ...row, sku: `S${String(i).padStart(2, '0')}` }));
  await sql`
    insert into catalog.skus (sku, in_manifest, asked_at)
    select sku, true, now() + make_interval(secs => asked * 60)
    from jsonb_to_recordset(${sql.json(rows)}) as r(sku text, asked float8)`;
  // No two are due at the same time, or their order would be undefined.
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, held_until, claim)
    select sku, lane, 'changed', live,
      coalesce(now() + make_interval(secs => due * 60 + right(sku, 2)::int), 'infinity'), now() + make_interval(secs => held * 60),
      case when held is not null and claimed then 7 end
    from jsonb_to_recordset(${sql.json(rows)}) as r(sku text, lane int, live boolean, due float8, held float8, claimed boolean)`;
  await sql`
    insert into catalog_internal.watched (sku, weight) select sku, weight
    from jsonb_to_recordset(${sql.json(rows)}) as r(sku text, weight int) where weight is not null`;
  await sql`
    insert into catalog_internal.live_rates select sku, 1.5, 1 / 3.0
    from jsonb_to_recordset(${sql.json(rows)}) as r(sku text, rated boolean) where rated`;
  await sql`
    update catalog_internal.sync set manifest_applied_at = now(), catalog_fault = ${facts.fault}, live_budget = ${facts.liveBudget}`;
  await sql`update catalog_internal.live_plan set refresh_threshold = ${facts.refreshThreshold}, early_minutes = ${facts.earlyMinutes}`;
  await sql`
    update catalog_internal.tasks set next_at = now() + make_interval(mins => ${facts.pause}), failures = ${facts.failures}
    where task = 'reprice'`;
  await sql`
    insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
    select now() + make_interval(secs => at * 60), n, 1, 2 * n, n from jsonb_to_recordset(${sql.json(facts.calls)}) as c(at float8, n int)`;
}

/** A row of the ledger with the columns of its SKU; times in minutes from now. */
interface LedgerRow {
  readonly sku: string;
  readonly lane: number;
  readonly live: boolean;
  readonly due: number;
  readonly held: number | null;
  readonly asked: number | null;
  readonly weight: number;
  readonly alpha: number | null;
  readonly beta: number | null;
}

const readLedger = (sql: Sql) => sql<LedgerRow[]>`
  select sku, lane, live, ((extract(epoch from due_at) - extract(epoch from now())) / 60)::float8 as due,
    (extract(epoch from held_until - now()) / 60)::float8 as held, (extract(epoch from now() - asked_at) / 60)::float8 as asked,
    coalesce(weight, 1)::float8 as weight, alpha, beta
  from catalog_internal.due join catalog.skus using (sku)
  left join catalog_internal.watched using (sku) left join catalog_internal.live_rates using (sku)
  order by due_at, sku`;

const early = {
  usual: { ...NOT_EARLY, sweep: 20 * 60 },
  stale: { ...NOT_EARLY, live: 30 * 60, sweep: 60 * 60 },
};

/** Computes the same in parts: releases claims, and then reads one thing after the other. */
async function byParts(sql: Sql, facts: Facts) {
  await endWaits(sql, 1000);
  const pause = await callPause(sql);
  const { liveBudget, catalogState } = await readSyncState(sql);
  const live = await readLivePlan(sql);
  const rows = await readLedger(sql);
  const seconds = (lane: Lane, isLive: boolean) => {
    // Unlisted SKUs are in the live lane without counting as live.
    if (lane === 'live' && !isLive) return 0;
    if (catalogState === 'stale') return early.stale[lane];
    return early.usual[lane] + (lane === 'live' ? (live.earlyMinutes ?? 0) * 60 : 0);
  };
  const free = rows.filter(({ held }) => held === null);
  const due = free.filter((row) => row.due <= seconds(DUE_LANES[row.lane - 1] as Lane, row.live) / 60);
  const classes = DUE_LANES.flatMap((lane, i) =>
    [true, false].map((isLive): DueClass => {
      const count = due.filter((row) => row.lane === i + 1 && row.live === isLive).length;
      return { lane, live: isLive, count: Math.min(facts.limit, count) };
    }),
  ).filter(({ count }) => count > 0);
  const moments = [...free.map((row) => row.due), ...rows.flatMap(({ held }) => held ?? [])];
  const next = Math.min(...moments);
  const most = Math.min(6, Math.max(2, facts.perBudget * Math.floor(liveBudget ?? 2)));
  const candidates = due
    .filter(({ lane, live: isLive, asked }) => lane === 2 && isLive && (asked === null || asked >= 1))
    .slice(0, live.refreshThreshold === null ? 0 : most)
    .map(({ sku, weight, alpha, beta, asked }) => ({
      sku,
      weight,
      alpha,
      beta,
      minutes: asked,
      random: false,
      hazard: null,
    }));
  return {
    pause,
    sync: { liveBudget, catalogState },
    live,
    due: classes,
    nextDueMs: next === Infinity ? null : Math.max(0, next * MINUTE),
    candidates,
  };
}

describe('the inputs of a bulk call', () => {
  test('are the same in one statement as in parts, whatever the ledger contains', async () => {
    await assert(
      asyncProperty(anyFacts, async (facts) => {
        await put(store.sql, facts);
        const rollback = new Error('rolled back');
        const began = performance.now();
        let inputs: Awaited<ReturnType<typeof readCallInputs>> | undefined;
        const reading = store.sql.begin(async (tx) => {
          const { limit, perBudget } = facts;
          const candidates = { perBudget, configuredBudget: 2, least: 2, most: 6, restMinutes: 1 };
          inputs = await readCallInputs(tx as unknown as Sql, { limit, early, candidates });
          throw rollback;
        });
        await expect(reading).rejects.toBe(rollback);
        if (inputs === undefined) throw new Error('nothing was read');
        const parts = await byParts(store.sql, facts);
        expect(inputs.due.map((o) => JSON.stringify(o)).toSorted()).toEqual(
          parts.due.map(({ lane, ...rest }) => JSON.stringify({ ...rest, lane })).toSorted(),
        );
        expect(inputs.candidates.map((c) => ({ ...c, minutes: null }))).toEqual(
          parts.candidates.map((c) => ({ ...c, minutes: null })),
        );
        expect(inputs.sync).toEqual(parts.sync);
        expect(inputs.pause.failures).toBe(parts.pause.failures);
        // The two are read one after the other, seconds apart on a busy machine.
        const apartMs = performance.now() - began;
        const timeless = (plan: LivePlan) => ({ ...plan, now: 0, computedRate: plan.computedRate > 0 });
        expect(timeless(inputs.livePlan)).toEqual(timeless(parts.live));
        expect(inputs.pause.ms > 0).toBe(parts.pause.ms > 0);
        expect(Math.abs(inputs.livePlan.now - parts.live.now)).toBeLessThan(MINUTE);
        expect(inputs.nextDueMs === null).toBe(parts.nextDueMs === null);
        expect(Math.abs((inputs.nextDueMs ?? 0) - (parts.nextDueMs ?? 0))).toBeLessThanOrEqual(apartMs + 1);
        for (const [i, { minutes }] of inputs.candidates.entries())
          expect(Math.round(minutes ?? -9)).toBe(Math.round(parts.candidates[i]?.minutes ?? -9));
        const after = await readLedger(store.sql);
        await put(store.sql, facts);
        await callInputs(store.sql);
        // The one statement has released what the parts release.
        expect((await readLedger(store.sql)).map(({ sku, held }) => [sku, held === null])).toEqual(
          after.map(({ sku, held }) => [sku, held === null]),
        );
      }),
      { numRuns: 40 },
    );
  });

  test('count what is due in each class up to a limit, and nothing that is held', async () => {
    const { sql } = store;
    await mark(sql, ['held'], 'changed');
    await claimAll(sql);
    await mark(
      sql,
      Array.from({ length: 30 }, (_, i) => `S${i}`),
      'new',
    );
    await mark(sql, ['L1', 'L2'], 'live', true);
    await mark(sql, ['F'], 'sweep');
    await sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku = 'F'`;
    const { due } = await callInputs(sql);
    expect(due.toSorted((a, b) => a.count - b.count)).toEqual([
      { lane: 'live', live: true, count: 2 },
      { lane: 'new', live: false, count: 20 },
    ]);
    const usual = { ...NOT_EARLY, sweep: 7200 };
    expect((await callInputs(sql, { early: { usual, stale: NOT_EARLY } })).due).toHaveLength(3);
  });

  test('tell when the next thing happens: a SKU comes due, a wait ends, or nothing at all', async () => {
    const { sql } = store;
    const next = async () => (await callInputs(sql)).nextDueMs;
    expect(await next()).toBeNull();
    await mark(sql, ['A']);
    await sql`update catalog_internal.due set due_at = 'infinity'`;
    expect(await next()).toBeNull();
    await mark(sql, ['B'], 'sweep');
    await sql`update catalog_internal.due set due_at = now() + interval '3 hours' where sku = 'B'`;
    expect((await next()) ?? 0).toBeCloseTo(3 * HOUR, -5);
    await mark(sql, ['C']);
    expect(await next()).toBe(0);
    await claimAll(sql);
    expect((await next()) ?? 0).toBeCloseTo(LEASE_MS, -5);
  });

  test('contain candidates in order of their due times, with weight and belief', async () => {
    await liveSkus('A', 'B', 'C');
    await store.sql`update catalog_internal.due set due_at = now() - make_interval(secs => ascii(sku) - 60)`;
    await store.sql`insert into catalog_internal.live_rates values ('C', 3, 40)`;
    const two = { perBudget: 1, configuredBudget: 2, least: 1, most: 9, restMinutes: 1 };
    expect((await callInputs(store.sql, { candidates: two })).candidates).toEqual([]);
    await chooseByValue();
    expect((await callInputs(store.sql, { candidates: two })).candidates).toEqual([
      { sku: 'C', weight: 1, alpha: 3, beta: 40, minutes: null, random: false, hazard: null },
      { sku: 'B', weight: 1, alpha: null, beta: null, minutes: null, random: false, hazard: null },
    ]);
  });

  test('contain no candidates that were requested within the last minute, however soon they are due again', async () => {
    await liveSkus('A', 'B', 'C');
    await chooseByValue();
    await store.sql`update catalog_internal.due set due_at = now() - make_interval(secs => ascii(sku) - 60)`;
    await store.sql`update catalog.skus set asked_at = now() - interval '30 seconds' where sku = 'C'`;
    await store.sql`update catalog.skus set asked_at = now() - interval '90 seconds' where sku = 'A'`;
    expect((await callInputs(store.sql)).candidates.map(({ sku }) => sku)).toEqual(['B', 'A']);
  });
});

test("an operator's endless pause can be read on every version of Postgres", async () => {
  const { sql } = store;
  await empty(sql);
  await sql`update catalog_internal.tasks set next_at = 'infinity' where task = 'reprice'`;
  expect((await callPause(sql)).ms).toBe(Infinity);
  await sql`update catalog_internal.tasks set next_at = '-infinity' where task = 'reprice'`;
  expect((await callPause(sql)).ms).toBe(0);
  await sql`update catalog_internal.tasks set next_at = now() where task = 'reprice'`;
});
