import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/sandbox/index.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';
import { everythingToDo, letBackoffEnd, silence } from './backoff.ts';
import { logged, nextLog, readyz, runNow } from './harness.ts';

const REFUSALS: readonly (readonly [string, Fault])[] = [
  ['a 403 on the delta route', { route: 'delta', status: 403 }],
  ['a 401 on the manifest route', { route: 'manifest', status: 401 }],
  [
    "the authorizer's 500 on the bulk route",
    { route: 'bulk', status: 500, body: { message: 'Internal Server Error' } },
  ],
];

describe('Auth class.', () => {
  test.each(REFUSALS)(
    'Auth class. %s makes the fleet back off as "throttled or refused", and a half-open request ends it',
    async (_name, fault) => {
      await using stack = await createStack({
        sandbox: { skus: 60, seed: 101 },
        env: { PARTNER_BACKOFF: '10m', PARTNER_RATE_WINDOW: '2s', DELTA_INTERVAL: '1s' },
      });
      const { sandbox, sql } = stack;
      const app = await stack.start();
      await stack.caughtUp();
      await stack.start();
      sandbox.faults.add(fault);
      await everythingToDo(stack);
      const line = await nextLog(stack, 'pace.silenced', 0);
      await everythingToDo(stack);
      expect(line['msg']).toContain('throttled or refused');
      const [health, screen] = await Promise.all([readyz(app), runProgram(['status'], stack.env)]);
      expect(health.status).toBe(200);
      expect(String(health.body['degraded'])).toContain('throttled or refused');
      expect(screen.stdout).toContain('throttled or refused');
      expect(screen.stdout).not.toContain('credential is suspected');

      // Long enough for each daemon to have tried several times.
      const looks = logged(stack, 'delta.postponed').length;
      await eventually(async () => {
        await sql`update catalog_internal.tasks set next_at = now() where task = 'delta'`;
        expect(logged(stack, 'delta.postponed').length).toBeGreaterThan(looks + 1);
      });
      expect(await silence(sql)).toEqual({ seconds: 600, sent: 0 });
      await letBackoffEnd(sql);
      await nextLog(stack, 'pace.resumed', 0);
      await stack.caughtUp();
      expect((await readyz(app)).body['degraded']).toEqual([]);
      await expectMirrorIsTrue(sql, sandbox.world);
    },
  );

  test("Auth class. The service's own 500 (errorMessage) does not belong to it: nobody backs off", async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 106 } });
    const app = await stack.start();
    await stack.caughtUp();
    stack.sandbox.faults.add({ route: 'bulk', status: 500, body: { errorMessage: 'Internal Server Error' } });
    stack.sandbox.faults.add({
      route: 'delta',
      status: 500,
      body: { errorMessage: 'Internal Server Error' },
    });
    await runNow(stack, app, 'delta');
    await stack.everythingDue();
    await nextLog(stack, 'bulk.failed', 0);
    await stack.caughtUp();
    expect(logged(stack, 'pace.silenced')).toEqual([]);
    expect(logged(stack, 'delta.failed')[0]).toMatchObject({ because: 'service-fault' });
  });
});
