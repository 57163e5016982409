import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { callPause, FAILURES_BEFORE_PAUSE } from '../../src/store/ledger/tasks.ts';
import { ask } from '../../src/sync/ask.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { afterFailedCall, ANY_SIZE } from '../../src/sync/reprice/call-size.ts';
import type { IterationResult } from '../../src/sync/reprice/plan-call.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { allDue, callInputs, failCall, HOUR, knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const NOT_FOUND = (skus: readonly string[]): BulkAnswer => ({
  results: new Map(),
  notFound: [...skus],
  deferred: [],
  errors: [],
  requested: null,
});

/** A call under way: `fail` and `answer` end it. */
interface UnderWay {
  readonly skus: readonly string[];
  fail(kind: PartnerErrorKind): Promise<IterationResult>;
  answer(): Promise<IterationResult>;
}

let events: SyncEvent[];
let ctx: SyncContext;
/** Receives the next request. */
let onRequest: (skus: readonly string[], end: PromiseWithResolvers<BulkAnswer>) => void;

beforeEach(() => {
  events = [];
  const limits = { maxPerWindow: 1_000_000, windowMs: MINUTE, backoffMs: MINUTE };
  ctx = {
    observers: NO_OBSERVERS,
    sql: store.sql,
    pacer: createPacer(store.sql, systemClock, limits),
    client: {
      bulk: (_: unknown, skus: readonly string[]) => {
        const end = Promise.withResolvers<BulkAnswer>();
        onRequest(skus, end);
        return end.promise;
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings: settingsWith({ BULK_MAX_SKUS: '1' }),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
});

const iterate = (onSent?: () => void) =>
  repriceOnce(ctx, { sinceLastCallMs: Infinity }, MINUTE, signals, onSent);

/** Sends a call, which is then under way. */
async function send(): Promise<UnderWay> {
  const sent = Promise.withResolvers<void>();
  let asked: readonly string[] = [];
  let ending: PromiseWithResolvers<BulkAnswer> | undefined;
  onRequest = (skus, end) => {
    asked = skus;
    ending = end;
  };
  const call = iterate(() => sent.resolve());
  await Promise.race([sent.promise, call]);
  expect(ending).toBeDefined();
  return {
    skus: asked,
    fail: async (kind) => {
      ending?.reject(new PartnerError(kind, 'bulk'));
      return await call;
    },
    answer: async () => {
      ending?.resolve(NOT_FOUND(asked));
      return await call;
    },
  };
}

/** Makes SKUs due that each failed alone once before. */
async function suspects(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await mark(store.sql, skus, 'changed');
  await store.sql`update catalog_internal.due set largest_call = 1, failures = 1 where sku = any(${skus})`;
}

const waits = async () => {
  const rows = await store.sql<{ sku: string; minutes: number; failures: number }[]>`
    select sku, round(extract(epoch from held_until - now()) / 60)::int as minutes, failures
    from catalog_internal.due where claim is null and held_until is not null order by sku`;
  return Object.fromEntries(rows.map(({ sku, minutes, failures }) => [sku, { minutes, failures }]));
};
const named = () => events.flatMap((event) => (event.event === 'bulk.failed' ? [event.sku ?? null] : []));

describe('a SKU that fails alone for the second time', () => {
  test('is blamed while other calls work: it waits an hour, and is named', async () => {
    await suspects('A');
    await (await send()).fail('bad-request');
    expect(await waits()).toEqual({ A: { minutes: 60, failures: 2 } });
    expect(named()).toEqual(['A']);
    expect([...(await store.sql`select catalog.explain('A') -> 'next' ->> 'last_error' as why`)]).toEqual([
      { why: 'call-bad-request' },
    ]);
  });

  test('waits as after any error if another call failed and none has worked since: it may be an outage', async () => {
    await suspects('A');
    await failCall(store.sql, 0, 0);
    await (await send()).fail('timeout');
    expect(await waits()).toEqual({ A: { minutes: 2, failures: 2 } });
    expect(named()).toEqual([null]);
  });

  test('is not blamed if others that were under way with it have failed', async () => {
    await suspects('A', 'B', 'C');
    const calls = [await send(), await send(), await send()];
    // The first call to end cannot know of the others.
    for (const call of calls) await call.fail('timeout');
    const [first, ...others] = calls.flatMap(({ skus }) => skus);
    const now = await waits();
    expect(now[first ?? '']).toEqual({ minutes: 60, failures: 2 });
    for (const sku of others) expect(now[sku]).toEqual({ minutes: 2, failures: 2 });
    expect(named()).toEqual([first, null, null]);
    expect((await callPause(store.sql)).failures).toBe(1);
  });
});

describe('once calls pause', () => {
  async function outage(): Promise<void> {
    for (let failures = 0; failures < FAILURES_BEFORE_PAUSE; failures += 1)
      await failCall(store.sql, 0, failures);
  }

  test('one goes out at a time, whoever sends it, until it has ended', async () => {
    await knownSkus(store.sql, ['A', 'B', 'C']);
    await mark(store.sql, ['A', 'B', 'C'], 'changed');
    await outage();
    const call = await send();
    expect(await iterate()).toMatchObject({ kind: 'wait', because: 'calls-failing' });
    expect((await callInputs(store.sql)).pause).toEqual({
      ms: 1000,
      failures: FAILURES_BEFORE_PAUSE,
      rejections: 0,
    });
    await call.answer();
    expect((await callInputs(store.sql)).pause).toEqual({ ms: 0, failures: 0, rejections: 0 });
    const others = [await send(), await send()];
    for (const other of others) await other.answer();
  });

  test('one that fails makes all wait for a longer pause', async () => {
    await knownSkus(store.sql, ['A', 'B']);
    await mark(store.sql, ['A', 'B'], 'changed');
    await outage();
    await (await send()).fail('timeout');
    const pause = await callPause(store.sql);
    expect(pause.failures).toBe(FAILURES_BEFORE_PAUSE + 1);
    expect(pause.ms).toBeGreaterThan(1.9 * MINUTE);
  });

  test('the next try has other SKUs: the last ones wait longer than the pause, suspects come last', async () => {
    await suspects('A', 'B', 'C');
    await store.sql`update catalog_internal.due set failures = 0, due_at = due_at + interval '1 second' where sku <> 'A'`;
    await store.sql`update catalog_internal.due set due_at = due_at - interval '1 minute'`;
    await outage();
    const { intervals } = ctx.settings;
    const first = await send();
    expect(first.skus).not.toContain('A');
    await first.fail('timeout');
    const pause = await callPause(store.sql);
    const held = (await waits())[first.skus[0] ?? ''];
    expect(held).toEqual({ minutes: Math.round((pause.ms + intervals.errorMs) / MINUTE), failures: 0 });
    await store.sql`update catalog_internal.tasks set next_at = now() where task = 'reprice'`;
    const second = await send();
    expect([...first.skus, ...second.skus].toSorted()).toEqual(['B', 'C']);
    await second.answer();
  });

  test('neither an expired claim nor a waiting SKU blocks the next try', async () => {
    await knownSkus(store.sql, ['A', 'B']);
    await mark(store.sql, ['A', 'B'], 'changed');
    await outage();
    await claimDue(store.sql, { quotas: allDue(1) }, HOUR);
    expect((await callPause(store.sql)).ms).toBe(1000);
    await store.sql`update catalog_internal.due set held_until = now() - interval '1 second' where claim is not null`;
    await store.sql`update catalog_internal.due set held_until = now() + interval '1 hour' where claim is null`;
    expect((await callPause(store.sql)).ms).toBe(0);
  });

  test('a failure fewer than that leaves calls side by side', async () => {
    await knownSkus(store.sql, ['A', 'B']);
    await mark(store.sql, ['A', 'B'], 'changed');
    for (let failures = 0; failures < FAILURES_BEFORE_PAUSE - 1; failures += 1)
      await failCall(store.sql, 0, failures);
    const calls = [await send(), await send()];
    expect(calls.flatMap(({ skus }) => skus).toSorted()).toEqual(['A', 'B']);
    expect(await store.sql`select from catalog_internal.due where claim is not null`).toHaveLength(2);
    for (const call of calls) await call.answer();
  });
});

describe('a pause after failed calls', () => {
  /**
   * Simulates an outage: four calls failed, and so did the one that tried after the pause. The next try has
   * another SKU.
   */
  async function pausedBy(kind: PartnerErrorKind): Promise<void> {
    await knownSkus(store.sql, ['A']);
    await mark(store.sql, ['A'], 'changed');
    for (let failures = 0; failures < FAILURES_BEFORE_PAUSE; failures += 1)
      await failCall(store.sql, 0, failures);
    await (await send()).fail(kind);
    expect((await callPause(store.sql)).ms).toBeGreaterThan(MINUTE);
  }
  const answered = () => ask(ctx, 'delta', async () => 'an answer', 0);
  const notAnswered = (kind: PartnerErrorKind, code?: string) =>
    ask(
      ctx,
      'delta',
      async () => {
        throw new PartnerError(kind, 'delta', code === undefined ? {} : { code });
      },
      0,
    );

  test.each(['network', 'timeout', 'service-fault', 'unreadable', 'not-a-route', 'no-skus-read'] as const)(
    'after %s ends when any other route is answered, and the next call may ask for the same SKU',
    async (kind) => {
      await pausedBy(kind);
      await answered();
      const call = await send();
      expect(call.skus).toEqual(['A']);
      await call.answer();
      expect(await callPause(store.sql)).toEqual({ ms: 0, failures: 0, rejections: 0 });
    },
  );

  test('ends after an error with a code of the partner, but not after a failed connection', async () => {
    await pausedBy('network');
    await notAnswered('network');
    await notAnswered('service-fault');
    expect((await callPause(store.sql)).ms).toBeGreaterThan(MINUTE);
    await notAnswered('no-snapshot', '0012');
    expect((await callPause(store.sql)).ms).toBe(0);
  });

  test('keeps the failures counted: if calls fail again, it continues to grow', async () => {
    await pausedBy('timeout');
    await answered();
    await (await send()).fail('timeout');
    const pause = await callPause(store.sql);
    expect(pause.failures).toBe(FAILURES_BEFORE_PAUSE + 2);
    expect(pause.ms).toBeGreaterThan(3.9 * MINUTE);
  });

  test('does not end through other routes if the partner rejects only calls', async () => {
    await pausedBy('bad-request');
    await answered();
    expect((await callPause(store.sql)).ms).toBeGreaterThan(MINUTE);
  });

  test.each(['bad-request', 'answer-too-large'] as const)(
    'after %s ends, too, if the other route had failed before: whatever it was is over',
    async (kind) => {
      await pausedBy(kind);
      await ask(
        ctx,
        'delta',
        async () => {
          throw new PartnerError('snapshot-stale', 'delta', { status: 503, code: '0014' });
        },
        1,
      );
      expect((await callPause(store.sql)).ms).toBeGreaterThan(MINUTE);
      await ask(ctx, 'delta', async () => 'an answer', 1);
      expect((await callPause(store.sql)).ms).toBe(0);
    },
  );

  test('does not end the waits of SKUs after errors and deferrals of their own', async () => {
    await knownSkus(store.sql, ['erring', 'deferred']);
    await mark(store.sql, ['erring', 'deferred'], 'changed');
    await store.sql`
      update catalog_internal.due set held_until = now() + interval '1 hour', failures = (sku = 'erring')::int,
        deferrals = (sku = 'deferred')::int`;
    await pausedBy('network');
    await answered();
    expect(Object.keys(await waits())).toEqual(['deferred', 'erring']);
  });

  test.each([
    ['network', 5],
    ['timeout', 5],
    ['service-fault', 5],
    ['unreadable', 5],
    ['not-a-route', 5],
    ['no-skus-read', 5],
    ['bad-request', 30],
  ] as const)('after %s lasts at most %i minutes without such evidence', (kind, minutes) => {
    const failed = { kind, skus: 1, failures: 20, rejections: 20, hadFailed: false };
    const { pauseMs } = afterFailedCall(failed, { step: 0, ...ANY_SIZE }, ctx.settings);
    expect(pauseMs).toBe(minutes * MINUTE);
    const rare = settingsWith({ ERROR_INTERVAL: '10m' });
    expect(afterFailedCall(failed, { step: 0, ...ANY_SIZE }, rare).pauseMs).toBe(
      Math.max(10, minutes) * MINUTE,
    );
  });
});

test('four calls lost to one outage and four lost to the next count as two failures', async () => {
  const skus = Array.from({ length: 12 }, (_, i) => `S${i}`);
  await knownSkus(store.sql, skus);
  await mark(store.sql, skus, 'changed');
  for (const failures of [1, 2]) {
    const calls = [await send(), await send(), await send(), await send()];
    await Promise.all(calls.map(async (call) => call.fail('network')));
    expect(await callPause(store.sql)).toEqual({ ms: 0, failures, rejections: 0 });
  }
});
