import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { startApp } from '../../src/daemon/app.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createStack } from '../support/stack.ts';

test('a daemon stopped by a signal leaves no timer behind, so that its process ends at once', async () => {
  await using stack = await createStack({ sandbox: { skus: 60, seed: 31 } });
  const waits = new Map<symbol, AbortSignal | undefined>();
  const clock: Clock = {
    ...systemClock,
    async sleep(ms, signal) {
      const wait = Symbol('wait');
      waits.set(wait, signal);
      await systemClock.sleep(ms, signal);
      waits.delete(wait);
    },
  };
  const config = loadConfig(stack.env, (path) => {
    throw new Error(`no file ${path} in this test`);
  });
  const signalled = new AbortController();
  const log = createLogger({ level: 'fatal', secrets: config.secrets });
  const app = await startApp(config, log, clock, signalled.signal);
  signalled.abort();
  await app.stop();
  expect([...waits.values()].filter((signal) => signal?.aborted !== true)).toEqual([]);
});
