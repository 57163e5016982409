import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { createPartnerClient } from '../../src/partner/client.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import { createObservers } from '../../src/store/answer/observers.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { mark, knownSkus, useStore } from '../store/support.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { settingsWith } from '../support/settings.ts';

const MINUTE = 60_000;
/** SKUs that wait for their first price. Every twentieth is live. */
const FILL = 300_000;
const LIVE_BUDGET = 5;
/** What a lane behind the first is guaranteed in a call of a hundred with five live SKUs. */
const GUARANTEED = 4;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };

let database: TestDatabase;
let sandbox: Sandbox;
let sql: Sql;
let replicas: SyncContext[];
/** The same at ten calls a second: most of their calls wait for a permit. */
let paced: SyncContext[];

beforeAll(async () => {
  [database, sandbox] = await Promise.all([
    createDatabase('migrated'),
    startSandbox({ skus: 10, rateLimit: 1_000_000 }),
  ]);
  sql = connect(database.url, { max: 4 });
  await longFill();
  replicas = [replica(database.url), replica(database.url)];
  paced = [replica(database.url, 600), replica(database.url, 600)];
});

/** Resets the SKUs of earlier reports as if they had been answered. */
beforeEach(async () => {
  await sql`
    update catalog_internal.due set lane = catalog_internal.lane_of('sweep'), due_at = now() + interval '1 day'
    where lane = 1`;
  await sql`delete from catalog_internal.watched`;
  await sql`update catalog_internal.sync set live_budget = null`;
});

afterAll(async () => {
  await Promise.all([...[...replicas, ...paced].map(stopReplica), sql.end({ timeout: 2 }), sandbox.close()]);
  await database.drop();
});

/**
 * N… waits for a first price, L… for a live refresh, E… after an error, M… for metadata, S… for its sweep. C… and
 * B… are not due.
 */
async function longFill(): Promise<void> {
  const put = (name: string, count: number, reason: string, due: string) => sql`
    with skus as (
      insert into catalog.skus (sku, state, price_source, in_manifest)
      select ${name} || n, ${reason === 'new' ? 'pending' : 'priced'}, 'snapshot', true from generate_series(1, ${count}::int) n
      returning sku
    )
    insert into catalog_internal.due (sku, lane, reason, live, due_at)
    select sku, catalog_internal.lane_of(${reason}), ${reason},
      ${reason === 'live'} or ${reason === 'new'} and right(sku, 2) in ('00', '20', '40', '60', '80'), now() + ${due}::interval
    from skus`;
  await put('N', FILL, 'new', '-1 hour');
  for (const [name, reason] of [
    ['L', 'live'],
    ['E', 'error'],
    ['M', 'metadata'],
    ['S', 'sweep'],
  ] as const)
    await put(name, 3000, reason, '-1 minute');
  for (const name of ['B', 'C']) await put(name, 5000, 'sweep', '1 day');
  await sql`update catalog_internal.sync set snapshot_id = 'token'`;
  await sql`analyze catalog.skus, catalog_internal.due`;
}

/**
 * Creates the context of a daemon that re-prices, with its own connections. The sandbox knows none of these SKUs
 * (code 0009).
 */
function replica(url: string, callsPerMinute = 100_000): SyncContext {
  const own = connect(url, { max: 4 });
  const baseUrl = new URL(sandbox.url);
  return {
    sql: own,
    databaseUrl: () => url,
    client: createPartnerClient({
      baseUrl,
      credentials: () => sandbox,
      timeoutMs: MINUTE,
      bodyKey: 'skus',
      priceFields: ['price'],
      skuField: 'sku',
      allowInsecure: false,
      userAgent: 'test',
      clock: systemClock,
      observe: () => {},
    }),
    pacer: createPacer(own, systemClock, {
      maxPerWindow: callsPerMinute,
      windowMs: MINUTE,
      backoffMs: MINUTE,
    }),
    clock: systemClock,
    random: Math.random,
    observers: createObservers(systemClock),
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    tracer: NO_TRACER,
    emit: () => {},
    settings: settingsWith({
      PARTNER_BASE_URL: sandbox.url,
      BULK_LIVE_BUDGET: String(LIVE_BUDGET),
      LIVE_INTERVAL: '1h',
    }),
  };
}

async function stopReplica(ctx: SyncContext): Promise<void> {
  await ctx.client.close();
  await ctx.sql.end({ timeout: 2 });
}

interface Call {
  /** Its place in the order in which calls were begun, which means planned. */
  readonly begun: number;
  readonly skus: readonly string[];
}

/** Returns the reported SKUs that no call has claimed. */
async function unclaimed(skus: readonly string[]): Promise<string[]> {
  const waiting = await sql<{ sku: string }[]>`
    select sku from catalog_internal.due where sku = any(${skus}::text[]) and lane = 1 and held_until is null`;
  return waiting.map(({ sku }) => sku);
}

/** Replicas with `workers` calls under way each, until stopped. */
class Fleet implements AsyncDisposable {
  begun = 0;
  readonly calls: Call[] = [];
  #stopped = false;
  readonly #workers: readonly Promise<void>[];

  constructor(contexts: readonly SyncContext[] = replicas, workers = 2) {
    this.#workers = contexts.flatMap((ctx) => Array.from({ length: workers }, () => this.#work(ctx)));
  }

  async #work(ctx: SyncContext): Promise<void> {
    while (!this.#stopped) {
      const begun = this.begun;
      this.begun += 1;
      const bulk: typeof ctx.client.bulk = async (permit, skus, signal) => {
        this.calls.push({ begun, skus });
        return await ctx.client.bulk(permit, skus, signal);
      };
      const recorded = { ...ctx, client: { ...ctx.client, bulk } };
      const iteration = await repriceOnce(recorded, { sinceLastCallMs: Infinity }, MINUTE, signals);
      if (iteration.kind !== 'called') throw new Error(`no call: ${JSON.stringify(iteration)}`);
    }
  }

  /** Waits for the first `count` requests among the calls begun from the `from`th on. */
  async next(from: number, count: number): Promise<Call[]> {
    const found = () => this.calls.filter(({ begun }) => begun >= from);
    await eventually(
      async () => {
        await Promise.race([...this.#workers, Promise.resolve()]);
        return found().length >= count;
      },
      { what: `${count} calls` },
    );
    return found().slice(0, count);
  }

  /**
   * Returns which of `skus` are unclaimed once the two calls begun from the `from`th on have sent their requests.
   * Calls planned side by side share what is due: a later one may have claimed its part before them and still be
   * about to send it.
   */
  async waitingAfterTwo(from: number, skus: readonly string[]): Promise<string[]> {
    const isAsked = (nth: number) => this.calls.some((call) => call.begun === from + nth);
    await this.next(from, 2);
    await eventually(() => isAsked(0) && isAsked(1), { what: 'both calls' });
    return await unclaimed(skus);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }
}

const names = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i + 1}`);

async function report(changed: readonly string[], nowLive: readonly string[] = []): Promise<void> {
  const delta = { since: 'token', toSnapshot: 'token', changed, nowLive, removed: [] };
  expect(await applyDelta(sql, delta)).toMatchObject({ applied: true });
}

function counted(calls: readonly Call[]): Map<string, number>[] {
  return calls.map(
    ({ skus }) =>
      new Map([...Map.groupBy(skus, (sku) => sku[0] ?? '')].map(([name, { length }]) => [name, length])),
  );
}

describe('while very many SKUs wait for their first price', () => {
  test('the SKUs that a delta reports are all in the next two calls that are planned', async () => {
    await using fleet = new Fleet();
    await fleet.next(0, 8);
    // As many as two calls have room for, beside what is guaranteed to the lanes behind.
    const [changed, live] = [names('C', 130), names('B', 2 * (LIVE_BUDGET - 1))];
    await report(changed, live);
    expect(await fleet.waitingAfterTwo(fleet.begun, [...changed, ...live])).toEqual([]);
  });

  test('they are also in the next calls while many wait for a permit, and few of those go out unfilled', async () => {
    await sql`insert into catalog_internal.pace (ceiling, raised_at) values (100000, now()) on conflict (id) do nothing`;
    await using fleet = new Fleet(paced, 4);
    await fleet.next(0, 8);
    const changed = names('C', 60);
    await report(changed);
    const from = fleet.calls.length;
    // Eight calls were waiting. One or two may have been planned at the very moment of the report, or of another's
    // claim.
    await eventually(() => fleet.calls.length >= from + 4, { what: 'four of them have asked' });
    expect(await unclaimed(changed)).toEqual([]);
    await eventually(() => fleet.calls.length >= from + 16, { what: 'what waited has asked' });
    const calls = fleet.calls.slice(from, from + 16);
    expect(calls.filter(({ skus }) => skus.length < 90).length).toBeLessThanOrEqual(2);
  });

  test('the watched SKUs of a report larger than two calls come first', async () => {
    const changed = names('C', 3000);
    const watched = changed.slice(-40);
    await sql`insert into catalog_internal.watched (sku, weight) select sku, 20 from unnest(${watched}::text[]) as s(sku)`;
    await report(changed);
    await using fleet = new Fleet(replicas, 1);
    expect(await fleet.waitingAfterTwo(0, watched)).toEqual([]);
  });

  test('every lane behind gets its part of each call, and no SKU is asked for twice', async () => {
    await using fleet = new Fleet();
    const calls = await fleet.next(0, 40);
    for (const call of counted(calls)) {
      expect(call.get('N')).toBeGreaterThanOrEqual(80);
      for (const lane of ['E', 'M', 'S']) expect(call.get(lane)).toBeGreaterThanOrEqual(GUARANTEED);
      expect(call.get('L')).toBeGreaterThanOrEqual(Math.floor(LIVE_BUDGET / 2));
    }
    const asked = calls.flatMap(({ skus }) => skus);
    expect(new Set(asked).size).toBe(asked.length);
    // SKUs without a price share the live slots with refreshes.
    const newLive = asked.filter((sku) => /^N\d*[02468]0$/.test(sku));
    expect(newLive.length).toBeGreaterThanOrEqual(calls.length * Math.floor(LIVE_BUDGET / 2) - 4);
  });

  test('every lane keeps its part even if very many changes are reported, too', async () => {
    await report(names('B', 5000));
    await using fleet = new Fleet();
    const calls = await fleet.next(0, 30);
    for (const call of counted(calls)) {
      expect(call.get('B')).toBeGreaterThanOrEqual(70);
      for (const lane of ['N', 'E', 'M', 'S']) expect(call.get(lane)).toBeGreaterThanOrEqual(GUARANTEED);
      expect(call.get('L')).toBeGreaterThanOrEqual(Math.floor(LIVE_BUDGET / 2));
    }
  });
});

describe('while little is due', () => {
  const store = useStore();

  test('a call lingers briefly for more SKUs, but a reported change goes at once and takes the others along', async () => {
    await knownSkus(store.sql, ['S1', 'S2', 'C1']);
    await store.sql`update catalog.skus set state = 'priced'`;
    await store.sql`update catalog_internal.sync set snapshot_id = 'token'`;
    const ctx = replica(store.url);
    const iteration = (sinceLastCallMs: number) => repriceOnce(ctx, { sinceLastCallMs }, MINUTE, signals);
    try {
      await mark(store.sql, ['S1'], 'sweep', false);
      const waits = await iteration(0);
      expect(waits).toMatchObject({ kind: 'linger' });
      expect(waits.kind === 'linger' && waits.forMs).toBeLessThanOrEqual(4000);
      expect(await iteration(4000)).toEqual({ kind: 'called', skus: 1 });
      await mark(store.sql, ['S2'], 'sweep', false);
      expect(await iteration(0)).toMatchObject({ kind: 'linger' });
      await applyDelta(store.sql, {
        since: 'token',
        toSnapshot: 'token',
        changed: ['C1'],
        nowLive: [],
        removed: [],
      });
      expect(await iteration(0)).toEqual({ kind: 'called', skus: 2 });
    } finally {
      await stopReplica(ctx);
    }
  });
});
