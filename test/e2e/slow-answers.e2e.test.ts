import { expect, test } from 'vitest';
import { MAX_UNDER_WAY } from '../../src/sync/reprice/slice.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';

test('slow answers let the maximum of calls be in flight, no more, and each SKU is asked once', async () => {
  await using stack = await createStack({
    sandbox: { skus: 500, liveShare: 0, ghostShare: 0, unlistedShare: 0, seed: 1701 },
    env: { BULK_MAX_SKUS: '10', PARTNER_TIMEOUT: '60s' },
  });
  const { sandbox } = stack;
  const asked = () => sandbox.requests.filter(({ route }) => route === 'bulk');
  const underWay = () => asked().filter(({ status }) => status === 0).length;
  // Longer than sending that many takes, even on a busy machine.
  sandbox.faults.add({ route: 'bulk', times: MAX_UNDER_WAY, delayMs: 20_000 });
  await stack.start();
  await eventually(() => expect(underWay()).toBe(MAX_UNDER_WAY), { what: 'calls under way' });
  expect(asked()).toHaveLength(MAX_UNDER_WAY);
  await stack.caughtUp();
  expect(asked()).toHaveLength(50);
  expect(stack.logs.filter(({ event }) => event === 'bulk.failed')).toEqual([]);
  await expectMirrorIsTrue(stack.sql, sandbox.world);
});
