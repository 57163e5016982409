import { describe, test } from 'vitest';
import type { Fault } from '../../src/sandbox/faults.ts';
import { eventually } from '../support/eventually.ts';
import { deafPort } from '../support/net.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { expectStopped, FILLED, holds, runProgram, startProgram } from '../support/process.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';

/** A phase of work in which to stop: how to cause it, and how to see that it is reached. */
interface Phase {
  readonly fault?: Fault;
  readonly env?: Record<string, string>;
  readonly reached: (stack: Stack) => Promise<boolean>;
}

const hit = (route: string) => (stack: Stack) =>
  Promise.resolve(stack.sandbox.requests.some((request) => request.route === route));

/** Far longer than a stop may take, so that no timeout of the daemon itself helps it. */
const PATIENT = { PARTNER_TIMEOUT: '5m', PARTNER_DOWNLOAD_TIMEOUT: '5m' };

const PHASES: Record<string, Phase> = {
  'with nothing to do': { reached: ({ sql }) => holds(sql, FILLED) },
  'while the partner does not answer a bulk call': {
    fault: { route: 'bulk', hang: true, times: Infinity },
    reached: hit('bulk'),
  },
  'while the partner does not answer a delta': {
    fault: { route: 'delta', hang: true, times: Infinity },
    reached: hit('delta'),
  },
  'while the partner does not answer the manifest': {
    fault: { route: 'manifest', hang: true, times: Infinity },
    reached: hit('manifest'),
  },
  'while the manifest file does not arrive': {
    fault: { route: 'file', hang: true, times: Infinity },
    reached: hit('file'),
  },
  'in the back-off after a refusal': {
    fault: { route: '*', status: 403, body: { message: 'Forbidden' }, times: Infinity },
    env: { PARTNER_BACKOFF: '10m' },
    reached: ({ sql }) => holds(sql, '(select backoff_until > now() from catalog_internal.pace)'),
  },
};

describe.concurrent('a stop', () => {
  describe.each(backends())('by SIGTERM, queues in %s,', (backend) => {
    for (const [name, { fault, env, reached }] of Object.entries(PHASES)) {
      test(`${name}: exits 0 in time, leaves no lease, and loses nothing`, async ({ expect }) => {
        await using stack = await createStack({
          backend,
          sandbox: { skus: 300, seed: 31 },
          env: { ...PATIENT, ...env },
        });
        if (fault !== undefined) stack.sandbox.faults.add(fault);
        await using daemon = startProgram(['run'], stack.env);
        await eventually(() => reached(stack), { what: name });
        expectStopped(await daemon.end('SIGTERM'), expect);
        const held = await stack.sql`
        select sku as what from catalog_internal.due where claim is not null
        union all select task from catalog_internal.tasks where running_until is not null`;
        expect(held).toEqual([]);

        stack.sandbox.faults.clear();
        await stack.sql`delete from catalog_internal.pace`;
        await stack.sql`update catalog_internal.tasks set next_at = now(), failures = 0`;
        const { code } = await runProgram(['run', '--once'], stack.env);
        expect(code).toBe(0);
        await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
      });
    }
  });

  test('by SIGINT is the same', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 100 } });
    await using daemon = startProgram(['run'], stack.env);
    await daemon.until('app.started');
    expectStopped(await daemon.end('SIGINT'), expect);
    expect(daemon.logged('app.stopping')).toMatchObject([{ signal: 'SIGINT' }]);
    expect(daemon.stderr).toEqual([]);
  });

  test('by two signals within a second is the same as by one', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 100 } });
    await using daemon = startProgram(['run'], stack.env);
    await daemon.until('app.started');
    daemon.signal('SIGINT');
    expectStopped(await daemon.end('SIGTERM'), expect);
    expect(daemon.logged('app.stopped')).toMatchObject([{ code: 0 }]);
  });

  test('of `run --once` exits 1, because it is not done', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 100 }, env: PATIENT });
    stack.sandbox.faults.add({ route: 'bulk', hang: true, times: Infinity });
    await using once = startProgram(['run', '--once'], stack.env);
    await eventually(() => hit('bulk')(stack), { what: 'a bulk call' });
    expect(await once.end('SIGTERM')).toMatchObject({ code: 1, signal: null });
    expect(once.logged('app.stopping')).toMatchObject([{ signal: 'SIGTERM' }]);
  });

  test('of one that has caught up and only maintains its tables exits 0', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 20 } });
    const released = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    // Only maintenance writes this table, and waits for this transaction.
    const holding = stack.sql.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`lock table catalog_internal.quarantine in exclusive mode`;
      locked.resolve();
      await released.promise;
    });
    await locked.promise;
    await using once = startProgram(['run', '--once'], stack.env);
    await once.until('once.caught-up');
    expectStopped(await once.end('SIGTERM'), expect);
    released.resolve();
    await holding;
  });

  test('does not wait for a Postgres that hangs', async ({ expect }) => {
    await using stack = await createStack();
    await using deaf = await deafPort();
    const url = `postgres://x:y@127.0.0.1:${deaf.port}/x`;
    await using daemon = startProgram(['run'], { ...stack.env, DATABASE_URL: url });
    await eventually(() => deaf.connections > 0, { what: 'a connection attempt' });
    expectStopped(await daemon.end('SIGTERM'), expect);
    // A stop during the start is logged like any other.
    expect(daemon.logged('app.stopping')).toMatchObject([{ signal: 'SIGTERM' }]);
    expect(daemon.logged('app.stopped')).toMatchObject([{ code: 0 }]);
  });
});
