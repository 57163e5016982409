import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult, NextRefresh, PriceRow, ProductRow } from '../../src/store/answer/types.ts';
import { type CallInputOptions, type CallInputs, readCallInputs } from '../../src/store/call/bulk-call.ts';
import { storeFailedCall } from '../../src/store/call/call-lesson.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Queryable, type Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, DUE_LANES, type Quota } from '../../src/store/ledger/due.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { forgetOthers } from '../pace/others.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { makeClockMovable, setClockAhead } from '../support/movable-clock.ts';
import { CREATE_REFILL } from '../support/seed.ts';

export const HOUR = 3_600_000;
export const LEASE_MS = 2 * HOUR;

/** Next refreshes so far away that nothing comes due by itself while a test runs. */
export const REFRESH: NextRefresh = {
  liveMs: 10 * HOUR,
  snapshotMs: 20 * HOUR,
  snapshotReason: 'sweep',
  notFoundMs: 40 * HOUR,
  lostMs: 5 * HOUR,
};

export const NO_METADATA: ProductRow = {
  ...eachColumn(() => null),
  product: '{}',
};

export interface TestStore {
  readonly sql: Sql;
  readonly url: string;
}

/** Creates a migrated database whose clock can be set (`setClockAhead`). */
async function createMovable(): Promise<TestDatabase> {
  const database = await createDatabase('empty');
  await makeClockMovable(database.url);
  await migrateDatabase(database.url);
  return database;
}

/**
 * Creates a migrated database for the test file, which is empty at the start of each of its tests. Must be called
 * at a file's top level. With `movableClock`, its clock can be set, and is right at the start of each test.
 */
export function useStore({ movableClock = false } = {}): TestStore {
  let database: TestDatabase;
  let sql: Sql;
  beforeAll(async () => {
    database = await (movableClock ? createMovable() : createDatabase('migrated'));
    sql = connect(database.url, { max: 8 });
    // As if it had written already: positions are ids, and no test's first change starts a new lineage.
    await sql`
      update catalog_internal.lineage set (system, database, timeline, started) = (select p.* from catalog_internal.present_lineage() p)`;
    await sql.unsafe(`create schema seed; ${CREATE_REFILL}`);
    await forEachTable(sql, 'create table seed.%2$I as table %1$I.%2$I');
  });
  beforeEach(async () => {
    if (movableClock) await setClockAhead(sql, 0);
    await empty(sql);
  });
  afterAll(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return {
    get sql() {
      return sql;
    },
    get url() {
      return database.url;
    },
  };
}

/** Runs a statement for each table of the mirror; %1$I is its schema, %2$I its name. */
async function forEachTable(sql: Sql, statement: string): Promise<void> {
  await sql.unsafe(`
    do $$
    declare one record;
    begin
      for one in select relnamespace::regnamespace::text, relname from pg_class
        where relkind in ('r', 'p') and not relispartition and relname <> 'migrations'
          and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
        -- First the SKUs, with which others go, and whose prices are written into the history.
        order by relname <> 'skus'
      loop
        execute format($statement$${statement}$statement$, one.relnamespace, one.relname);
      end loop;
    end $$`);
}

/** Resets every table to how the migrations made it: empty, or with its one row or its fixed rows. */
export async function empty(sql: Sql): Promise<void> {
  await forEachTable(sql, "select seed.refill('%1$I.%2$I', '%2$I')");
  await forgetOthers(sql);
}

/** Inserts SKUs into the mirror, by default as the fill by a manifest leaves them. */
export async function knownSkus(
  sql: Queryable,
  skus: readonly string[],
  more: { priceSource?: 'snapshot' | 'live' | null; hash?: string | null; listed?: boolean } = {},
): Promise<void> {
  const { priceSource = 'snapshot', hash = null, listed = true } = more;
  await sql`
    insert into catalog.skus (sku, in_manifest, price_source, hash)
    select sku, ${listed}, ${priceSource}, ${hash} from unnest(${skus as string[]}::text[]) as s(sku)`;
}

/** Gives known SKUs their rows in the ledger, as an answer leaves them: due in a month, for their sweep. */
export async function settleKnown(sql: Queryable): Promise<void> {
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at)
    select sku, catalog_internal.lane_of('sweep'), 'sweep', false, now() + interval '30 days' from catalog.skus`;
}

export async function mark(
  sql: Sql,
  skus: readonly string[],
  reason = 'changed',
  live: boolean | null = null,
): Promise<void> {
  await sql`select catalog_internal.mark_due(${skus as string[]}::text[], ${reason}, ${live}::boolean)`;
}

/** Returns a quota of `count` SKUs for every class of due work. */
export function allDue(count: number): Quota[] {
  return DUE_LANES.flatMap((lane) => [true, false].map((live) => ({ lane, live, count, earlySeconds: 0 })));
}

export const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };

/** Reads the inputs of a bulk call; by default nothing is early, and classes and candidates have at most 20 SKUs. */
export async function callInputs(sql: Sql, options: Partial<CallInputOptions> = {}): Promise<CallInputs> {
  const candidates = { perBudget: 1, configuredBudget: 1, least: 20, most: 20, restMinutes: 1 };
  return await readCallInputs(sql, {
    limit: 20,
    early: { usual: NOT_EARLY, stale: NOT_EARLY },
    candidates,
    ...options,
  });
}

/** Reads what sellers have committed to the watchlist, as a daemon does before it plans a call. */
export async function followWatchlist(sql: Sql): Promise<void> {
  expect(await readWatchlist(sql, { most: 100_000, everything: false })).toBe(true);
}

/** Claims whatever is due; throws if nothing is. */
export async function claimAll(sql: Sql, count = 1000): Promise<Claim> {
  await followWatchlist(sql);
  const claim = await claimDue(sql, { quotas: allDue(count) }, LEASE_MS);
  if (claim === null) throw new Error('nothing is due');
  return claim;
}

/** Records a failed bulk call with no SKUs left to give back. */
export async function failCall(sql: Sql, pauseMs: number, failures: number): Promise<void> {
  const claim: Claim = { number: '0', askedAt: new Date(0), skus: [] };
  await storeFailedCall(sql, {
    claim,
    because: 'timeout',
    failures,
    pauseMs,
    holdMs: 0,
    largestCall: null,
    callSize: null,
  });
}

export interface DueRow {
  readonly sku: string;
  readonly lane: number;
  readonly reason: string;
  readonly live: boolean;
  readonly generation: number;
  readonly claim: string | null;
  readonly deferrals: number;
  readonly failures: number;
  /** Hours from now; Infinity for never. */
  readonly dueIn: number;
  /** Hours from now; null if not held. */
  readonly heldFor: number | null;
}

export async function ledger(sql: Sql): Promise<Map<string, DueRow>> {
  await followWatchlist(sql);
  const rows = await sql<DueRow[]>`
    select sku, lane, reason, live, generation, claim, deferrals, failures,
      ((extract(epoch from due_at) - extract(epoch from clock_timestamp())) / 3600)::float8 as "dueIn",
      (extract(epoch from held_until - clock_timestamp()) / 3600)::float8 as "heldFor"
    from catalog_internal.due order by sku`;
  return new Map(rows.map((row) => [row.sku, row]));
}

/** Lets `hours` pass in the ledger: every due time and every wait is that much nearer. */
export async function passHours(sql: Sql, hours: number): Promise<void> {
  await sql`
    update catalog_internal.due set due_at = due_at - make_interval(secs => ${hours * 3600}),
      held_until = held_until - make_interval(secs => ${hours * 3600}),
      again_at = again_at - make_interval(secs => ${hours * 3600}),
      doubted_at = doubted_at - make_interval(secs => ${hours * 3600})`;
}

/** Returns a record with these prices: numbers, null, or rows with their entry of the size_map. */
export function found(
  sku: string,
  prices: Readonly<Record<string, number | null>> | readonly PriceRow[] = {},
  metadata: Partial<ProductRow> = {},
): Extract<SkuResult, { kind: 'record' }> {
  const rows = Array.isArray(prices)
    ? (prices as readonly PriceRow[])
    : Object.entries(prices).map(([size, price]) => ({ size, price: price as number | null, entry: null }));
  return { sku, kind: 'record', prices: rows, product: { ...NO_METADATA, ...metadata } };
}

export async function pricesOf(sql: Sql, sku: string): Promise<Record<string, number | null>> {
  const rows = await sql<{ size: string; price: number | null }[]>`
    select size, price from catalog.prices where sku = ${sku} order by size`;
  return Object.fromEntries(rows.map(({ size, price }) => [size, price]));
}

/** Returns the price history in order, each move as `size: old → new`. */
export async function movesOf(sql: Sql, sku: string): Promise<string[]> {
  const rows = await sql<{ size: string; old: number | null; new: number | null }[]>`
    select size, old_price as old, new_price as new from catalog.price_history where sku = ${sku} order by id`;
  return rows.map((row) => `${row.size}: ${row.old} → ${row.new}`);
}

/** Returns all rows that a seller or the daemon could tell apart, times included. */
export async function everything(sql: Sql): Promise<Record<string, unknown>> {
  const tables = [
    'catalog.skus',
    'catalog.prices',
    'catalog.products',
    'catalog.price_history',
    'catalog.product_history',
    'catalog_internal.due',
    'catalog_internal.sync',
  ];
  const rows = await Promise.all(
    tables.map((table) => sql.unsafe(`select t::text as row from ${table} t order by 1`)),
  );
  return Object.fromEntries(tables.map((table, i) => [table, rows[i]?.map((row) => row['row'] as string)]));
}

/** Refreshes SKUs once: marks, claims and answers them. */
export async function answerAsked(sql: Sql, ...results: readonly SkuResult[]): Promise<Claim> {
  const skus = results.map(({ sku }) => sku);
  await mark(sql, skus);
  const claim = await claimAll(sql);
  await applyAnswer(sql, claim, results, REFRESH);
  return claim;
}

export async function stateOf(sql: Sql, sku: string) {
  const [row] = await sql`
    select state, priced_at is not null as answered, removed_at is not null as removed from catalog.skus where sku = ${sku}`;
  return row;
}

/** Applies a delta that reports one SKU as removed and nothing else. */
export async function removeByDelta(sql: Sql, sku: string): Promise<void> {
  await sql`update catalog_internal.sync set snapshot_id = 'token'`;
  const nothing = { changed: [], nowLive: [] };
  await applyDelta(sql, { since: 'token', toSnapshot: 'token', removed: [sku], ...nothing });
}

/**
 * Makes every statement of a kind ('insert on catalog.skus'), or only the first `times`, fail with an SQLSTATE
 * until the result is disposed of. The count survives rollbacks.
 */
export async function failing(
  sql: Sql,
  statement: string,
  options: { readonly sqlState?: string; readonly times?: number } = {},
): Promise<AsyncDisposable> {
  const { sqlState = 'P0001', times = 1000 } = options;
  const table = statement.split(' on ')[1] ?? '';
  await sql.unsafe(`
    create sequence public.failures;
    create function public.fail() returns trigger language plpgsql as $$
    begin
      if nextval('public.failures') <= ${times} then
        raise exception 'made to fail' using errcode = '${sqlState}';
      end if;
      return null;
    end $$;
    create trigger fail before ${statement} for each statement execute function public.fail()`);
  return {
    async [Symbol.asyncDispose]() {
      await sql.unsafe(
        `drop trigger fail on ${table}; drop function public.fail; drop sequence public.failures`,
      );
    },
  };
}

/** Makes it appear that Postgres's clock has been right for hours, and that a daemon has watched it. */
export async function watchedForHours(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp() - interval '2 hours'`;
}
