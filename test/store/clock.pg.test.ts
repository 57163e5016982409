import { describe, expect, test } from 'vitest';
import { untilCaughtUp } from '../../src/cli/run.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { isClockSteady, noteClock, putClockRight, readClock } from '../../src/store/clock.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { endTask, startTask } from '../../src/store/ledger/tasks.ts';
import { readDaemons, registerInstance } from '../../src/store/setup/instance.ts';
import { countCatalog, storedCounts } from '../../src/store/status/counts-reader.ts';
import { scanCatalog } from '../../src/store/status/counts.ts';
import { writeSample } from '../../src/store/status/samples.ts';
import type { Log } from '../../src/telemetry/log/logger.ts';
import { setClockAhead, timesAfter } from '../support/movable-clock.ts';
import { ahead, DAY, HOUR, LIMITS, SKUS, trust, type Trust, useClockedStore } from './clocked.ts';
import { allDue, answerAsked, found, LEASE_MS, mark, movesOf, pricesOf, REFRESH } from './support.ts';

const store = useClockedStore();

/** Returns the columns that sellers read and that contain times in the future. */
async function columnsAhead(): Promise<string[]> {
  const [{ now }] = await store.sql<[{ now: Date }]>`select clock_timestamp() as now`;
  return Object.keys(await timesAfter(store.sql, now)).filter((column) => column.startsWith('catalog.'));
}

const NO_PRICES = { priced: null, fresh: null, p50: null, p95: null };
const SURE: Trust = { doubt: null, fresh: true, reason: null };
const CLOCK: Trust = { doubt: 'clock', fresh: false, reason: null };

describe('a clock that was ahead for a while and is right again', () => {
  test('makes no price actionable before its times are corrected, and then none that was answered meanwhile', async () => {
    expect(await trust(store)).toMatchObject({ A: SURE, F: SURE });
    await ahead(store, 8 * DAY, () => answerAsked(store.sql, found('A', { 9: 200 })));
    expect(Object.values(await trust(store))).toEqual(SKUS.map(() => CLOCK));

    expect((await putClockRight(store.sql))?.seconds).toBeCloseTo(8 * DAY, -1);
    const { A, ...rest } = await trust(store);
    expect(A).toEqual({ ...CLOCK, reason: 'clock' });
    expect(Object.values(rest)).toEqual(SKUS.slice(1).map(() => SURE));
    await answerAsked(store.sql, found('A', { 9: 200 }));
    expect((await trust(store))['A']).toEqual(SURE);
    expect(await movesOf(store.sql, 'A')).toEqual(['9: 100 → 200']);
  });

  test('leaves no sample of the status for a minute in the future', async () => {
    const take = () =>
      writeSample(store.sql, {
        state: 'current',
        backingOff: false,
        incident: false,
        requests: 0,
        otherRequests: 0,
        ceiling: 200,
        requestLimit: 200,
        skus: null,
        pending: null,
        due: null,
        snapshot: NO_PRICES,
        live: NO_PRICES,
      });
    await take();
    await ahead(store, 8 * DAY, take);
    const minutes = () => store.sql`select from catalog_internal.samples`;
    expect(await minutes()).toHaveLength(2);
    await putClockRight(store.sql);
    expect(await minutes()).toHaveLength(1);
  });

  test('has counts that began under it dated now, so that later ones replace them', async () => {
    const { sql } = store;
    await setClockAhead(sql, 8 * DAY);
    const meanwhile = async (...counting: Parameters<typeof sql.begin>) => {
      const counted = await sql.begin(...counting);
      await setClockAhead(sql, 0);
      return counted;
    };
    await countCatalog(Object.assign(sql.bind(null), sql, { begin: meanwhile }) as typeof sql);
    expect((await storedCounts(sql))?.ageMs).toBeGreaterThanOrEqual(0);
    await sql`update catalog_internal.catalog_counts set counted_at = clock_timestamp() + interval '8 days'`;
    await countCatalog(sql);
    expect((await storedCounts(sql))?.ageMs).toBeGreaterThanOrEqual(0);
  });

  test('does not make a count longer than this process has measured', async () => {
    const counts = await store.sql.begin(async (tx) => await scanCatalog(tx, () => 5));
    expect(counts.countedInMs).toBe(0);
  });

  test('dates no left token later than a report that came after it', async () => {
    const lefts = { around: -30, within: 2 * HOUR, ahead: 5 * HOUR };
    const { sql } = store;
    await ahead(store, 3 * HOUR, async () => {
      for (const [sku, [token, seconds]] of Object.entries(lefts).entries()) {
        const at = sql`clock_timestamp() - make_interval(secs => ${3 * HOUR - seconds})`;
        await sql`insert into catalog_internal.left_tokens select ${token}, ${at}`;
        await sql`update catalog.skus set reported_at = ${at} + interval '1 minute' where sku = ${SKUS[sku] ?? ''}`;
      }
    });
    await putClockRight(sql);
    const rows = await sql`
      select token, left_at < reported_at as is_earlier, left_at < clock_timestamp() as is_past
      from unnest(${Object.keys(lefts)}::text[], ${SKUS.slice(0, 3)}::text[]) n (token, sku)
      join catalog_internal.left_tokens using (token) join catalog.skus using (sku)`;
    expect(rows).toHaveLength(3);
    for (const row of rows) expect(row).toMatchObject({ is_earlier: true, is_past: true });
  });

  test('is corrected once', async () => {
    await ahead(store, HOUR, () => answerAsked(store.sql, found('A', { 9: 200 })));
    expect(await putClockRight(store.sql)).not.toBeNull();
    expect(await putClockRight(store.sql)).toBeNull();
    expect(await readClock(store.sql)).toMatchObject({ setBackSeconds: null, aheadSeconds: null });
  });

  test('is corrected by the next daemon if one dies in the middle', async () => {
    await ahead(store, HOUR, () => answerAsked(store.sql, found('A', { 9: 200 })));
    await store.sql`select catalog_internal.set_back_clock()`;
    expect((await trust(store))['B']).toEqual(CLOCK);
    expect(await putClockRight(store.sql)).not.toBeNull();
    expect((await trust(store))['B']).toEqual(SURE);
  });

  test('does not date an answer to a claim that was made under it', async () => {
    await mark(store.sql, ['A']);
    await setClockAhead(store.sql, 8 * DAY);
    const claim = await claimDue(store.sql, { quotas: allDue(10) }, LEASE_MS);
    await noteClock(store.sql, { steady: false });
    await setClockAhead(store.sql, 0);
    await putClockRight(store.sql);
    if (claim === null) throw new Error('nothing is due');
    await applyAnswer(store.sql, claim, [found('A', { 9: 200 })], REFRESH);
    expect(await pricesOf(store.sql, 'A')).toEqual({ 9: 200 });
    expect(await columnsAhead()).toEqual([]);
  });

  test('leaves no price change in the future if the SKU is answered again before the correction', async () => {
    await ahead(store, 8 * DAY, () => answerAsked(store.sql, found('A', { 9: 200 })));
    await answerAsked(store.sql, found('A', { 9: 200 }));
    await putClockRight(store.sql);
    expect(await columnsAhead()).toEqual([]);
  });

  test('leaves no mark and no plan for the time that it showed', async () => {
    const inSeconds = async () => {
      const rows = await store.sql<{ sku: string; seconds: number }[]>`
        select sku, extract(epoch from due_at - clock_timestamp())::float8 as seconds from catalog_internal.due order by sku`;
      return Object.fromEntries(rows.map(({ sku, seconds }) => [sku, seconds]));
    };
    const planned = await inSeconds();
    const plan = async (sku: string, reason: string, seconds: number) => {
      await store.sql`
        update catalog_internal.due set reason = ${reason}, lane = catalog_internal.lane_of(${reason}),
          due_at = clock_timestamp() + make_interval(secs => ${seconds}) where sku = ${sku}`;
    };
    await ahead(store, 30 * DAY, async () => {
      await store.sql`select catalog_internal.mark_due(array['A'], 'changed')`;
      await store.sql`select catalog_internal.mark_due(array['B'], 'absent')`;
      await plan('C', 'live', 600);
      await plan('D', 'sweep', DAY);
    });
    await putClockRight(store.sql);
    const { A = 1, B = 1, C = 0, D = 0, ...others } = await inSeconds();
    expect(Math.max(A, B)).toBeLessThanOrEqual(0);
    expect(C).toBeGreaterThan(580);
    expect(C).toBeLessThanOrEqual(600);
    expect(D).toBeGreaterThan(DAY - 20);
    expect(D).toBeLessThanOrEqual(DAY);
    for (const [sku, seconds] of Object.entries(others))
      expect(seconds).toBeLessThanOrEqual(planned[sku] ?? 0);
  });

  test.each([
    ['the last request', () => createPacer(store.sql, systemClock, LIMITS).acquire('delta', 5000)],
    ['the last run of a task', () => startTask(store.sql, 'delta', 20_000)],
    [
      'the last delta',
      () => store.sql`update catalog_internal.sync set delta_checked_at = now(), token_at = now()`,
    ],
  ])('is noticed even if it was ahead only between two checks: by %s', async (_, leave) => {
    await setClockAhead(store.sql, 8 * DAY);
    await leave();
    await setClockAhead(store.sql, 0);
    expect((await putClockRight(store.sql))?.seconds).toBeGreaterThan(8 * DAY - 60);
    expect(await columnsAhead()).toEqual([]);
  });

  test('lets requests go after the wait that they really had, and counts what was sent meanwhile', async () => {
    const pacer = createPacer(store.sql, systemClock, LIMITS);
    await ahead(store, 8 * DAY, async () => {
      for (let n = 0; n < 3; n += 1) await pacer.acquire('reprice', 10_000);
    });
    await putClockRight(store.sql);
    const [sends] = await store.sql<[{ count: number; future: number; old: number }]>`
      select count(*)::int as count, (count(*) filter (where sent_at > clock_timestamp()))::int as future,
        (count(*) filter (where sent_at < clock_timestamp() - interval '20 seconds'))::int as old
      from catalog_internal.pace_sends`;
    expect(sends).toEqual({ count: 3, future: 0, old: 0 });
    expect(await createPacer(store.sql, systemClock, LIMITS).acquire('reprice', 5000)).toMatchObject({
      kind: 'granted',
    });
  });

  test('counts what other services sent meanwhile as sent now', async () => {
    await ahead(store, HOUR, async () => {
      for (let n = 0; n < 5; n += 1) await store.sql`select catalog.take_request('orders')`;
    });
    await putClockRight(store.sql);
    const [others] = await store.sql<[{ sent: number }]>`
      select sent from catalog_internal.others_sent(interval '60 seconds')`;
    expect(others).toEqual({ sent: 5 });
  });

  test('leaves no task waiting for longer than it would have', async () => {
    await ahead(store, 8 * DAY, async () => {
      const run = await startTask(store.sql, 'delta', 20_000);
      await endTask(store.sql, 'delta', run?.run ?? '', { how: 'done', outcome: 'done', nextInMs: 300_000 });
      await startTask(store.sql, 'manifest', 20_000);
    });
    await putClockRight(store.sql);
    expect([
      ...(await store.sql`select task from catalog_internal.tasks where running_until is not null`),
    ]).toEqual([{ task: 'manifest' }]);
    const [tasks] = await store.sql<[{ delta: number; lease: number }]>`
      select extract(epoch from d.next_at - clock_timestamp())::float8 as delta,
        extract(epoch from m.running_until - clock_timestamp())::float8 as lease
      from catalog_internal.tasks d, catalog_internal.tasks m where d.task = 'delta' and m.task = 'manifest'`;
    expect(tasks.delta).toBeGreaterThan(280);
    expect(tasks.delta).toBeLessThanOrEqual(300);
    expect(tasks.lease).toBeLessThanOrEqual(20);
  });

  test('set back makes no running daemon look as if it had just started', async () => {
    const { sql, url } = store;
    expect(await readDaemons(sql)).toEqual({ daemons: 0, daemonSeconds: 0 });
    const leave = await registerInstance(url);
    await setClockAhead(sql, -HOUR);
    expect(await readDaemons(sql)).toEqual({ daemons: 1, daemonSeconds: Infinity });
    await leave();
  });

  test('lets a run that began under it end', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set due_at = clock_timestamp() + interval '1 year'`;
    const polls = async (task: 'delta' | 'manifest') => {
      const run = await startTask(sql, task, 20_000);
      await endTask(sql, task, run?.run ?? '', { how: 'done', outcome: 'done', nextInMs: 300_000 });
    };
    await polls('manifest');
    await setClockAhead(sql, 8 * DAY);
    await noteClock(sql, { steady: false });
    let polled = 0;
    const sleep = async () => {
      polled += 1;
      if (polled === 1) await setClockAhead(sql, 0).then(() => putClockRight(sql));
      if (polled === 2)
        await sql`update catalog_internal.due set due_at = clock_timestamp() + interval '1 year'`;
      if (polled === 2) await polls('manifest');
      if (polled === 3) await polls('delta');
    };
    const clock = { ...systemClock, sleep };
    const app = { sql, wake: async () => {} };
    const log = { info: () => {}, error: () => {} } as unknown as Log;
    expect(await untilCaughtUp(app, log, clock, 5000)).toBe(0);
  });

  test('is not trusted for deleting anything until it has been seen to run steadily for an hour', async () => {
    expect(await isClockSteady(store.sql)).toBe(false);
    await store.sql`update catalog_internal.clock set steady_since = clock_timestamp() - interval '2 hours'`;
    expect(await isClockSteady(store.sql)).toBe(true);
    await setClockAhead(store.sql, 8 * DAY);
    // Nobody has noticed it yet.
    expect(await isClockSteady(store.sql)).toBe(false);
    await noteClock(store.sql, { steady: false });
    expect(await isClockSteady(store.sql)).toBe(false);
    await setClockAhead(store.sql, 0);
    expect(await isClockSteady(store.sql)).toBe(false);
    await putClockRight(store.sql);
    expect(await isClockSteady(store.sql)).toBe(false);
  });
});

test('while the clock is judged to be wrong, nothing is actionable, and nothing old enough to drop', async () => {
  await store.sql`update catalog_internal.clock set steady_since = clock_timestamp() - interval '2 hours'`;
  await noteClock(store.sql, { steady: true, aheadSeconds: 3600 });
  expect((await trust(store))['A']).toEqual(CLOCK);
  expect(await isClockSteady(store.sql)).toBe(false);
  // Nobody can tell, so it stays as it was.
  await noteClock(store.sql, { steady: true });
  expect((await trust(store))['A']).toEqual(CLOCK);
  await noteClock(store.sql, { steady: true, aheadSeconds: null });
  expect((await trust(store))['A']).toEqual(SURE);
  expect(await isClockSteady(store.sql)).toBe(true);
});

test('a reader does not doubt an answer that came after its transaction began', async () => {
  const doubts = await store.sql.begin(async (tx) => {
    await tx`select now()`;
    await answerAsked(store.sql, found('A', { 9: 200 }));
    await noteClock(store.sql, { steady: true });
    return await tx<{ doubt: string | null }[]>`select doubt from catalog.sku_trust where sku = 'A'`;
  });
  expect(doubts).toEqual([{ doubt: null }]);
});
