import { expect, test } from 'vitest';
import { runNow } from '../contract/harness.ts';
import { createStack } from '../support/stack.ts';

/**
 * Returns a delta whose token changes each time it is serialised, cycling through `most` values, with `changed` as
 * given.
 */
function newToken(changed: () => readonly string[], most: number): object {
  let nth = 0;
  return {
    removed: [],
    now_live: [],
    get changed() {
      return changed();
    },
    get to_snapshot() {
      nth += 1;
      return `token ${nth % most}`;
    },
  };
}

test.each([
  ['of their own, without any SKU: a hundred, by which that is known', () => [], 1000, 100, true],
  ['of their own, with a SKU each: a hundred, and more may follow', () => ['A SKU'], 1000, 100, false],
  ['that come again in a circle, with a SKU each: one round', () => ['A SKU'], 2, 3, true],
])('answers with tokens %s; the next at DELTA_INTERVAL', async (_, changed, tokens, polls, isRead) => {
  await using stack = await createStack({ sandbox: { skus: 60, seed: 1510 } });
  const { sandbox, sql } = stack;
  const app = await stack.start();
  await stack.caughtUp();
  sandbox.faults.add({ route: 'delta', times: Infinity, status: 200, body: newToken(changed, tokens) });
  await sql`update catalog_internal.sync set delta_checked_at = now() - interval '20 minutes'`;
  const before = sandbox.counts('delta');
  await runNow(stack, app, 'delta');
  expect(sandbox.counts('delta') - before).toBe(polls);
  const [task] = await sql<[{ waits: number; outcome: string }]>`
    select (extract(epoch from next_at - clock_timestamp()))::float8 as waits, outcome
    from catalog_internal.tasks where task = 'delta'`;
  expect(task.outcome).toBe('done');
  expect(task.waits).toBeGreaterThan(3500);
  const [{ checked }] = await sql<[{ checked: boolean }]>`
    select delta_checked_at > now() - interval '10 minutes' as checked from catalog_internal.sync`;
  expect(checked).toBe(isRead);
});

test('once tokens are known to change with each answer, the third answer without a SKU ends the polling', async () => {
  await using stack = await createStack({ sandbox: { skus: 60, seed: 1511 } });
  const { sandbox, sql } = stack;
  const app = await stack.start();
  await stack.caughtUp();
  sandbox.faults.add({ route: 'delta', times: Infinity, status: 200, body: newToken(() => [], 1000) });
  await runNow(stack, app, 'delta');
  await sql`update catalog_internal.sync set delta_checked_at = now() - interval '20 minutes'`;
  const before = sandbox.counts('delta');
  await runNow(stack, app, 'delta');
  expect(sandbox.counts('delta') - before).toBe(3);
  const [{ checked }] = await sql<[{ checked: boolean }]>`
    select delta_checked_at > now() - interval '10 minutes' as checked from catalog_internal.sync`;
  expect(checked).toBe(true);
});
