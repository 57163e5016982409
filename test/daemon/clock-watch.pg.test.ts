import { expect, test } from 'vitest';
import { createClockWatch } from '../../src/daemon/clock-watch.ts';
import { systemClock } from '../../src/lib/clock.ts';
import {
  isClockSteady,
  noteClock,
  NOTHING_RIGHT,
  NotPutRight,
  putClockRight,
  readClock,
} from '../../src/store/clock.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import type { ClockEvent } from '../../src/sync/clocks.ts';
import { allDue, answerAsked, found, HOUR, knownSkus, LEASE_MS, mark, useStore } from '../store/support.ts';
import { setClockAhead } from '../support/movable-clock.ts';

const store = useStore({ movableClock: true });
const OFF_MS = -70_000;
const believed = async () => {
  const [row] = await store.sql<[{ believed: boolean }]>`
    select catalog_internal.believable_until() > clock_timestamp() as believed`;
  return row.believed;
};

test("a host suspended together with its Postgres trusts its clock as before, even if the partner's differs", async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const watch = createClockWatch(store.sql, clock, () => {});
  const answered = () => watch.partnerAnswered(new Date(clock.now() + OFF_MS));
  answered();
  await watch.check();
  expect(watch.wrong()?.clock).toBe('partner');

  aheadMs = 8 * HOUR;
  await setClockAhead(store.sql, aheadMs / 1000);
  await watch.check();
  expect([watch.wrong(), await believed()]).toEqual([null, true]);
  answered();
  for (let looks = 0; looks < 3; looks += 1) {
    await watch.check();
    expect([watch.wrong()?.clock, await believed()]).toEqual(['partner', true]);
  }
});

test('a machine that was suspended while its Postgres was not makes no price doubtful', async () => {
  const watch = createClockWatch(store.sql, systemClock, () => {});
  watch.partnerAnswered(new Date(systemClock.now()));
  await watch.check();
  // This process's clocks stood still, and so did the partner's time, which is known relative to them.
  await setClockAhead(store.sql, 72 * 3600);
  for (let looks = 0; looks < 2; looks += 1) {
    await watch.check();
    expect([watch.wrong()?.clock, await believed()]).toEqual(['unknown', true]);
  }
  watch.partnerAnswered(new Date(systemClock.now() + 72 * HOUR));
  await watch.check();
  expect([watch.wrong()?.clock, await believed()]).toEqual(['host', true]);
});

test("Postgres's clock that was set forward is detected by the partner's next answer", async () => {
  const watch = createClockWatch(store.sql, systemClock, () => {});
  watch.partnerAnswered(new Date(systemClock.now()));
  await watch.check();
  await setClockAhead(store.sql, 72 * 3600);
  await watch.check();
  expect(await isClockSteady(store.sql)).toBe(false);
  watch.partnerAnswered(new Date(systemClock.now()));
  await watch.check();
  expect([watch.wrong()?.clock, await believed()]).toEqual(['postgres', false]);
});

/**
 * Returns whether the clock was steady in each of five short runs, two hours apart, whose partner's clock is off
 * by `offMs`.
 */
async function steadyOfRuns(offMs: number): Promise<boolean[]> {
  await noteClock(store.sql, { steady: false });
  const steady: boolean[] = [];
  for (let runs = 0; runs < 5; runs += 1) {
    const aheadMs = runs * 2 * HOUR;
    await setClockAhead(store.sql, aheadMs / 1000);
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const watch = createClockWatch(store.sql, clock, () => {});
    await watch.check();
    expect(await isClockSteady(store.sql)).toBe(false);
    await watch.check();
    expect(await isClockSteady(store.sql)).toBe(false);
    watch.partnerAnswered(new Date(clock.now() + offMs));
    await watch.check();
    steady.push(await isClockSteady(store.sql));
  }
  return steady;
}

test('runs from cron know from the second one on that the clock is steady, once the partner has answered', async () => {
  expect(await steadyOfRuns(0)).toEqual([false, true, true, true, true]);
});

test('runs from cron never call the clock steady if the partner has another time', async () => {
  expect(await steadyOfRuns(-2 * HOUR)).toEqual([false, false, false, false, false]);
});

/** Creates a seller's trigger that refuses each change of the history. */
async function appendOnly(): Promise<void> {
  await store.sql`create function public.refuse() returns trigger language plpgsql as 'begin raise exception ''append-only''; end'`;
  await store.sql`create trigger append_only before update on catalog.price_history for each row execute function public.refuse()`;
}

test('what Postgres refuses to correct is reported, retried ever more rarely, and corrected once it may be', async () => {
  const { sql } = store;
  const events: ClockEvent[] = [];
  let passedMs = 0;
  const clock = { ...systemClock, monotonic: () => passedMs, now: () => systemClock.now() + passedMs };
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A', { 9: 100 }));
  const aheadSeconds = 8 * 24 * 3600;
  await setClockAhead(sql, aheadSeconds);
  await noteClock(sql, { steady: false });
  await answerAsked(sql, found('A', { 9: 200 }));
  await appendOnly();
  await setClockAhead(sql, 0);

  const watch = createClockWatch(sql, clock, (event) => events.push(event));
  const tried = () => events.filter(({ event }) => event === 'clock.not-put-right').length;
  await watch.check();
  expect(watch.notPutRight()).toMatchObject({
    part: 'the histories',
    problem: expect.stringContaining('P0001'),
    hint: expect.stringContaining('trigger'),
  });
  // Everything but the histories is corrected, and nothing is trusted before they are.
  const [sku] = await sql`select asked_at <= clock_timestamp() as past from catalog.skus where sku = 'A'`;
  expect([sku, await believed()]).toEqual([{ past: true }, false]);
  // The retries do not advance what waits by the correct clock either.
  await knownSkus(sql, ['C', 'D']);
  await mark(sql, ['C', 'D']);
  await claimDue(sql, { named: ['C'], quotas: allDue(1) }, LEASE_MS);
  await sql`update catalog_internal.due set held_until = clock_timestamp() + interval '5 minutes' where sku = 'D'`;
  const waiting = () =>
    sql`select sku, held_until::text, again_at::text from catalog_internal.due order by sku`.values();
  const waitBefore = await waiting();
  const waits: number[] = [];
  for (let waitedMs = 2000; waits.length < 6; waitedMs += 2000) {
    passedMs += 2000;
    await setClockAhead(sql, passedMs / 1000);
    await watch.check();
    if (tried() === waits.length + 1) continue;
    waits.push(waitedMs / 1000);
    waitedMs = 0;
  }
  expect(waits).toEqual([2, 4, 8, 16, 32, 60]);
  expect(await waiting()).toEqual(waitBefore);
  await sql`drop function public.refuse() cascade`;
  passedMs += 60_000;
  await setClockAhead(sql, passedMs / 1000);
  await watch.check();
  expect([watch.notPutRight(), (await readClock(sql))?.setBackSeconds, await believed()]).toEqual([
    null,
    null,
    true,
  ]);
  expect(events.at(-1)?.event).toBe('clock.set-back');
});

test('times from a clock that is set back again while Postgres still refuses are corrected nevertheless', async () => {
  const { sql } = store;
  const done = { ...NOTHING_RIGHT };
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A', { 9: 100 }));
  for (const [times, days] of [8, 8, 2].entries()) {
    await setClockAhead(sql, days * 24 * 3600);
    await noteClock(sql, { steady: false });
    await answerAsked(sql, found('A', { 9: 200 + times }));
    if (times === 0) await appendOnly();
    await setClockAhead(sql, 0);
    for (let tries = 0; tries < 2; tries += 1)
      await expect(putClockRight(sql, done)).rejects.toThrow(NotPutRight);
    const [sku] = await sql`select asked_at <= clock_timestamp() as past from catalog.skus where sku = 'A'`;
    expect(sku).toEqual({ past: true });
  }
  await sql`drop function public.refuse() cascade`;
  expect((await putClockRight(sql, done))?.seconds).toBeGreaterThan(17 * 24 * 3600);
  expect(done).toEqual(NOTHING_RIGHT);
});
