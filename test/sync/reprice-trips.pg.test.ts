import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CountingClient, countingClient } from '../../bench/frame/trips.ts';
import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { PaceLimits } from '../../src/pace/policy.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { DueFloors, type LedgerFloors, type LedgerReading } from '../../src/store/ledger/due-floors.ts';
import { callPause, FAILURES_BEFORE_PAUSE } from '../../src/store/ledger/tasks.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { HOUR, mark, knownSkus, useStore, failCall } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const SNAPSHOT = Array.from({ length: 40 }, (_, i) => `S${i}`);
const LIVE = Array.from({ length: 10 }, (_, i) => `L${i}`);

let client: CountingClient;
let events: SyncEvent[];
/** How live SKUs are answered. */
let live: 'priced' | 'deferred';
let price: number;
/** Brand and model of all records. */
let line: string | null;
/** The pages of each table of the ledger. */
let ledgerPages: number;

beforeEach(async () => {
  client = countingClient(store.url);
  events = [];
  live = 'priced';
  price = 100;
  line = null;
  ledgerPages = 1;
  await knownSkus(store.sql, SNAPSHOT);
  await knownSkus(store.sql, LIVE, { priceSource: 'live' });
  // With a refresh threshold, live SKUs are chosen by value.
  await store.sql`update catalog_internal.live_plan set refresh_threshold = 0.001, max_interval_minutes = 1000, early_minutes = 1, solved_at = now()`;
});
afterEach(() => client.sql.end({ timeout: 2 }));

function record(): LowestRecord {
  price += 1;
  return {
    sizes: new Map([['42', { price, entry: null }]]),
    metadata: {
      ...eachColumn(() => null),
      name: `at ${price}`,
      size_map_size_type: 'us',
      brand: line,
      model: line,
    },
    product: { name: `at ${price}` },
  };
}

/** A partner that prices everything, except live SKUs if they are to be deferred. */
function answer(asked: readonly string[]): BulkAnswer {
  const deferred = live === 'deferred' ? asked.filter((sku) => sku.startsWith('L')) : [];
  return {
    results: new Map(asked.filter((sku) => !deferred.includes(sku)).map((sku) => [sku, record()])),
    notFound: [],
    deferred,
    errors: [],
    requested: null,
  };
}

/**
 * Floors of a ledger that keeps its size. Each iteration leaves dead row versions, and when the size reaches
 * another power of four, the inputs of a call are prepared anew: one more round trip, by chance.
 */
class SteadyFloors extends DueFloors {
  override note(from: LedgerFloors, reading: LedgerReading): void {
    super.note(from, { ...reading, pages: reading.pages.map(() => ledgerPages) });
  }
}

function context(limits: Partial<PaceLimits> = {}): SyncContext {
  const { sql } = client;
  return {
    observers: NO_OBSERVERS,
    sql,
    pacer: createPacer(sql, systemClock, {
      maxPerWindow: 1_000_000,
      windowMs: MINUTE,
      backoffMs: MINUTE,
      ...limits,
    }),
    client: {
      bulk: async (permit: { settle(outcome: string): Promise<void> }, skus: readonly string[]) => {
        await permit.settle('ok');
        return answer(skus);
      },
    },
    clock: systemClock,
    floors: new SteadyFloors(systemClock),
    recent: new RecentAnswers(),
    random: Math.random,
    emit: (event: SyncEvent) => events.push(event),
    settings: settingsWith({ BULK_MAX_SKUS: '20', LIVE_INTERVAL: '1h' }),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
}

/** Runs one iteration, with everything made due before it. Returns how it ended, and its round trips. */
async function iteration(ctx: SyncContext, due = true) {
  if (due) {
    await store.sql`update catalog.skus set asked_at = asked_at - interval '1 hour'`;
    await store.sql`update catalog_internal.due set held_until = null, deferrals = 0, live = sku like 'L%'`;
    await store.sql`update catalog_internal.live_ceiling set per_minute = null, blocked_at = null, failed_at = null`;
    await mark(store.sql, SNAPSHOT, 'changed');
    await mark(store.sql, LIVE, 'live', true);
    await store.sql`update catalog_internal.tasks set succeeded_at = now() - interval '1 minute' where task = 'reprice'`;
  }
  const before = client.trips();
  const done = await repriceOnce(ctx, { sinceLastCallMs: Infinity }, MINUTE, signals);
  return { kind: done.kind, trips: client.trips() - before };
}

/** Lets the connection prepare all statements of a call: each is prepared when it is first used. */
async function prepared(ctx: SyncContext): Promise<void> {
  for (const fate of ['priced', 'deferred', 'priced'] as const) {
    live = fate;
    await iteration(ctx);
    await iteration(ctx);
  }
}

const budget = () =>
  store.sql<[{ budget: number }]>`select live_budget as budget from catalog_internal.sync`.then(
    ([row]) => row.budget,
  );
const liveCalls = () =>
  store.sql`select computed, deferred from catalog_internal.live_calls order by id`.then((rows) =>
    rows.at(-1),
  );

describe('a bulk call', () => {
  test('takes nine round trips, including live SKUs, history and everything it teaches', async () => {
    const ctx = context();
    await prepared(ctx);
    const before = await budget();
    events = [];
    expect(await iteration(ctx)).toEqual({ kind: 'called', trips: 9 });
    expect(events).toMatchObject([{ event: 'bulk.applied', asked: 20, resolved: 20, late: 0 }]);
    expect(await liveCalls()).toEqual({ computed: 5, deferred: 0 });
    expect(await budget()).not.toBe(before);
  });

  test('takes no more if its live SKUs belong to a line, and two more if that is suspected to move', async () => {
    const ctx = context();
    const others = Array.from({ length: 20 }, (_, i) => `LL${i}`);
    await knownSkus(store.sql, others, { priceSource: 'live' });
    await mark(store.sql, others, 'live', true);
    line = 'Acme';
    const phase = async () => {
      const [row] = await store.sql<{ phase: string }[]>`select phase from catalog_internal.live_lines`;
      return row?.phase;
    };
    const taken = { quiet: [] as number[], turned: [] as number[] };
    // Every size moves with each answer, and every other answer finds the line almost suspected. The first one
    // prepares the statements.
    for (let call = 0; call < 20; call += 1) {
      const { trips } = await iteration(ctx);
      const after = await phase();
      if (after === 'quiet') taken.quiet.push(trips);
      else if (after !== undefined) taken.turned.push(trips);
      await store.sql`
        update catalog_internal.live_lines
        set phase = 'quiet', since = null, evidence = ${call % 2 === 0 ? 5.5 : 0}, answers = 0, moved = 0`;
    }
    expect(Math.min(...taken.turned)).toBe(11);
    // One more for the answers of other daemons, if prices have moved implausibly.
    expect(Math.max(0, ...taken.quiet.slice(1))).toBeLessThanOrEqual(10);
  });

  test('takes no more if its live SKUs are deferred', async () => {
    const ctx = context();
    await prepared(ctx);
    live = 'deferred';
    const before = await budget();
    expect(await iteration(ctx)).toEqual({ kind: 'called', trips: 9 });
    expect(events.findLast(({ event }) => event === 'bulk.applied')).toMatchObject({
      resolved: 15,
      deferred: 5,
    });
    expect(await liveCalls()).toEqual({ computed: 0, deferred: 5 });
    expect(await budget()).toBeLessThanOrEqual(before);
  });

  test('takes three more in all when the ledger has grown fourfold, because statements are prepared anew', async () => {
    const ctx = context();
    await prepared(ctx);
    // The first of these calls reads it. Its claim and lesson know it, and so do the inputs of the next one.
    ledgerPages = 4;
    const taken: number[] = [];
    for (let call = 0; call < 3; call += 1) taken.push((await iteration(ctx)).trips);
    expect(taken).toEqual([11, 10, 9]);
  });

  test('takes ten if it must wait for its permit, because it is planned again then', async () => {
    await prepared(context());
    await store.sql`delete from catalog_internal.pace_sends`;
    await store.sql`delete from catalog_internal.pace`;
    // One call in two seconds.
    const ctx = context({ maxPerWindow: 2, windowMs: 2000 });
    await iteration(ctx);
    // More was due than one call carries.
    expect(await iteration(ctx, false)).toEqual({ kind: 'called', trips: 10 });
  });

  test('takes one more if SKUs that are not live are deferred, because only listed ones are evidence', async () => {
    const ctx = context();
    await prepared(ctx);
    live = 'deferred';
    const unlisted = ['LA', 'LB', 'LC', 'LD'];
    await knownSkus(store.sql, unlisted, { priceSource: null, listed: false });
    const asked = async () => {
      await store.sql`update catalog_internal.due set due_at = now() + interval '1 day', held_until = null`;
      await mark(store.sql, SNAPSHOT.slice(0, 16), 'changed', false);
      await mark(store.sql, unlisted, 'unlisted', false);
      return await iteration(ctx, false);
    };
    // The first of them prepares the statement.
    await asked();
    expect(await asked()).toEqual({ kind: 'called', trips: 10 });
    expect(events.at(-1)).toMatchObject({ event: 'bulk.applied', resolved: 16, deferred: 4 });
    const calls = await store.sql`
      select snapshot_asked as asked, snapshot_deferred as deferred from catalog_internal.live_calls order by id`;
    expect(calls.at(-1)).toEqual({ asked: 16, deferred: 0 });
  });

  test('takes no more to end the pause after failed calls', async () => {
    const ctx = context();
    await prepared(ctx);
    await failCall(store.sql, 0, 0);
    expect(await iteration(ctx)).toEqual({ kind: 'called', trips: 9 });
    const [{ failures }] = await store.sql<
      [{ failures: number }]
    >`select failures from catalog_internal.tasks where task = 'reprice'`;
    expect(failures).toBe(0);
  });
});

describe('failed calls', () => {
  test('that fail together, as in an outage, count once: the pause is not doubled for each of them', async () => {
    const CALLS = 4;
    let underWay = Promise.withResolvers<void>();
    let asked = 0;
    const ctx = {
      ...context(),
      client: {
        bulk: async (permit: { settle(outcome: string): Promise<void> }) => {
          asked += 1;
          if (asked === CALLS) underWay.resolve();
          await underWay.promise;
          await permit.settle('timeout');
          throw new PartnerError('timeout', 'bulk');
        },
      },
      tracer: NO_TRACER,
    } as unknown as SyncContext;
    await mark(store.sql, [...SNAPSHOT, ...Array.from({ length: 60 }, (_, i) => `M${i}`)], 'changed');
    const outage = async () => {
      const calls = Array.from({ length: CALLS }, () =>
        repriceOnce(ctx, { sinceLastCallMs: Infinity }, MINUTE, signals),
      );
      return (await Promise.all(calls)).map(({ kind }) => kind);
    };
    const { errorMs } = settingsWith({}).intervals;
    for (let failures = 1; failures <= FAILURES_BEFORE_PAUSE; failures += 1) {
      [asked, underWay] = [0, Promise.withResolvers<void>()];
      const isPaused = failures === FAILURES_BEFORE_PAUSE;
      expect(await outage()).toEqual(Array(CALLS).fill(isPaused ? 'wait' : 'called'));
      const pause = await callPause(store.sql);
      expect([pause.failures, pause.ms > 0]).toEqual([failures, isPaused]);
      expect(pause.ms).toBeLessThanOrEqual(errorMs);
      const paused = events.splice(0).map((event) => 'pausedMs' in event && event.pausedMs);
      expect(paused).toEqual(Array(CALLS).fill(isPaused ? errorMs : 0));
    }
  });
});

describe('an iteration without a call', () => {
  test('takes one round trip if nothing is due, including expired waits', async () => {
    const ctx = context();
    await prepared(ctx);
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 day', held_until = now() - interval '1 second'`;
    expect(await iteration(ctx, false)).toEqual({ kind: 'idle', trips: 1 });
    const [{ held }] = await store.sql<
      [{ held: number }]
    >`select count(held_until)::int as held from catalog_internal.due`;
    expect(held).toBe(0);
  });

  test('takes one round trip while calls are failing', async () => {
    const ctx = context();
    await prepared(ctx);
    await failCall(store.sql, HOUR, 0);
    expect(await iteration(ctx)).toEqual({ kind: 'wait', trips: 1 });
  });
});
