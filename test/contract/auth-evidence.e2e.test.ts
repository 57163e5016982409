import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';
import { everythingToDo, letBackoffEnd, silence } from './backoff.ts';
import { logged, metric, nextLog, readyz } from './harness.ts';

describe('Auth class.', () => {
  test('Auth class. A 403 that outlives quiet windows makes the credential suspect; retries become ever slower', async () => {
    await using stack = await createStack({
      sandbox: { skus: 80, seed: 102 },
      env: { PARTNER_BACKOFF: '500ms', PARTNER_RATE_WINDOW: '2s' },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const right = sandbox.secret;
    sandbox.rotateSecret('another');
    await everythingToDo(stack);
    await eventually(() => expect(logged(stack, 'pace.silenced').length).toBeGreaterThanOrEqual(4));
    // Until a whole window has passed without other requests of its own, repeated refusals are no evidence.
    await eventually(async () => {
      const { status, body } = await readyz(app);
      expect(status).toBe(200);
      expect(String(body['degraded'])).toMatch(/throttled or refused; .*the credential is suspected/);
    });
    // Counts from the line, which a busy machine writes some time after the back-off began.
    const silences = logged(stack, 'pace.silenced').map(
      (l) => Date.parse(String(l['backoffUntil'])) - Date.parse(String(l['time'])),
    );
    expect(silences[3]).toBeGreaterThan((silences[0] ?? 0) * 1.5);
    const states = await sql`select distinct state from catalog.skus order by 1`;
    expect(states.map(({ state }) => state as string)).not.toContain('removed');
    await expectMirrorIsTrue(sql, sandbox.world);

    sandbox.rotateSecret(right);
    await nextLog(stack, 'pace.resumed', 0);
    await stack.caughtUp();
  });

  test('Auth class. readyz reports the refusal before the first baseline, too', async () => {
    await using stack = await createStack({
      sandbox: { skus: 40, seed: 103 },
      env: { PARTNER_SECRET: 'wrong', PARTNER_BACKOFF: '1m' },
    });
    const app = await stack.start();
    await nextLog(stack, 'pace.silenced', 0);
    const { status, body } = await readyz(app);
    expect(status).toBe(503);
    expect(body['reason']).toMatch(/^no baseline yet/);
    expect(String(body['degraded'])).toContain('throttled or refused');
    expect(stack.sandbox.counts()).toBe(1);
  });

  test('Auth class. The ledger survives restarts: a daemon that starts during a back-off keeps it', async () => {
    await using stack = await createStack({
      sandbox: { skus: 80, seed: 104 },
      env: { PARTNER_BACKOFF: '10m', PARTNER_RATE_WINDOW: '2s' },
    });
    const { sandbox, sql } = stack;
    const first = await stack.start();
    await stack.caughtUp();
    sandbox.faults.add({ route: '*', status: 403 });
    await everythingToDo(stack);
    await nextLog(stack, 'pace.silenced', 0);
    await everythingToDo(stack);
    await first.stop();
    const second = await stack.start();
    const jobs = async () => (await metric(second, 'jobs_total', 'queue="reprice",outcome="wait"')) ?? 0;
    await eventually(async () => expect(await jobs()).toBeGreaterThanOrEqual(2));
    expect(await silence(sql)).toEqual({ seconds: 600, sent: 0 });
    await letBackoffEnd(sql);
    await stack.caughtUp();
  });

  test('Auth class. An account that is not configured is a state of its own, and also backs off', async () => {
    await using stack = await createStack({
      sandbox: { skus: 40, seed: 105, accountConfigured: false },
      env: { PARTNER_BACKOFF: '1m' },
    });
    const app = await stack.start();
    const line = await nextLog(stack, 'pace.silenced', 0);
    expect(line).toMatchObject({ outcome: 'account-not-configured' });
    expect(line['msg']).toContain('account not configured');
    expect(line['msg']).not.toContain('throttled or refused');
    const [{ body }, screen] = await Promise.all([readyz(app), runProgram(['status'], stack.env)]);
    expect(body['degraded']).toEqual([expect.stringMatching(/^supplier account not configured; /)]);
    expect(screen.stdout).toContain('supplier account not configured');
    expect(screen.stdout).not.toContain('throttled');
    expect(stack.sandbox.counts()).toBe(1);
    expect(
      await metric(app, 'partner_requests_total', 'route="manifest",outcome="account-not-configured"'),
    ).toBe(1);
    expect(await metric(app, 'backing_off')).toBe(1);
  });
});
