import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Route } from '../../src/sandbox/faults.ts';
import { eventually, pause } from '../support/eventually.ts';
import { moveMarket, randomFrom } from '../support/market.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import { holds, runProgram, startProgram } from '../support/process.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';
import { expectTrueAtTheEnd } from './recovery.ts';

const SANDBOX = { skus: 600, liveShare: 0.05, latencyMs: 15 };
/** The longest time to a kill, in milliseconds after the daemon logs that it has started. */
const LATEST_MS = 700;

/** What the daemon is doing: the condition in SQL that shows it, and the slow route that makes it last. */
const POINTS: Record<string, { slow: Route; there: string }> = {
  'a manifest is downloaded': {
    slow: 'file',
    there: `(select running_until is not null from catalog_internal.tasks where task = 'manifest')`,
  },
  'a bulk call is under way': {
    slow: 'bulk',
    there: 'exists (select from catalog_internal.due where claim is not null)',
  },
  'a delta is asked for': {
    slow: 'delta',
    there: `(select running_until is not null from catalog_internal.tasks where task = 'delta')`,
  },
  'the token has moved and its work is due': {
    slow: 'bulk',
    there: `exists (select from catalog_internal.due where due_at <= now() and reason = 'changed')`,
  },
};

async function killed(stack: Stack, moment: () => Promise<unknown>): Promise<void> {
  await using daemon = startProgram(['run'], stack.env);
  await daemon.until('app.started');
  await moment();
  await daemon.end('SIGKILL');
  await expectCursorNotAhead(stack.sql, stack.sandbox.world);
}

describe.concurrent.each(backends())('kill -9, queues in %s,', (backend) => {
  test('at random moments of a fill, of deltas and of re-baselines loses nothing and does nothing twice', async () => {
    const seed = randomInt(2 ** 31);
    console.log(`seed ${seed}`);
    const random = randomFrom(seed);
    await using stack = await createStack({
      backend,
      database: 'empty',
      sandbox: { ...SANDBOX, seed },
      env: { DELTA_INTERVAL: '1s' },
    });
    for (let round = 0; round < 6; round += 1) {
      if (round > 1) moveMarket(stack.sandbox.world, round - 2);
      if (round % 2 === 1)
        await stack.sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
      await killed(stack, () => pause(random() * LATEST_MS));
    }
    await expectTrueAtTheEnd(stack);
  });
});

describe.concurrent('kill -9', () => {
  test('while a manifest is fetched for the first time leaves no line of it', async () => {
    await using stack = await createStack({ sandbox: { ...SANDBOX, seed: 41 } });
    stack.sandbox.faults.add({ route: 'file', truncateAt: 5000, delayMs: 400 });
    await killed(stack, () => eventually(() => stack.sandbox.counts('file') > 0, { what: 'the file' }));
    await expectTrueAtTheEnd(stack);
  });

  test('at every named point of a fill, a delta, a re-baseline and a re-price loses nothing', async () => {
    await using stack = await createStack({
      sandbox: { ...SANDBOX, seed: 42 },
      env: { DELTA_INTERVAL: '1s' },
    });
    const { sql, sandbox } = stack;
    const killAt = async (point: string) => {
      const { slow, there } = POINTS[point] ?? { slow: '*' as never, there: '' };
      // Longer than it takes to notice on a busy machine. The killed process is not waited for.
      sandbox.faults.add({ route: slow, delayMs: 3000, times: Infinity });
      await killed(stack, () => eventually(() => holds(sql, there), { what: point }));
      sandbox.faults.clear();
    };
    await killAt('a manifest is downloaded');
    await killAt('a bulk call is under way');
    expect(await runProgram(['run', '--once'], stack.env)).toMatchObject({ code: 0 });
    for (const [round, point] of Object.keys(POINTS).entries()) {
      moveMarket(sandbox.world, round);
      if (point.startsWith('a manifest'))
        await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
      await killAt(point);
    }
    await expectTrueAtTheEnd(stack);
  });
});
