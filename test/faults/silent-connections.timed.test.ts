import { describe, test } from 'vitest';
import { eventually, pause } from '../support/eventually.ts';
import { expectStopped, FILLED, GRANTED_MS, holds, startProgram } from '../support/process.ts';
import { backends } from '../support/stack.ts';
import { createSilentStack, untilAsked } from './silent-stack.ts';

/** The longest time for which dead connections may stop the mirror's work. */
const COST_MS = 60_000;
/** More requests than can still be in flight when the connections go dead. */
const ENOUGH = 8;

describe.concurrent.each(backends())('dead connections, queues in %s', (backend) => {
  test('cost at most a minute of work', async ({ expect }) => {
    await using silent = await createSilentStack(backend);
    const { stack } = silent;
    await using daemon = startProgram(['run'], { ...stack.env, ...silent.env });
    await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
    await untilAsked(stack, ENOUGH);
    silent.silence();
    expect(await untilAsked(stack, ENOUGH, 120_000)).toBeLessThan(COST_MS);
    expectStopped(await daemon.end('SIGTERM'), expect, GRANTED_MS);
  });

  test.for([0, 3000])(
    'do not delay the stop after a SIGTERM %i ms later beyond the time granted',
    async (ms, { expect }) => {
      await using silent = await createSilentStack(backend);
      const { stack } = silent;
      await using daemon = startProgram(['run'], { ...stack.env, ...silent.env });
      await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
      silent.silence();
      await pause(ms);
      expectStopped(await daemon.end('SIGTERM'), expect, GRANTED_MS);
    },
  );

  test('do not delay the stop after a SIGTERM while the daemon starts', async ({ expect }) => {
    await using silent = await createSilentStack(backend);
    const { stack, proxies } = silent;
    await using daemon = startProgram(['run'], { ...stack.env, ...silent.env });
    await eventually(() => (proxies[0]?.connections ?? 0) > 1, { what: 'connections' });
    silent.silence();
    await pause(2000);
    expectStopped(await daemon.end('SIGTERM'), expect, GRANTED_MS);
  });
});
