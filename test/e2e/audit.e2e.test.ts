import { expect, test } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { letAge, metric } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { nudge } from '../support/market.ts';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

const DAYS = 2 * 86_400;

async function audit(stack: Stack): Promise<unknown> {
  const [row] = await stack.sql`
    select reports_confirmed::int as confirmed, reports_unchanged::int as unchanged, moves_seen_first::int as first,
      moves_never_reported::int as never, moves_waiting::int as waiting from catalog.delta_audit`;
  return row;
}

/** Creates a filled mirror with enough snapshots that the prices as of the present one are known. */
async function followed(noopShare: number): Promise<Stack & { readonly app: App }> {
  const stack = await createStack({
    sandbox: { skus: 120, seed: 1501, liveShare: 0.05, ghostShare: 0, noopShare },
  });
  const app = await stack.start();
  await stack.caughtUp();
  for (let i = 0; i < 2; i += 1) {
    stack.sandbox.world.buildSnapshot();
    await stack.caughtUp();
  }
  return { ...stack, app };
}

/** Moves the prices of this many snapshot-priced SKUs. */
function move(stack: Stack, count: number): void {
  const { world } = stack.sandbox;
  const some = [...world.truth().values()].filter(
    (row) => row.priceSource === 'snapshot' && row.listed && Object.keys(row.sizeMap).length > 0,
  );
  for (const row of some.slice(0, count)) nudge(world, row);
}

test('moves that a sweep sees before the delta are counted as seen first, in SQL, metrics and status', async () => {
  await using stack = await followed(0);
  const { app } = stack;
  move(stack, 7);
  await letAge(stack.sql, DAYS);
  await stack.caughtUp();
  expect(await audit(stack)).toMatchObject({ waiting: 7 });
  await eventually(async () => expect(await metric(app, 'unreported_moves')).toBe(7));
  stack.sandbox.world.buildSnapshot();
  await stack.caughtUp();
  const counted = { confirmed: 0, unchanged: 0, first: 7, never: 0, waiting: 0 };
  expect(await audit(stack)).toEqual(counted);
  await eventually(async () =>
    expect(await metric(app, 'moves_seen_first_total', 'reported="later"')).toBe(7),
  );
  const screen = await runProgram(['status'], stack.env);
  expect(screen.stdout).toMatch(
    /^audit {7}reports 0 confirmed, 0 unchanged; changes 7 seen first \(by \d+s\), 0 never reported, 0 open$/m,
  );
  const json = JSON.parse((await runProgram(['status', '--json'], stack.env)).stdout) as Record<
    string,
    unknown
  >;
  expect(json).toMatchObject({ deltaAudit: { movesSeenFirst: 7, movesNeverReported: 0 } });
});

test('reports of moved prices count as confirmed, reports of others as unchanged', async () => {
  await using stack = await followed(1);
  move(stack, 10);
  stack.sandbox.world.buildSnapshot();
  await stack.caughtUp();
  expect(await audit(stack)).toEqual({ confirmed: 10, unchanged: 10, first: 0, never: 0, waiting: 0 });
});

test('moves that the delta never reports are counted as such', async () => {
  await using stack = await followed(0);
  stack.sandbox.faults.add({ route: 'delta', times: Infinity, mutate: (json) => ({ ...json, changed: [] }) });
  move(stack, 5);
  await letAge(stack.sql, DAYS);
  await stack.caughtUp();
  for (let i = 0; i < 2; i += 1) {
    expect(await audit(stack)).toMatchObject({ waiting: 5, never: 0 });
    stack.sandbox.world.buildSnapshot();
    await stack.caughtUp();
  }
  await letAge(stack.sql, DAYS);
  await stack.caughtUp();
  expect(await audit(stack)).toMatchObject({ waiting: 0, never: 5 });
});

test('a busy market with an honest partner has no unreported moves', async () => {
  await using stack = await followed(0.2);
  const { world } = stack.sandbox;
  for (let round = 0; round < 3; round += 1) {
    world.step(40);
    await letAge(stack.sql, DAYS);
    world.step(20);
    world.buildSnapshot();
    await stack.caughtUp();
  }
  await letAge(stack.sql, DAYS);
  await stack.caughtUp();
  expect(await audit(stack)).toMatchObject({ never: 0 });
});
