import { describe, expect, test } from 'vitest';
import { type Failpoint, FAILPOINTS } from '../../src/lib/failpoint.ts';
import { moveMarket } from '../support/market.ts';
import { expectCursorNotAhead, expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

const SANDBOX = { skus: 300, liveShare: 0.05 };

/** One point of each job at which it ends twice: a job that killed its process before is not given up. */
const TWICE: ReadonlySet<Failpoint> = new Set([
  'manifest.staged',
  'delta.reported',
  'bulk.written',
  'task.worked',
]);

/** Runs the daemon until it kills itself at the point, which it must. */
async function endsAt(stack: Stack, point: Failpoint, nth = 1): Promise<void> {
  await using daemon = startProgram(['run'], stack.env, { failpoint: [point, nth] });
  expect(await daemon.exited).toEqual({ code: null, signal: 'SIGKILL' });
  await expectCursorNotAhead(stack.sql, stack.sandbox.world);
}

/** Brings a running mirror to the point: by a new manifest, a reported change, or a refusal. */
async function provoke(stack: Stack, point: Failpoint, round: number): Promise<void> {
  moveMarket(stack.sandbox.world, round);
  if (point.startsWith('manifest'))
    await stack.sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
  if (point === 'pace.silenced') stack.sandbox.faults.add({ route: 'bulk', status: 403, times: 1 });
}

async function expectTrueAtTheEnd(stack: Stack): Promise<void> {
  await stack.once();
  // Before everything is asked for again, because a lost mark would leave a wrong price.
  await expectCursorNotAhead(stack.sql, stack.sandbox.world);
  await stack.everythingDue();
  await stack.once();
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  await expectHistoryIsAChain(stack.sql);
}

describe.concurrent('a process that ends', () => {
  test.each(FAILPOINTS)(
    'at %s, in a fill and in a running mirror, loses nothing and does nothing twice',
    async (point) => {
      await using stack = await createStack({
        sandbox: { ...SANDBOX, seed: 900 + FAILPOINTS.indexOf(point) },
        env: { DELTA_INTERVAL: '1s' },
      });
      // Before the first baseline, for the points that lie in a fill.
      if (point === 'pace.silenced') stack.sandbox.faults.add({ route: 'manifest', status: 403, times: 1 });
      if (!point.startsWith('delta')) await endsAt(stack, point);
      await stack.once();
      for (const round of TWICE.has(point) ? [0, 1] : [0]) {
        await provoke(stack, point, round);
        await endsAt(stack, point);
      }
      await expectTrueAtTheEnd(stack);
    },
  );

  test.each(['bulk.written', 'bulk.claimed', 'pace.logged'] as const)(
    'at %s for the third time, with calls in flight, leaves no claim that blocks the next process',
    async (point) => {
      await using stack = await createStack({
        sandbox: { ...SANDBOX, seed: 950, latencyMs: 30 },
        env: { DELTA_INTERVAL: '1s', BULK_MAX_SKUS: '20' },
      });
      await endsAt(stack, point, 3);
      await expectTrueAtTheEnd(stack);
    },
  );
});
