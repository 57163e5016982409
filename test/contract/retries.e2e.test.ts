import { describe, expect, test } from 'vitest';
import type { TaskName } from '../../src/store/ledger/tasks.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';
import { logged, readyz, runNow, taskOf } from './harness.ts';

const FAULT = { times: Infinity, status: 500, body: { errorMessage: 'Internal Server Error' } };

describe('Retries.', () => {
  test('Retries. A failed manifest is retried after a minute, doubling to an hour; a success resets the failures', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 901 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    sandbox.faults.add({ route: 'manifest', ...FAULT });
    const minutes: number[] = [];
    for (let failures = 1; failures <= 8; failures += 1) {
      await runNow(stack, app, 'manifest');
      const { waits, ...task } = await taskOf(sql, 'manifest');
      expect(task).toEqual({ outcome: 'service-fault', failures });
      minutes.push(Math.round(waits / 60));
    }
    expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    sandbox.faults.clear();
    await runNow(stack, app, 'manifest');
    expect(await taskOf(sql, 'manifest')).toMatchObject({ outcome: 'done', failures: 0 });
    expect(Math.round((await taskOf(sql, 'manifest')).waits / 86_400)).toBe(7);
  });

  test.each<[TaskName, Record<string, string>]>([
    ['delta', { DELTA_INTERVAL: '150s' }],
    ['catalog-check', { CATALOG_CHECK_INTERVAL: '150s' }],
  ])('Retries. A failed %s is retried on its schedule at the latest', async (task, env) => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 902 }, env });
    const app = await stack.start();
    await stack.caughtUp();
    stack.sandbox.faults.add({ route: task === 'delta' ? 'delta' : 'manifest', ...FAULT });
    const seconds: number[] = [];
    for (let failures = 1; failures <= 4; failures += 1) {
      await runNow(stack, app, task);
      seconds.push(Math.round((await taskOf(stack.sql, task)).waits));
    }
    expect(seconds).toEqual([60, 120, 150, 150]);
  });

  test('Retries. SKUs of failed bulk calls stay due; from the fourth failure on, calls pause, doubling', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 903, liveShare: 0 } });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const skus = [...sandbox.world.truth().keys()].slice(10, 14);
    const from = sandbox.requests.length;
    sandbox.faults.add({ route: 'bulk', ...FAULT });
    await refreshSkus(sql, skus);
    const pauses = () => logged(stack, 'bulk.failed').map((line) => Number(line['pausedMs']));
    await eventually(() => expect(pauses()).toContain(2400));
    // Concurrent calls fail together, and each has its line.
    expect([...new Set(pauses())].toSorted((a, b) => a - b)).toEqual([0, 300, 600, 1200, 2400]);
    const due = await sql`select sku from catalog_internal.due where due_at <= now() order by sku`;
    expect(due.map(({ sku }) => sku as string)).toEqual(skus.toSorted());
    expect(String((await readyz(app)).body['degraded'])).toMatch(/bulk calls are failing \(\d in a row\)/);
    const failed = sandbox.requests.slice(from).filter(({ route }) => route === 'bulk');
    sandbox.faults.clear();
    await stack.caughtUp();
    const sent = sandbox.requests
      .slice(from)
      .filter(({ route }) => route === 'bulk')
      .map(({ at }) => at);
    // Once calls pause, one at a time is sent.
    const gaps = sent.slice(1).map((at, i) => at - (sent[i] ?? 0));
    // The last pause ends early: an answered delta shows that the outage may be over.
    const paused = gaps.slice(failed.length - 4, failed.length - 1);
    for (const [i, gap] of paused.entries()) expect(gap).toBeGreaterThanOrEqual(300 * 2 ** i);
    expect((await readyz(app)).body['degraded']).toEqual([]);
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('Retries. SKUs in `errors` back off individually while the others continue, and never become not_found', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 904, liveShare: 0, ghostShare: 0 },
      env: { ERROR_INTERVAL: '10m' },
    });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    const failing = [...world.truth().keys()].slice(5, 8);
    for (const sku of failing) world.setFailing(sku, true);
    await stack.start();
    const held = () =>
      sql<{ sku: string; failures: number; minutes: number; state: string }[]>`
        select d.sku, d.failures, s.state,
          round(extract(epoch from d.held_until - clock_timestamp()) / 60)::int as minutes
        from catalog_internal.due d join catalog.skus s using (sku)
        where d.failures > 0 and d.claim is null and d.held_until > clock_timestamp() order by d.sku`;
    const steps = [
      { failures: 1, minutes: 10 },
      { failures: 2, minutes: 20 },
      { failures: 6, minutes: 320 },
      { failures: 7, minutes: 360 },
    ];
    for (const step of steps) {
      await sql`
        update catalog_internal.due set failures = ${step.failures - 1}, held_until = clock_timestamp()
        where failures > 0 and failures < ${step.failures}`;
      await eventually(async () =>
        expect([...(await held())]).toEqual(
          failing.toSorted().map((sku) => ({ sku, ...step, state: 'pending' })),
        ),
      );
    }
    const [others] = await sql`select count(*)::int as n from catalog.skus where state = 'priced'`;
    expect(others).toEqual({ n: 57 });
    for (const sku of failing) world.setFailing(sku, false);
    await refreshSkus(sql, failing);
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, world);
  });
});
