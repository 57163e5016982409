import { describe, inject, test } from 'vitest';
import type { Route } from '../../src/sandbox/faults.ts';
import { eventually } from '../support/eventually.ts';
import { gateTo, through } from '../support/net.ts';
import { expectStopped, FILLED, GRANTED_MS, holds, startProgram } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

const HANGING: readonly Route[] = ['bulk', 'delta', 'file'];

describe.concurrent.each(backends())(
  'a stop by SIGTERM, queues in %s, completes in the time that process managers grant',
  (backend) => {
    test('with nothing to do', async ({ expect }) => {
      await using stack = await createStack({ backend, sandbox: { skus: 60, seed: 31 } });
      await using daemon = startProgram(['run'], stack.env);
      await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
      expectStopped(await daemon.end('SIGTERM'), expect, GRANTED_MS);
    });

    test.for(HANGING)('while the partner does not answer: %s', async (route, { expect }) => {
      await using stack = await createStack({
        backend,
        sandbox: { skus: 60, seed: 31 },
        env: { PARTNER_TIMEOUT: '5m', PARTNER_DOWNLOAD_TIMEOUT: '5m' },
      });
      stack.sandbox.faults.add({ route, hang: true, times: Infinity });
      await using daemon = startProgram(['run'], stack.env);
      await eventually(() => stack.sandbox.counts(route) > 0, { what: route });
      expectStopped(await daemon.end('SIGTERM'), expect, GRANTED_MS);
    });
  },
);

test.skipIf(inject('redisUrl') === null)(
  'a stop completes in time although its Redis never answers',
  async ({ expect }) => {
    await using gate = await gateTo(inject('redisUrl') ?? '');
    await using stack = await createStack({ backend: 'redis', sandbox: { skus: 60 } });
    await using daemon = startProgram(['run'], {
      ...stack.env,
      REDIS_URL: through(inject('redisUrl') ?? '', gate),
    });
    await eventually(() => gate.connections > 0, { what: 'an attempt' });
    expectStopped(await daemon.end('SIGTERM'), expect, GRANTED_MS);
  },
);
