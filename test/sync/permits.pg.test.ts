import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { Pacer, SentPermit } from '../../src/pace/permit.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { readCallInputs } from '../../src/store/call/bulk-call.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { inputOptions } from '../../src/sync/reprice/plan-call.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { allDue, HOUR, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };

/** Re-prices with a permit that comes after another process has claimed all that was due. */
async function overtaken(waited: boolean) {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await mark(sql, ['A']);
  const pacer = createPacer(sql, systemClock, { maxPerWindow: 1000, windowMs: 60_000, backoffMs: 60_000 });
  const late: Pacer = {
    async acquire(...asked) {
      const acquired = await pacer.acquire(...asked);
      await claimDue(sql, { quotas: allDue(1) }, HOUR);
      return acquired.kind === 'granted' ? { ...acquired, waited } : acquired;
    },
  };
  const ctx = {
    sql,
    pacer: late,
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    settings: settingsWith(),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
  return await repriceOnce(ctx, { sinceLastCallMs: Infinity }, HOUR, signals);
}

test.each([
  [false, { kind: 'idle', nextInMs: 250 }],
  [true, { kind: 'idle' }],
])(
  'a call that is not made after all leaves its place in the window (waited for it: %s)',
  async (waited, end) => {
    expect(await overtaken(waited)).toMatchObject(end);
    expect([...(await store.sql`select lane from catalog_internal.pace_sends`)]).toEqual([]);
  },
);

describe('a process that is stopped between permit and request', () => {
  const LONG = 10_000;
  const LIMITS = { maxPerWindow: 1000, windowMs: 60_000, backoffMs: 60_000 };
  /** A clock that moves only when told to. */
  function stoppable() {
    let at = 0;
    const clock: Clock = { now: () => at, monotonic: () => at, sleep: async (ms) => void (at += ms) };
    return { clock, pass: (ms: number) => void (at += ms) };
  }
  const sentSecondsAgo = async () => {
    const rows = await store.sql<{ seconds: number }[]>`
      select extract(epoch from clock_timestamp() - sent_at)::float8 as seconds from catalog_internal.pace_sends`;
    return rows.map(({ seconds }) => seconds);
  };

  test('takes another permit when it continues, if it was stopped while its permit was logged', async () => {
    const { clock, pass } = stoppable();
    let commits = 0;
    // Stopped after the ledger has decided and before the commit is known here.
    const sql = new Proxy(store.sql, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (name !== 'begin') return member;
        return async (...args: unknown[]) => {
          const result = await Reflect.apply(
            member as (...args: unknown[]) => Promise<unknown>,
            target,
            args,
          );
          commits += 1;
          if (commits === 1) pass(LONG);
          return result;
        };
      },
    });
    const acquired = await createPacer(sql, clock, LIMITS).acquire('lane', 60_000);
    expect(acquired.kind).toBe('granted');
    expect(commits).toBeGreaterThan(1);
    expect(await sentSecondsAgo()).toHaveLength(1);
  });

  test.each([
    [100, 1],
    [LONG, 2],
  ])('after %i ms between claim and call has taken %i permits, one of which counts', async (ms, taken) => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A']);
    const { clock, pass } = stoppable();
    const pacer = createPacer(sql, clock, LIMITS);
    let permits = 0;
    const counting: Pacer = {
      async acquire(...asked) {
        const acquired = await pacer.acquire(...asked);
        permits += 1;
        if (permits === 1) pass(ms);
        return acquired;
      },
    };
    const bulk = (permit: SentPermit) => {
      expect(permit.lapsed()).toBe(false);
      return Promise.reject(new PartnerError('aborted', 'bulk'));
    };
    const ctx = {
      sql,
      pacer: counting,
      clock,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      client: { bulk },
      settings: settingsWith(),
      tracer: NO_TRACER,
    } as unknown as SyncContext;
    await repriceOnce(ctx, { sinceLastCallMs: Infinity }, HOUR, signals);
    expect(permits).toBe(taken);
    expect(await sentSecondsAgo()).toHaveLength(1);
  });

  test('does not make its call if that was not planned as half-open but its new permit is', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A']);
    const { clock, pass } = stoppable();
    const pacer = createPacer(sql, clock, LIMITS);
    let permits = 0;
    const backedOffMeanwhile: Pacer = {
      async acquire(...asked) {
        const acquired = await pacer.acquire(...asked);
        permits += 1;
        if (permits === 1) pass(LONG);
        if (permits === 1 || acquired.kind === 'wait') return acquired;
        return { ...acquired, permit: { ...acquired.permit, halfOpen: true } };
      },
    };
    const bulk = () => Promise.reject(new Error('nothing is to be asked'));
    const ctx = {
      sql,
      pacer: backedOffMeanwhile,
      clock,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      client: { bulk },
      settings: settingsWith(),
      tracer: NO_TRACER,
    } as unknown as SyncContext;
    expect(await repriceOnce(ctx, { sinceLastCallMs: Infinity }, HOUR, signals)).toMatchObject({
      kind: 'wait',
      because: 'probe',
    });
    expect(await sentSecondsAgo()).toHaveLength(0);
    expect(await sql`select from catalog_internal.due where claim is not null`).toHaveLength(0);
  });

  test('sends requests even if Postgres always takes that long', async () => {
    const { clock, pass } = stoppable();
    const slow = new Proxy(store.sql, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (name !== 'begin') return member;
        return async (...args: unknown[]) => {
          const result = await Reflect.apply(
            member as (...args: unknown[]) => Promise<unknown>,
            target,
            args,
          );
          pass(LONG);
          return result;
        };
      },
    });
    expect((await createPacer(slow, clock, LIMITS).acquire('lane', 60_000)).kind).toBe('granted');
  });
});

test('SKUs that are given back are asked for again at once, however long due and wherever reading starts', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await mark(sql, ['A']);
  await sql`update catalog_internal.due set due_at = now() - interval '1 hour'`;
  const floors = new DueFloors(systemClock, () => HOUR);
  const asked: (readonly string[])[] = [];
  const bulk = async (_: SentPermit, skus: readonly string[]) => {
    asked.push(skus);
    // The next call is planned while this one is under way.
    await readCallInputs(sql, inputOptions(settingsWith()), floors);
    throw new PartnerError('aborted', 'bulk');
  };
  const pacer = createPacer(sql, systemClock, { maxPerWindow: 1000, windowMs: 60_000, backoffMs: 60_000 });
  const ctx = {
    sql,
    pacer,
    clock: systemClock,
    floors,
    recent: new RecentAnswers(),
    client: { bulk },
    settings: settingsWith(),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
  await repriceOnce(ctx, { sinceLastCallMs: Infinity }, HOUR, signals);
  await repriceOnce(ctx, { sinceLastCallMs: Infinity }, HOUR, signals);
  expect(asked).toEqual([['A'], ['A']]);
});

describe('if a statement of Postgres fails between permit and request', () => {
  const LIMITS = { maxPerWindow: 1000, windowMs: 60_000, backoffMs: 60_000 };

  /** A pool that fails the first statement that contains `words`. */
  function failing(words: string) {
    let failures = 0;
    return new Proxy(store.sql, {
      apply(target, self, args: readonly unknown[]) {
        const [texts] = args;
        if (failures === 0 && Array.isArray(texts) && texts.join('').includes(words)) {
          failures += 1;
          return Promise.reject(new Error('lock timeout'));
        }
        return Reflect.apply(target as unknown as (...given: readonly unknown[]) => unknown, self, args);
      },
    });
  }

  /** Re-prices two SKUs with these parts, which fails. Returns what is claimed then, and the state of the pace. */
  async function failed(parts: Pick<SyncContext, 'sql' | 'pacer' | 'clock'>) {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    await mark(sql, ['A', 'B']);
    const rest = {
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      settings: settingsWith(),
      tracer: NO_TRACER,
      random: () => 0.5,
    };
    const ctx = { ...parts, ...rest } as unknown as SyncContext;
    const iteration = { sinceLastCallMs: Infinity };
    await expect(repriceOnce(ctx, iteration, HOUR, signals)).rejects.toThrow('lock timeout');
    const [left] = await sql`
      select (select count(*)::int from catalog_internal.due where claim is not null or held_until is not null) as claimed,
        (select count(*)::int from catalog_internal.pace_sends where sent_at > now() - interval '1 minute') as sends,
        half_open_sent_at as "halfOpen" from catalog_internal.pace`;
    return left;
  }

  /** A pacer whose next permit is the half-open one, after `refusals` refusals. */
  async function afterRefusals(refusals: number): Promise<Pacer> {
    const { sql } = store;
    const pacer = createPacer(sql, systemClock, LIMITS);
    const first = await pacer.acquire('reprice', 0);
    if (first.kind !== 'granted') throw new Error('no permit');
    await first.permit.settle('throttled-or-forbidden');
    await sql`update catalog_internal.pace set backoff_until = now(), episodes = ${refusals}`;
    await sql`update catalog_internal.pace_sends set sent_at = now() - interval '2 minutes'`;
    return pacer;
  }

  test.each([
    ['the claim', 1, "nextval('catalog_internal.claim_numbers')"],
    ['that SKUs are given back of which a half-open call has too many', 3, 'with claimed as materialized'],
  ])('%s: permit and SKUs are given back', async (_, refusals, words) => {
    const pacer = await afterRefusals(refusals);
    expect(await failed({ sql: failing(words), pacer, clock: systemClock })).toEqual({
      claimed: 0,
      sends: 0,
      halfOpen: null,
    });
  });

  test('the return of a lapsed permit: its SKUs are given back', async () => {
    let at = 0;
    const clock: Clock = { now: () => at, monotonic: () => at, sleep: async () => {} };
    const pacer = createPacer(failing('delete from catalog_internal.pace_sends'), clock, LIMITS);
    const late: Pacer = {
      async acquire(...asked) {
        const acquired = await pacer.acquire(...asked);
        at += 10_000;
        return acquired;
      },
    };
    expect(await failed({ sql: store.sql, pacer: late, clock })).toMatchObject({ claimed: 0 });
  });
});
