import { expect, test } from 'vitest';
import { createClockWatch } from '../../src/daemon/clock-watch.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { isClockSteady, noteClock } from '../../src/store/clock.ts';
import { HOUR, useStore } from '../store/support.ts';
import { setClockAhead } from '../support/movable-clock.ts';

const store = useStore({ movableClock: true });
const OFF_MS = -70_000;
const believed = async () => {
  const [row] = await store.sql<[{ believed: boolean }]>`
    select catalog_internal.believable_until() > clock_timestamp() as believed`;
  return row.believed;
};

test('a host that sleeps beside its Postgres believes its clock as before, though the partner has another time', async () => {
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

test('a machine that has stood still beside a Postgres that has not takes no price for doubtful', async () => {
  const watch = createClockWatch(store.sql, systemClock, () => {});
  watch.partnerAnswered(new Date(systemClock.now()));
  await watch.check();
  // This process's clocks stood still, and so did what the partner has said by them.
  await setClockAhead(store.sql, 72 * 3600);
  for (let looks = 0; looks < 2; looks += 1) {
    await watch.check();
    expect([watch.wrong()?.clock, await believed()]).toEqual(['unknown', true]);
  }
  watch.partnerAnswered(new Date(systemClock.now() + 72 * HOUR));
  await watch.check();
  expect([watch.wrong()?.clock, await believed()]).toEqual(['host', true]);
});

test("Postgres's clock that was set forward is found by the partner's next answer", async () => {
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

/** Watches of daemons that run for a moment each two hours, and whose partner answers by a clock that is so much off. */
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

test('runs from cron know from the second on that the clock runs on, once the partner has answered', async () => {
  expect(await steadyOfRuns(0)).toEqual([false, true, true, true, true]);
});

test('runs from cron whose partner has another time throw nothing away', async () => {
  expect(await steadyOfRuns(-2 * HOUR)).toEqual([false, false, false, false, false]);
});
