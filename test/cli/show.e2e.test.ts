import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await createStack({ sandbox: { skus: 30, liveShare: 0.2, ghostShare: 0, seed: 63 } });
  await stack.once();
});
afterAll(() => stack[Symbol.asyncDispose]());

const show = (...args: string[]) => runProgram(['show', ...args], { DATABASE_URL: stack.databaseUrl });

test('says where the numbers of a SKU come from', async () => {
  const { code, stdout, stderr } = await show('DD1391-100');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^SKU {7}DD1391-100, /);
  expect(stdout).toMatch(/^answer {4}asked \d+s ago because it had no price yet$/m);
  expect(stdout).toMatch(/^right {5}all sizes 9\d\.\d %, each size /m);
  expect(stdout).toMatch(/^size +price +actionable +since +before$/m);
});

test('--json prints what SQL returns', async () => {
  const { code, stdout } = await show('--json', 'DD1391-100');
  const [{ it }] = await stack.sql<[{ it: { prices: unknown } }]>`select catalog.explain('DD1391-100') as it`;
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ sku: 'DD1391-100', prices: it.prices });
});

test.each([
  [['NOBODY-KNOWS'], 1, 'does not know "NOBODY-KNOWS"'],
  [[], 78, 'expected one SKU'],
  [['A', 'B'], 78, 'expected one SKU'],
])('%j: exit code %d', async (args, code, said) => {
  expect(await show(...args)).toMatchObject({ code, stderr: expect.stringContaining(said) });
});
