import { expect, test } from 'vitest';
import { createClockWatch } from '../../src/daemon/clock-watch.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { HOUR, useStore } from '../store/support.ts';
import { setClockAhead } from '../support/movable-clock.ts';

const store = useStore({ movableClock: true });
const OFF_MS = -70_000;

test('a host that sleeps beside its Postgres believes its clock as before, though the partner has another time', async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const watch = createClockWatch(store.sql, clock, () => {});
  const answered = () => watch.partnerAnswered(new Date(clock.now() + OFF_MS));
  const believed = async () => {
    const [row] = await store.sql<[{ believed: boolean }]>`
      select catalog_internal.believable_until() > clock_timestamp() as believed`;
    return row.believed;
  };
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
