import { expect, test } from 'vitest';
import { runNow } from '../contract/harness.ts';
import { createStack } from '../support/stack.ts';

/** A delta whose token is another one each time it is written; `changed` as given. */
function newToken(changed: () => readonly string[]): object {
  let nth = 0;
  return {
    removed: [],
    now_live: [],
    get changed() {
      return changed();
    },
    get to_snapshot() {
      nth += 1;
      return `token ${nth}`;
    },
  };
}

test.each([
  ['without any SKU: three polls in a row', () => [], 3],
  ['with a SKU each: a hundred', () => ['A SKU'], 100],
])('answers with a token of their own, %s, and the next at DELTA_INTERVAL', async (_, changed, polls) => {
  await using stack = await createStack({ sandbox: { skus: 60, seed: 1510 } });
  const { sandbox, sql } = stack;
  const app = await stack.start();
  await stack.caughtUp();
  sandbox.faults.add({ route: 'delta', times: Infinity, status: 200, body: newToken(changed) });
  const before = sandbox.counts('delta');
  await runNow(stack, app, 'delta');
  expect(sandbox.counts('delta') - before).toBe(polls);
  const [task] = await sql<[{ waits: number; outcome: string }]>`
    select (extract(epoch from next_at - clock_timestamp()))::float8 as waits, outcome
    from catalog_internal.tasks where task = 'delta'`;
  expect(task.outcome).toBe('done');
  expect(task.waits).toBeGreaterThan(3500);
});
