import { beforeEach, expect, test } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { readNotStored } from '../../src/store/quarantine.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { failing, ledger, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const skus = Array.from({ length: 40 }, (_, n) => `S${String(n).padStart(2, '0')}`);
const POISON = 'S17';

const record = (price: number): LowestRecord => ({
  sizes: new Map([['9', { price, entry: null }]]),
  metadata: eachColumn(() => null),
  product: {},
});

let priceOf: (sku: string) => number;
let events: SyncEvent[];
let asked: (readonly string[])[];
let ctx: SyncContext;

beforeEach(() => {
  priceOf = () => 100;
  events = [];
  asked = [];
  ctx = {
    observers: NO_OBSERVERS,
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, {
      maxPerWindow: 1_000_000,
      windowMs: MINUTE,
      backoffMs: MINUTE,
    }),
    client: {
      bulk: (_: unknown, wanted: readonly string[]): Promise<BulkAnswer> => {
        asked.push(wanted);
        return Promise.resolve({
          results: new Map(wanted.map((sku) => [sku, record(priceOf(sku))])),
          notFound: [],
          deferred: [],
          errors: [],
          requested: null,
        } as unknown as BulkAnswer);
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings: settingsWith({ BULK_MAX_SKUS: '40' }),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
});

/** The daemon's pool, whose waits for a lock end soon. */
async function impatient(): Promise<Sql & AsyncDisposable> {
  const sql = connect(store.url, { max: 1 });
  await sql`set lock_timeout = '100ms'`;
  ctx = { ...ctx, sql };
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 2 }) });
}

/** Calls until nothing is due; what is thrown ends a call, as it ends a job. */
async function untilIdle(): Promise<void> {
  for (let number = 1; number <= 60; number += 1) {
    const done = await repriceOnce(ctx, { number, sinceLastCallMs: Infinity }, MINUTE, signals).catch(
      () => null,
    );
    if (done?.kind === 'idle' || done?.kind === 'wait') return;
  }
}

async function priced(): Promise<string[]> {
  const rows = await store.sql<{ sku: string }[]>`select sku from catalog.prices order by sku`;
  return rows.map(({ sku }) => sku);
}

test('of SKUs that are answered together, one whose rows Postgres rejects waits alone, is named, and asked for again later', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql.unsafe(`alter table catalog.prices add constraint no_poison check (sku <> '${POISON}')`);
  try {
    await untilIdle();
    expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
    expect((await ledger(sql)).get(POISON)).toMatchObject({ claim: null, failures: 1, lane: 4 });
    expect((await ledger(sql)).get(POISON)?.heldFor).toBeGreaterThan(0);
    // Halves, and no SKU asked for again once it is stored.
    expect(asked.length).toBeLessThan(16);
    expect(await readNotStored(sql)).toEqual({
      skus: 1,
      last: POISON,
      sample: expect.stringContaining('SQLSTATE 23514, by no_poison of catalog.prices'),
      lacksPrivilege: false,
    });
    expect(events.filter((event) => event.event === 'bulk.failed')[0]).toMatchObject({
      because: 'not-stored',
      skus: 40,
    });
    // Another call works: so it is not an outage that the next one meets.
    await mark(sql, ['S00']);
    await untilIdle();
    await sql`update catalog_internal.due set held_until = null where sku = ${POISON}`;
    await untilIdle();
    expect(events.findLast((event) => event.event === 'bulk.failed')).toMatchObject({ sku: POISON });
  } finally {
    await sql`alter table catalog.prices drop constraint no_poison`;
  }
  await sql`update catalog_internal.due set held_until = null where sku = ${POISON}`;
  await untilIdle();
  expect(await priced()).toEqual(skus);
  expect(await readNotStored(sql)).toMatchObject({ skus: 0 });
});

test('where no answer can be stored, no SKU is blamed: all calls pause, as in an outage', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`alter table catalog.prices add constraint none check (false) not valid`;
  try {
    await untilIdle();
    const [pause] = await sql`
      select failures, outcome, next_at > now() as pauses from catalog_internal.tasks where task = 'reprice'`;
    expect(pause).toMatchObject({ failures: 4, outcome: 'not-stored', pauses: true });
    expect(
      [...(await ledger(sql)).values()].every(({ failures, claim }) => failures === 0 && claim === null),
    ).toBe(true);
  } finally {
    await sql`alter table catalog.prices drop constraint none`;
  }
});

test('a trigger that finds its own table on no search_path holds up the one SKU whose price has changed', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await untilIdle();
  await sql.unsafe(`
    create table public.price_audit (sku text);
    create function public.audit() returns trigger language plpgsql as $$
      begin insert into price_audit values (new.sku); return new; end $$;
    create trigger audit after update on catalog.prices for each row
      when (new.price is distinct from old.price) execute function public.audit()`);
  try {
    priceOf = (sku) => (sku === POISON ? 101 : 100);
    await mark(sql, skus);
    await untilIdle();
    expect(await readNotStored(sql)).toEqual({
      skus: 1,
      last: POISON,
      sample: expect.stringContaining('SQLSTATE 42P01'),
      lacksPrivilege: false,
    });
    const owed = [...(await ledger(sql)).values()].filter(({ dueIn }) => dueIn <= 0);
    expect(owed).toMatchObject([{ sku: POISON, claim: null, failures: 1 }]);
  } finally {
    await sql.unsafe('drop function public.audit() cascade; drop table public.price_audit');
  }
});

test('a seller’s open transaction with a foreign key to one of the SKUs holds up none', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`create table public.stock (sku text references catalog.skus)`;
  try {
    await using _ = await impatient();
    await sql.begin(async (seller) => {
      await seller`insert into public.stock values (${POISON})`;
      await untilIdle();
      expect(await priced()).toEqual(skus);
    });
  } finally {
    await sql`drop table public.stock`;
  }
});

test('of SKUs that are answered together, one that somebody has locked waits alone until it is free', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await using _ = await impatient();
  await sql.begin(async (seller) => {
    await seller`select from catalog.skus where sku = ${POISON} for update`;
    await untilIdle();
    expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
    const { claim, heldFor, failures } = (await ledger(sql)).get(POISON) ?? {};
    expect({ claim, failures, isHeld: (heldFor ?? 0) > 0 }).toEqual({
      claim: null,
      failures: 0,
      isHeld: true,
    });
    expect(asked.length).toBeLessThan(16);
  });
  await sql`update catalog_internal.due set held_until = null`;
  await untilIdle();
  expect(await priced()).toEqual(skus);
  expect(events.filter(({ event }) => event === 'bulk.failed')).toEqual([]);
});

test('an answer that fails for a defect is asked for again in halves, and with one SKU after a wait', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  priceOf = (sku) => {
    if (sku === POISON) throw new Error('a defect');
    return 100;
  };
  await untilIdle();
  expect(await priced()).toEqual(skus.filter((sku) => sku !== POISON));
  expect((await ledger(sql)).get(POISON)).toMatchObject({ claim: null });
});

test('a trigger that fails with every statement, also those without a row, is an outage', async () => {
  const { sql } = store;
  await knownSkus(sql, ['S00']);
  await mark(sql, ['S00'], 'new');
  await using _ = await failing(sql, 'update on catalog.skus', { sqlState: '42883' });
  await untilIdle();
  expect((await ledger(sql)).get('S00')).toMatchObject({ claim: null, failures: 1 });
  expect(asked).toHaveLength(1);
});

test('a watched SKU that Postgres does not take keeps no other from being asked for', async () => {
  const { sql } = store;
  await knownSkus(sql, skus);
  await mark(sql, skus, 'new');
  await sql`alter table catalog.skus add constraint no_typo check (sku <> 'typo')`;
  try {
    await sql`insert into catalog.watchlist (sku) values ('typo')`;
    await untilIdle();
    expect(await priced()).toEqual(skus);
    expect(await maintain(ctx, { windowMs: MINUTE, historyMs: 0, dailyMs: 0 })).toMatchObject({
      kind: 'failed',
      because: 'watchlist',
      problem: 'watchlist: SQLSTATE 23514, by no_typo of catalog.skus',
    });
  } finally {
    await sql`alter table catalog.skus drop constraint no_typo`;
  }
  await untilIdle();
  expect(await priced()).toEqual([...skus, 'typo']);
});

test.each([
  { turn: 'in its turn as a live one', source: 'live', due: { reason: 'live', lane: 2, live: true } },
  { turn: 'to be seen again', source: 'snapshot', due: { reason: 'again', lane: 5, live: false } },
] as const)('what was answered and is not stored is not actionable: asked $turn', async ({ source, due }) => {
  const { sql } = store;
  await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
  await knownSkus(sql, ['A', 'B'], { priceSource: source });
  await mark(sql, ['A', 'B'], 'new', due.live);
  await untilIdle();
  // It hardly ever moves.
  await sql`delete from catalog_internal.live_rates`;
  await sql`insert into catalog_internal.live_rates (sku, alpha, beta, prior_part) values ('A', 1, 100000, 0)`;
  await sql`update catalog.skus set asked_at = asked_at - interval '5 minutes', priced_at = priced_at - interval '5 minutes'`;
  await sql`update catalog_internal.due set ${sql(due)}, due_at = now() where sku = 'A'`;
  const actionable = async () =>
    (await sql`select actionable from catalog.current_prices where sku = 'A'`)[0]?.['actionable'] as boolean;
  expect(await actionable()).toBe(true);
  await sql`alter table catalog.prices add constraint no_rise check (sku <> 'A' or price <= 100)`;
  try {
    priceOf = () => 130;
    await untilIdle();
    expect((await ledger(sql)).get('A')).toMatchObject({ failures: 1, claim: null });
    expect(await actionable()).toBe(false);
  } finally {
    await sql`alter table catalog.prices drop constraint no_rise`;
  }
  await sql`update catalog_internal.due set held_until = null where sku = 'A'`;
  await untilIdle();
  expect(await sql`select price from catalog.prices where sku = 'A'`).toEqual([{ price: 130 }]);
  expect(await actionable()).toBe(true);
});

test('nor is one whose price somebody has locked', async () => {
  const { sql } = store;
  await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
  await knownSkus(sql, ['A']);
  await mark(sql, ['A'], 'new');
  await untilIdle();
  await sql`update catalog_internal.due set reason = 'again', due_at = now() where sku = 'A'`;
  await using _ = await impatient();
  priceOf = () => 130;
  await sql.begin(async (tx) => {
    await tx`select from catalog.prices where sku = 'A' for update`;
    await untilIdle();
    expect(await sql`select from catalog.current_prices where sku = 'A' and actionable`).toHaveLength(0);
  });
});
