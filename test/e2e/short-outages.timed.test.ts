import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { createStack, type Stack } from '../support/stack.ts';

/** Every minute of an outage is a second here, where nothing else is said. */
const SCALED = { ERROR_INTERVAL: '1s', LIVE_INTERVAL: '1s', PARTNER_TIMEOUT: '500ms' };

/** The partner resets every connection for so long. */
async function outage({ sandbox }: Stack, ms: number): Promise<void> {
  sandbox.faults.add({ route: '*', times: Infinity, reset: true });
  await systemClock.sleep(ms);
  sandbox.faults.clear();
}

const answered = ({ sandbox }: Stack, route: string, since: number) =>
  sandbox.requests.filter((each) => each.route === route && each.status === 200 && each.at >= since);

/** Milliseconds from `since` to the first bulk call that is answered then. */
async function untilCalled(stack: Stack, since = Date.now()): Promise<number> {
  await eventually(() => expect(answered(stack, 'bulk', since)).not.toEqual([]), { what: 'a bulk call' });
  return (answered(stack, 'bulk', since)[0]?.at ?? Infinity) - since;
}

test('two outages of a second and a half, three seconds apart: calls go on within four pauses of the first kind', async () => {
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

test('an outage of forty pauses: the first call comes within seconds after the delta is answered', async () => {
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

test('a daemon that starts tries at once, whatever calls paused for', async () => {
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
  // Within the patience of a test, and not minutes later.
  await untilCalled(stack, since);
});
