import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Verification } from '../../src/cli/verify-report.ts';
import type { App } from '../../src/daemon/app.ts';
import { drawSample, markForVerification, readVerified } from '../../src/store/trust/verification.ts';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

const SKUS = 240;
let stack: Stack;
let app: App;

beforeAll(async () => {
  stack = await createStack({ sandbox: { skus: SKUS, liveShare: 0.2, ghostShare: 0, seed: 71 } });
  app = await stack.start();
  await stack.caughtUp();
});
afterAll(() => stack[Symbol.asyncDispose]());

const verify = (...args: string[]) => runProgram(['verify', ...args], { DATABASE_URL: stack.databaseUrl });
const verification = async (...args: string[]) => {
  const { code, stdout, stderr } = await verify('--json', ...args);
  return { code, stderr, found: JSON.parse(stdout) as Verification };
};

/** Moves one price of `count` SKUs at the partner, without a snapshot in which a delta could report it. */
function movePrices(count: number): string[] {
  const { world } = stack.sandbox;
  const rows = [...world.truth().values()].filter((row) =>
    Object.values(row.sizeMap).some((price) => price !== null),
  );
  return rows
    .filter((_, at) => at % Math.floor(rows.length / count) === 0)
    .slice(0, count)
    .map(({ sku, sizeMap }) => {
      const [size = '', price = 0] = Object.entries(sizeMap).find(([, each]) => each !== null) ?? [];
      world.setPrice(sku, size, (price ?? 0) + 10);
      return sku;
    })
    .toSorted();
}

test('finds exactly what has moved, and says that the claim was higher', async () => {
  const moved = movePrices(60);
  const { code, found, stderr } = await verification('--skus', '1000');
  expect(found.wrong.map(({ sku }) => sku).toSorted()).toEqual(moved);
  expect(
    found.wrong.every(({ sizes }) => sizes.length === 1 && sizes[0]?.partner === (sizes[0]?.held ?? 0) + 10),
  ).toBe(true);
  expect(found.asked).toBe(found.population);
  expect(found.answered).toBe(found.population);
  const [all] = found.shares;
  expect(all?.right).toBeCloseTo(1 - 60 / found.population, 9);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^100 of \d+ SKUs asked about, .* left$/m);
});

test('finds nothing if nothing has moved, and says that the claim holds', async () => {
  const { code, stdout } = await verify('--skus', '150');
  expect(stdout).toContain('the claim is within the interval');
  expect(stdout).not.toContain('wrong, those first');
  expect(code).toBe(0);
});

test('draws the same SKUs for the same seed, and others for another seed', async () => {
  const drawn = async (seed: number) => (await drawSample(stack.sql, { skus: 20, seed })).skus;
  const [first, again, other] = [await drawn(1), await drawn(1), await drawn(2)];
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
  expect(new Set(first).size).toBe(20);
});

test('draws each SKU with the same probability', async () => {
  const { sql } = stack;
  const drawn = new Map<string, number>();
  for (let seed = 0; seed < 300; seed += 1)
    for (const sku of (await drawSample(sql, { skus: 60, seed })).skus)
      drawn.set(sku, (drawn.get(sku) ?? 0) + 1);
  const { population } = await drawSample(sql, { skus: 1, seed: 0 });
  const expected = (300 * 60) / population;
  const spread = [...drawn.values()].reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
  expect(drawn.size).toBe(population);
  // Chi-squared has its degrees of freedom as mean, and twice that as variance.
  expect(Math.abs(spread / (1 - 60 / population) - population)).toBeLessThan(5 * Math.sqrt(2 * population));
});

test('a second answer during verification does not hide the first one', async () => {
  const { sql } = stack;
  const [sku = ''] = movePrices(1);
  const marked = await markForVerification(sql, [sku]);
  await stack.caughtUp();
  const row = stack.sandbox.world.truth().get(sku);
  const [size = '', price = 0] = Object.entries(row?.sizeMap ?? {}).find(([, each]) => each !== null) ?? [];
  // Back to the price that the mirror held.
  stack.sandbox.world.setPrice(sku, size, (price ?? 0) - 10);
  await markForVerification(sql, [sku]);
  await stack.caughtUp();
  const { answered } = await readVerified(sql, marked);
  expect(answered).toMatchObject([{ sku, wrong: [{ size, held: (price ?? 0) - 10, partner: price }] }]);
});

test('a SKU that is gone is wrong in all its sizes, and a deferred one is not waited for', async () => {
  const { sql, sandbox } = stack;
  const rows = [...sandbox.world.truth().values()].filter(({ sizeMap }) => Object.keys(sizeMap).length > 1);
  const [gone, failing] = [rows[0]?.sku ?? '', rows[1]?.sku ?? ''];
  sandbox.world.withdraw(gone);
  sandbox.world.setFailing(failing, true);
  const marked = await markForVerification(sql, [gone, failing]);
  await expect
    .poll(async () => await readVerified(sql, marked), { timeout: 20_000 })
    .toMatchObject({ answered: [{ sku: gone }], postponed: 1 });
  const { answered } = await readVerified(sql, marked);
  expect(answered[0]?.wrong.every(({ partner }) => partner === null)).toBe(true);
});

test.each([
  [['--skus', '0'], '--skus'],
  [['--skus', 'many'], '--skus'],
  [['--seed', '-1'], '--seed'],
  [['A'], 'not expected here'],
])('%j is rejected with what is wrong', async (args, said) => {
  expect(await verify(...args)).toMatchObject({ code: 78, stderr: expect.stringContaining(said) });
});

test('without a daemon it says so at once, and marks nothing', async () => {
  await app.stop();
  const { code, stderr } = await verify('--skus', '10');
  expect([code, stderr]).toEqual([1, expect.stringContaining('no daemon is running')]);
  const marked = await stack.sql`select from catalog_internal.due where reason = 'refresh'`;
  expect(marked.length).toBeLessThanOrEqual(1);
});
