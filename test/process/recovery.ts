import { expect } from 'vitest';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import type { Stack } from '../support/stack.ts';

/** After some time and a run that nobody kills: every table is true, and history is whole. */
export async function expectTrueAtTheEnd(stack: Stack): Promise<void> {
  // Live prices and metadata are nobody's to report: what time brings is brought here.
  await stack.everythingDue();
  const { code, stderr } = await runProgram(['run', '--once'], stack.env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  await expectHistoryIsAChain(stack.sql);
}
