import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { createStack, type Stack } from '../support/stack.ts';

/** A minute of an outage is a second here, unless stated otherwise. */
const SCALED = { ERROR_INTERVAL: '1s', LIVE_INTERVAL: '1s', PARTNER_TIMEOUT: '500ms' };

/** Makes the partner reset every connection for `ms` milliseconds. */
async function outage({ sandbox }: Stack, ms: number): Promise<void> {
  sandbox.faults.add({ route: '*', times: Infinity, reset: true });
  await systemClock.sleep(ms);
  sandbox.faults.clear();
}

const answered = ({ sandbox }: Stack, route: string, since: number) =>
  sandbox.requests.filter((each) => each.route === route && each.status === 200 && each.at >= since);

/** Returns the milliseconds from `since` to the first bulk call answered after it. */
async function untilCalled(stack: Stack, since = Date.now()): Promise<number> {
  await eventually(() => expect(answered(stack, 'bulk', since)).not.toEqual([]), { what: 'a bulk call' });
  return (answered(stack, 'bulk', since)[0]?.at ?? Infinity) - since;
}

test('after two outages of 1.5 seconds, 1.5 seconds apart, calls resume within four of the shortest pauses', async () => {
  await using stack = await createStack({
    sandbox: { skus: 400, liveShare: 1, seed: 1601 },
    env: { ...SCALED, PARTNER_RATE_LIMIT: '240', PARTNER_RATE_WINDOW: '10s' },
  });
  await stack.start();
  await untilCalled(stack);
  await outage(stack, 1500);
  await systemClock.sleep(1500);
  await outage(stack, 1500);
  expect(await untilCalled(stack)).toBeLessThan(4000);
});

test('after an outage of forty pauses, the first call comes within three seconds of the first answered delta', async () => {
  await using stack = await createStack({
    sandbox: { skus: 400, liveShare: 1, seed: 1602 },
    env: { ...SCALED, DELTA_INTERVAL: '500ms' },
  });
  await stack.start();
  await untilCalled(stack);
  await eventually(
    async () => {
      expect(
        await stack.sql`select from catalog_internal.sync where delta_checked_at is not null`,
      ).toHaveLength(1);
    },
    { what: 'the first delta' },
  );
  await outage(stack, 20_000);
  // A failed delta waits a minute, as the contract says: it is asked for again now.
  await stack.sql`update catalog_internal.tasks set next_at = now() where task = 'delta'`;
  const back = Date.now();
  await eventually(() => expect(answered(stack, 'delta', back)).not.toEqual([]), { what: 'a delta' });
  expect(await untilCalled(stack, answered(stack, 'delta', back)[0]?.at)).toBeLessThan(3000);
});

test('a daemon that starts calls at once, however long calls were paused', async () => {
  await using stack = await createStack({
    sandbox: { skus: 50, seed: 1603 },
    env: { ...SCALED, LIVE_INTERVAL: '1h', ERROR_INTERVAL: '10s' },
  });
  await stack.once();
  await stack.everythingDue();
  await stack.sql`
    update catalog_internal.tasks set failures = 8, outcome = 'bad-request', next_at = now() + interval '5 minutes'
    where task = 'reprice'`;
  const since = Date.now();
  await stack.start();
  // Within a test's timeout, and not minutes later.
  await untilCalled(stack, since);
});
