import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { callPause } from '../../src/store/ledger/tasks.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { knownSkus, ledger, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const numbered = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(3, '0')}`);
const LIVE = numbered('L', 60);
const OTHERS = numbered('S', 400);

let ctx: SyncContext;
let events: SyncEvent[];
let works: boolean;
/** Live SKUs have records that nobody can read. */
let isOdd: boolean;
/** Calls with a live SKU fail as a whole. */
let hangs: boolean;
let asked: string[][];
let sizes: number[];

/** A daemon of its own, whose partner has live SKUs in errors unless its live source works. */
const daemon = (): SyncContext =>
  ({
    observers: NO_OBSERVERS,
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, {
      maxPerWindow: 1_000_000,
      windowMs: MINUTE,
      backoffMs: MINUTE,
    }),
    client: {
      bulk: async (_: unknown, skus: readonly string[]): Promise<BulkAnswer> => {
        const live = skus.filter((sku) => sku.startsWith('L'));
        asked.push(live);
        sizes.push(skus.length);
        if (hangs && live.length > 0) throw new PartnerError('timeout', 'bulk', {});
        return {
          results: new Map(isOdd ? live.map((sku) => [sku, { unreadable: 'no entry reads' }]) : []),
          notFound: skus.filter((sku) => works || !live.includes(sku)),
          deferred: [],
          errors: works || isOdd ? [] : live,
          requested: null,
        };
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings: settingsWith({ BULK_MAX_SKUS: '20' }),
    tracer: NO_TRACER,
  }) as unknown as SyncContext;

beforeEach(async () => {
  [events, asked, sizes] = [[], [], []];
  [hangs, works, isOdd] = [false, false, false];
  ctx = daemon();
  await knownSkus(store.sql, LIVE, { priceSource: 'live' });
  await knownSkus(store.sql, OTHERS);
  await mark(store.sql, LIVE, 'live', true);
  await mark(store.sql, OTHERS, 'sweep', false);
});

async function calls(count: number, by = ctx): Promise<void> {
  for (let made = 0; made < count; made += 1)
    await repriceOnce(by, { sinceLastCallMs: Infinity }, MINUTE, signals);
}

/** Has the last try of a live SKU be a minute ago, and lets waits end. */
async function passMinute(): Promise<void> {
  await store.sql`update catalog_internal.live_ceiling set credit_from = credit_from - interval '1 minute'`;
  await store.sql`
    update catalog_internal.live_plan set outage_since = outage_since - interval '1 minute' where outage_since is not null`;
  await store.sql`update catalog_internal.due set held_until = held_until - interval '1 minute' where held_until is not null`;
}

const told = () => events.flatMap(({ event }) => (event.startsWith('live-outage') ? [event] : []));

test('records that cannot be read are none of it, and end one', async () => {
  isOdd = true;
  await calls(5);
  expect(told()).toEqual([]);
  isOdd = false;
  await calls(5);
  await passMinute();
  isOdd = true;
  await calls(1);
  expect(told()).toEqual(['live-outage.began', 'live-outage.ended']);
});

describe('errors of nearly all live SKUs, while others are answered', () => {
  test('are an outage of the live source: it is told, no live SKU is to blame, and none is asked but one in a while', async () => {
    const { sql } = store;
    await calls(3);
    expect(told()).toEqual(['live-outage.began']);
    expect((await readLivePlan(sql)).outageSince).toEqual(expect.any(Number));
    const rows = [...(await ledger(sql)).values()].filter(({ live }) => live);
    expect(rows.filter(({ lane, failures }) => lane !== 2 || failures > 0)).toEqual([]);
    asked = [];
    await passMinute();
    await calls(6);
    expect(asked.map((skus) => skus.length).filter((live) => live > 0)).toEqual([1]);
    await passMinute();
    await passMinute();
    await calls(2, daemon());
    expect(asked.map((skus) => skus.length).filter((live) => live > 0)).toEqual([1, 1]);
    expect([...(await ledger(sql)).values()].filter(({ failures }) => failures > 0)).toEqual([]);
    expect(told()).toEqual(['live-outage.began']);
  });

  test('are over with the first that is answered, and all are asked again as before', async () => {
    const { sql } = store;
    await calls(3);
    works = true;
    await passMinute();
    await passMinute();
    await sql`update catalog_internal.tasks set next_at = now() + interval '1 hour' where task = 'live-plan'`;
    await calls(1);
    expect(told()).toEqual(['live-outage.began', 'live-outage.ended']);
    expect((await readLivePlan(sql)).outageSince).toBeNull();
    asked = [];
    await calls(2);
    expect(asked.map((skus) => skus.length)).toEqual([5, 5]);
    const [task] =
      await sql`select next_at <= clock_timestamp() as now from catalog_internal.tasks where task = 'live-plan'`;
    expect(task).toEqual({ now: true });
  });

  test('are told once by several daemons, and not again by one that has not seen the end', async () => {
    const other = daemon();
    await calls(2, other);
    await calls(3);
    works = true;
    await passMinute();
    await passMinute();
    await calls(1);
    await calls(2, other);
    expect(told()).toEqual(['live-outage.began', 'live-outage.ended']);
  });

  test('are none where the others are in errors, too, or few live SKUs are', async () => {
    ctx = daemon();
    const answer = { bulk: async (_: unknown, skus: readonly string[]) => Promise.resolve(failing(skus)) };
    const failing = (skus: readonly string[]): BulkAnswer => ({
      results: new Map(),
      notFound: [],
      deferred: [],
      errors: [...skus],
      requested: null,
    });
    await calls(5, { ...ctx, client: answer } as unknown as SyncContext);
    expect(told()).toEqual([]);
  });

  test('keep no other SKU waiting: with live SKUs alone due, there is no call before the next try', async () => {
    const { sql } = store;
    await calls(3);
    await sql`update catalog_internal.due set due_at = now() + interval '1 day' where not live`;
    await sql`update catalog_internal.live_plan set outage_since = now() - interval '10 minutes'`;
    await sql`update catalog_internal.live_ceiling set credit_from = now()`;
    const idle = await repriceOnce(ctx, { sinceLastCallMs: Infinity }, MINUTE, signals);
    expect(idle).toMatchObject({ kind: 'idle', nextInMs: expect.closeTo(MINUTE, -4) as number });
    // A call with a single other SKU waits for more to come due, as if no live SKU were due.
    await sql`update catalog_internal.due set due_at = now(), held_until = null where sku = (select min(sku) from catalog_internal.due where not live)`;
    ctx.floors.reset();
    const lingering = await repriceOnce(ctx, { sinceLastCallMs: 0 }, MINUTE, signals);
    expect(lingering).toMatchObject({ kind: 'linger' });
  });

  test('of one of them have it asked again as often as if it were well', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set due_at = now() + interval '1 day' where sku <> 'L007'`;
    await sql`update catalog_internal.due set failures = 9 where sku = 'L007'`;
    await sql`update catalog_internal.live_plan set solved_at = now()`;
    await calls(1);
    const [row] = await sql`
      select extract(epoch from held_until - now()) / 60 between 25 and 31 as turn from catalog_internal.due where sku = 'L007'`;
    expect(row).toEqual({ turn: true });
    // Not before it is known that the calls suffice for all.
    await sql`update catalog_internal.due set held_until = null where sku = 'L007'`;
    await sql`update catalog_internal.live_plan set solved_at = null`;
    await calls(1);
    const [later] =
      await sql`select held_until > now() + interval '5 hours' as is from catalog_internal.due where sku = 'L007'`;
    expect(later).toEqual({ is: true });
  });

  test('that nothing has tried for an hour say nothing any longer', async () => {
    const { sql } = store;
    await calls(3);
    await sql`
      update catalog_internal.live_plan set outage_since = now() - interval '2 hours'`;
    await sql`update catalog_internal.live_ceiling set credit_from = now() - interval '61 minutes'`;
    expect((await readLivePlan(sql)).outageSince).toBeNull();
    await calls(3);
    expect(told()).toEqual(['live-outage.began', 'live-outage.began']);
  });
});

describe('calls that fail as a whole for their live SKUs', () => {
  const live = () => asked.map((skus) => skus.length);
  const failures = async () => (await callPause(store.sql)).failures;

  test('are an outage, too: others are asked without them, and a live SKU that is tried fails no other', async () => {
    const { sql } = store;
    [hangs, works] = [true, true];
    await calls(2);
    expect(live()).toEqual([5, 5]);
    await calls(6);
    expect(live()).toEqual([5, 5, 0, 1, 0, 1, 0, 0]);
    expect(told()).toEqual(['live-outage.began']);
    expect((await readLivePlan(sql)).outageSince).toEqual(expect.any(Number));
    [asked, sizes] = [[], []];
    await passMinute();
    await calls(2);
    expect(live()).toEqual([1, 0]);
    expect(sizes[0]).toBe(1);
    expect(await failures()).toBe(0);
    // Its SKU is not to blame, and the next one has another.
    const [tried] = asked[0] ?? [];
    expect((await ledger(sql)).get(tried ?? '')).toMatchObject({ failures: 0 });
    hangs = false;
    await passMinute();
    await passMinute();
    await calls(1);
    expect(told()).toEqual(['live-outage.began', 'live-outage.ended']);
  });

  test('the one that is tried is drawn: those due longest may fail for themselves', async () => {
    const { sql } = store;
    [hangs, works] = [true, true];
    await calls(8);
    expect(told()).toEqual(['live-outage.began']);
    asked = [];
    await sql`update catalog_internal.due set due_at = due_at - row_number * interval '1 second'
      from (select sku, row_number() over (order by sku) from catalog_internal.due where live) l where l.sku = due.sku`;
    // In 24 draws of 60 there are hardly ever as few as these; in an order, two have turns.
    for (let tries = 0; tries < 24; tries += 1) {
      await passMinute();
      await calls(2);
    }
    const tried = asked.flat();
    expect(tried.length).toBeGreaterThanOrEqual(24);
    expect(new Set(tried).size).toBeGreaterThan(10);
    // SKUs of failed calls are drawn from, too.
    await sql`update catalog_internal.due set largest_call = 1 where live`;
    asked = [];
    await passMinute();
    await calls(2);
    expect(live()).toEqual(expect.arrayContaining([1]));
  });

  test('that is not known yet blames no live SKU that is tried', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set failures = 1 where live`;
    [hangs, works] = [true, true];
    await calls(4);
    expect(live()).toEqual([5, 5, 0, 1]);
    const [row] = await sql`
      select failures, held_until < clock_timestamp() + interval '10 minutes' as soon from catalog_internal.due
      where sku = ${asked[3]?.[0] ?? ''}`;
    expect(row).toEqual({ failures: 2, soon: true });
    expect(told()).toEqual([]);
  });

  test('that another daemon doubts blames no live SKU, unless one was computed since it failed before', async () => {
    const { sql } = store;
    [hangs, works] = [true, true];
    const fails = async () => {
      await sql`update catalog_internal.due set due_at = now() + interval '1 day'`;
      await sql`
        update catalog_internal.due set due_at = now(), largest_call = 1, failures = 1, held_until = null, claim = null
        where sku = 'L007'`;
      await sql`update catalog_internal.tasks set failures = 0, next_at = now() where task = 'reprice'`;
      ctx = daemon();
      await calls(1);
      const [row] = await sql`
        select failures, held_until < clock_timestamp() + interval '10 minutes' as soon from catalog_internal.due where sku = 'L007'`;
      return row;
    };
    expect(await fails()).toEqual({ failures: 2, soon: true });
    await sql`insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
      values (clock_timestamp() - interval '30 seconds', 1, 0, 0, 0)`;
    expect(await fails()).toEqual({ failures: 2, soon: false });
    // Not for the first failure of a call of its own, whatever it was in errors for.
    await sql`update catalog_internal.due set failures = 4, due_at = case when sku = 'L009' then now() else now() + interval '1 day' end`;
    await sql`update catalog_internal.tasks set failures = 0, next_at = now() where task = 'reprice'`;
    await calls(1, daemon());
    const [row] = await sql`
      select failures, held_until < clock_timestamp() + interval '20 minutes' as soon from catalog_internal.due where sku = 'L009'`;
    expect(row).toEqual({ failures: 5, soon: true });
  });

  test('try a promised SKU that is due for nothing else, and keep no other waiting for it', async () => {
    const { sql } = store;
    [hangs, works] = [true, true];
    await calls(8);
    await sql`
      update catalog_internal.due set due_at = now() + interval '15 minutes', held_until = null, largest_call = null where live`;
    await sql`
      update catalog_internal.due set promised_at = now() - interval '1 second', promised_by = now() + interval '30 seconds'
      where sku = 'L001'`;
    await passMinute();
    ctx.floors.reset();
    [asked, sizes] = [[], []];
    await calls(4);
    expect(asked.flat()).toEqual(['L001']);
    expect(sizes.filter((skus) => skus > 1).length).toBeGreaterThanOrEqual(2);
  });

  test('end with the waits of live SKUs that were blamed before they were known', async () => {
    const { sql } = store;
    [hangs, works] = [true, true];
    await calls(8);
    await sql`
      update catalog_internal.due set largest_call = 1, failures = 3, held_until = now() + interval '6 hours', claim = null
      where sku in ('L001', 'S001')`;
    await sql`
      update catalog_internal.due set largest_call = null, held_until = now() + interval '6 hours', claim = null where sku = 'L002'`;
    hangs = false;
    await passMinute();
    await passMinute();
    await calls(1);
    expect(told()).toEqual(['live-outage.began', 'live-outage.ended']);
    const held = await sql<{ sku: string }[]>`
      select sku from catalog_internal.due where held_until > now() + interval '1 hour' order by sku`;
    expect((await ledger(sql)).get('L001')).toMatchObject({ failures: 0 });
    // One that waits for another reason, and one that is not live, wait on.
    expect(held.map(({ sku }) => sku)).toEqual(['L002', 'S001']);
  });

  test('are none where others fail, too', async () => {
    const bulk = async () => await Promise.reject(new PartnerError('timeout', 'bulk', {}));
    await calls(8, { ...ctx, client: { bulk } } as unknown as SyncContext);
    expect(told()).toEqual([]);
    expect(await failures()).toBe(4);
  });
});
