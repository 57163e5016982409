import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { pruneSends, readPace, unsend, withPace } from '../../src/pace/ledger.ts';
import { createPacer, type PacerEvents } from '../../src/pace/pacer.ts';
import type { Acquired } from '../../src/pace/permit.ts';
import { initialPace, type PaceLimits, sendsPerWindow } from '../../src/pace/policy.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { waitForLock } from '../../src/store/connection/locks.ts';
import { failing, HOUR, useStore } from '../store/support.ts';
import { mostWithin } from '../support/arrivals.ts';

const store = useStore();
let other: Sql;
beforeAll(() => {
  other = connect(store.url, { max: 4 });
});
afterAll(() => other.end({ timeout: 2 }));

const never = new AbortController().signal;
const LIMITS: PaceLimits = { maxPerWindow: 24, windowMs: 1000, backoffMs: 600 };

function pacer(sql: Sql, limits: PaceLimits = LIMITS, events: PacerEvents = {}) {
  return createPacer(sql, systemClock, limits, events);
}

function granted(acquired: Acquired) {
  if (acquired.kind !== 'granted') throw new Error(`not granted: ${acquired.because}`);
  return acquired.permit;
}

async function sendTimes(): Promise<number[]> {
  const rows = await store.sql<
    { at: Date }[]
  >`select sent_at as at from catalog_internal.pace_sends order by sent_at`;
  return rows.map(({ at }) => at.getTime());
}

describe('the shared pace', () => {
  test('grants exactly as many permits as the window has room for, however many replicas ask at once', async () => {
    const tryOnce = (sql: Sql) =>
      withPace(sql, HOUR, ({ sends }) =>
        sends.length < 10 ? { send: 'lane', result: true } : { result: false },
      );
    const tries = await Promise.all(
      Array.from({ length: 80 }, (_, i) => tryOnce(i % 2 === 0 ? store.sql : other)),
    );
    expect(tries.filter(({ result }) => result)).toHaveLength(10);
    expect(new Set(tries.flatMap(({ sendId }) => (sendId === null ? [] : [sendId]))).size).toBe(10);
    expect(await sendTimes()).toHaveLength(10);
  });

  test('keeps to the rolling window when pacers of several processes run at full speed', async () => {
    const ready = { ...initialPace(LIMITS, 0), raisedAt: 0 };
    await withPace(store.sql, 1, () => ({ state: ready, result: null }));
    const pacers = [pacer(store.sql), pacer(other), pacer(store.sql)];
    const arrivals: number[] = [];
    const worker = async (one: (typeof pacers)[number]) => {
      for (let i = 0; i < 16; i += 1) {
        const permit = granted(await one.acquire('lane', HOUR));
        arrivals.push(performance.now());
        await permit.settle('ok');
      }
    };
    await Promise.all(pacers.map(worker));
    const times = await sendTimes();
    expect(times).toHaveLength(48);
    expect(mostWithin(times, 1050)).toBeLessThanOrEqual(sendsPerWindow(LIMITS));
    expect(arrivals).toHaveLength(48);
  });

  test('backs everyone off after one refusal, until a single half-open request succeeds', async () => {
    const heard: string[] = [];
    const events: PacerEvents = {
      backedOff: ({ outcome, refusals }) => heard.push(`backed off ${outcome} ${refusals}`),
      resumed: () => heard.push('resumed'),
    };
    const limits = { ...LIMITS, backoffMs: 1500 };
    const [mine, theirs] = [pacer(store.sql, limits, events), pacer(other, limits, events)];
    await granted(await mine.acquire('lane', HOUR)).settle('throttled-or-forbidden');
    expect(await theirs.acquire('lane', 100)).toMatchObject({ kind: 'wait', because: 'silence' });
    const probe = granted(await mine.acquire('lane', HOUR));
    expect(await theirs.acquire('lane', 100)).toMatchObject({ kind: 'wait', because: 'probe' });
    await probe.settle('ok');
    await granted(await theirs.acquire('lane', HOUR)).settle('ok');
    expect(heard).toEqual(['backed off throttled-or-forbidden 1', 'resumed']);
    const [first, second] = await sendTimes();
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(limits.backoffMs);
  });

  test('forgets a cancelled permit; after a cancelled half-open request another one may go', async () => {
    const one = pacer(store.sql);
    await granted(await one.acquire('lane', HOUR)).cancel();
    expect(await sendTimes()).toEqual([]);
    await granted(await one.acquire('lane', HOUR)).settle('unauthorised');
    await granted(await one.acquire('lane', HOUR)).cancel();
    const probe = granted(await one.acquire('lane', HOUR));
    await probe.settle('ok');
    expect(await sendTimes()).toHaveLength(2);
    const { state } = await readPace(store.sql, HOUR);
    expect(state).toMatchObject({ backoffUntil: null, halfOpenSentAt: null, refusals: 0 });
  });

  test('returns a wait longer than the caller’s patience as a value, and stops waiting when aborted', async () => {
    const slow = { maxPerWindow: 1, windowMs: HOUR, backoffMs: HOUR };
    const one = pacer(store.sql, slow);
    granted(await one.acquire('lane', 0));
    const refused = await one.acquire('lane', 50);
    expect(refused).toMatchObject({ kind: 'wait', because: 'window' });
    const stop = new AbortController();
    const waiting = one.acquire('lane', 10 * HOUR, stop.signal);
    stop.abort();
    expect(await waiting).toMatchObject({ kind: 'wait', because: 'stopping' });
    expect(await one.acquire('lane', 10, never)).toMatchObject({ kind: 'wait' });
  });

  test('tells with each permit whether the caller had to wait, also behind another caller', async () => {
    const one = pacer(store.sql, { maxPerWindow: 20, windowMs: 8000, backoffMs: HOUR });
    const waited = async () => {
      const acquired = await one.acquire('lane', HOUR);
      return acquired.kind === 'granted' && acquired.waited;
    };
    expect(await waited()).toBe(false);
    expect(await Promise.all([waited(), waited()])).toEqual([true, true]);
    await granted(await one.acquire('lane', HOUR)).cancel();
    await store.sql`delete from catalog_internal.pace_sends`;
    // Nothing was sent, so the next caller need not wait.
    expect(await Promise.all([waited(), waited()])).toEqual([false, true]);
  });

  test('reads a clock that keeps running while it waits for the lock', async () => {
    let begun = () => {};
    const locked = new Promise<void>((resolve) => (begun = resolve));
    const holding = other.begin(async (tx) => {
      await waitForLock(tx, 'pace');
      begun();
      await tx`select pg_sleep(0.3)`;
      const [row] = await tx<[{ at: Date }]>`select clock_timestamp() as at`;
      return row.at.getTime();
    });
    await locked;
    const { result } = await withPace(store.sql, HOUR, ({ now }) => ({ result: now }));
    expect(result).toBeGreaterThanOrEqual(await holding);
  });

  test('grants nothing and keeps its state if the send cannot be logged', async () => {
    await withPace(store.sql, 1, () => ({ state: initialPace(LIMITS, 1000), result: null }));
    const one = pacer(store.sql);
    await using _ = await failing(store.sql, 'insert on catalog_internal.pace_sends');
    await expect(one.acquire('lane', HOUR)).rejects.toThrow('made to fail');
    const raised = { ...initialPace(LIMITS, 2000), refusals: 4 };
    const writing = withPace(store.sql, 1, () => ({ state: raised, send: 'lane', result: null }));
    await expect(writing).rejects.toThrow('made to fail');
    expect((await readPace(store.sql, HOUR)).state).toMatchObject({ raisedAt: 1000, refusals: 0 });
  });

  test('counts requests that another program of the seller logged', async () => {
    const limits = { maxPerWindow: 6, windowMs: HOUR, backoffMs: HOUR };
    await store.sql`
      insert into catalog_internal.pace_sends (sent_at, lane) select now() - interval '1 minute', 'other' from generate_series(1, 5)`;
    expect(await pacer(store.sql, limits).acquire('lane', 0)).toMatchObject({
      kind: 'wait',
      because: 'window',
    });
  });

  test('stores its state to the millisecond', async () => {
    const state = {
      ceiling: 33.25,
      raisedAt: 1_763_700_000_123,
      backoffUntil: 1_763_700_000_456,
      halfOpenSentAt: 1_763_700_000_789,
      refusals: 3,
      refusal: 'unauthorised',
      refusedSince: 1_763_700_000_000,
      refusedAt: 1_763_700_000_001,
      occupancy: 17,
      resumeAt: 20.5,
    };
    await withPace(store.sql, 1, () => ({ state, result: null }));
    expect((await readPace(other, 1)).state).toEqual(state);
  });

  test('prunes sends that no window reaches, and the cancelled one', async () => {
    const { sendId } = await withPace(store.sql, 1, () => ({ send: 'lane', result: null }));
    await withPace(store.sql, 1, () => ({ send: 'lane', result: null }));
    await unsend(store.sql, sendId ?? '');
    await store.sql`insert into catalog_internal.pace_sends (sent_at, lane) values (now() - interval '2 hours', 'old')`;
    expect(await pruneSends(store.sql, { olderThanMs: HOUR })).toBe(1);
    expect((await readPace(store.sql, HOUR)).sends).toHaveLength(1);
  });

  test('sends nothing and frees the lock if the decision throws', async () => {
    const failing = withPace(store.sql, 1, () => {
      throw new Error('no decision');
    });
    await expect(failing).rejects.toThrow('no decision');
    expect(await withPace(other, 1, () => ({ result: 'free' }))).toMatchObject({ result: 'free' });
    expect(await sendTimes()).toEqual([]);
  });
});

test('the pacer reports every wait: how long it took, or what ended it without a permit', async () => {
  const waits: { lane: string; ms: number; putOff: string | null }[] = [];
  const limits = { maxPerWindow: 8, windowMs: 4000, backoffMs: 60_000 };
  const one = pacer(store.sql, limits, { waited: (event) => waits.push(event) });
  const first = granted(await one.acquire('delta', 0));
  await one.acquire('reprice', 0);
  const asked = performance.now();
  await one.acquire('reprice', HOUR);
  const took = performance.now() - asked;
  await first.settle('throttled-or-forbidden');
  await one.acquire('manifest', 100);
  await one.acquire('manifest', 100, AbortSignal.abort());
  expect(waits.map(({ lane, putOff }) => [lane, putOff])).toEqual([
    ['delta', null],
    ['reprice', 'spacing'],
    ['reprice', null],
    ['manifest', 'silence'],
  ]);
  expect(waits[2]?.ms).toBeGreaterThan(100);
  expect(waits[2]?.ms).toBeLessThanOrEqual(took);
});
