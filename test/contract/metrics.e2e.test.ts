import { expect, test } from 'vitest';
import { refreshManifest } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { createStack } from '../support/stack.ts';
import { logged, metric, runNow } from './harness.ts';

test("metrics show a daemon's baselines by cause, latency of reported changes, waits and task successes", async () => {
  await using stack = await createStack({ sandbox: { skus: 120, seed: 611, liveShare: 0.05 } });
  const { sandbox, sql } = stack;
  const startedAt = Date.now() / 1000;
  const app = await stack.start();
  await stack.caughtUp();
  const shown = (series: string) => metric(app, series);
  expect(await shown('rebaselines_total{because="fill"}')).toBe(1);
  expect(await shown('change_latency_seconds_count')).toBe(0);

  sandbox.world.step(30);
  sandbox.world.buildSnapshot();
  await runNow(stack, app, 'delta');
  await stack.caughtUp();
  const reported = logged(stack, 'delta.applied').reduce((sum, line) => sum + Number(line['changed']), 0);
  expect(reported).toBeGreaterThan(3);
  await eventually(async () => expect(await shown('change_latency_seconds_count')).toBe(reported));
  expect(await shown('change_latency_seconds_sum')).toBeGreaterThan(0);
  expect(await shown('partner_request_wait_seconds_count{lane="delta"}')).toBeGreaterThan(0);

  await refreshManifest(sql);
  await runNow(stack, app, 'manifest');
  await eventually(async () => expect(await shown('rebaselines_total{because="asked"}')).toBe(1));
  for (const task of ['manifest', 'delta', 'reprice'])
    expect(await shown(`task_last_success_timestamp_seconds{task="${task}"}`)).toBeGreaterThan(startedAt - 1);
});
