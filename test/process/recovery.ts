import { expect } from 'vitest';
import { type ChangeRow, expectCopied, MirrorCopy } from '../support/copy.ts';
import { expectCursorNotAhead, expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import type { Stack } from '../support/stack.ts';

/**
 * A run that nobody kills finds all that is marked; after some time and another one every table is true, and history and
 * feed are whole.
 */
export async function expectTrueAtTheEnd(stack: Stack): Promise<void> {
  await runOnce(stack);
  // Before all are asked about anew: a mark that was lost is a price that stays wrong.
  await expectCursorNotAhead(stack.sql, stack.sandbox.world);
  // Live prices and metadata are nobody's to report: what time brings is brought here.
  await stack.everythingDue();
  await runOnce(stack);
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  await expectHistoryIsAChain(stack.sql);
  await expectFeedIsWhole(stack);
}

async function runOnce({ env }: Stack): Promise<void> {
  const { code, stderr } = await runProgram(['run', '--once'], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

/** Who has read nothing but the feed, from the database's first day on, has the mirror. */
async function expectFeedIsWhole({ sql }: Stack): Promise<void> {
  const copy = new MirrorCopy();
  for (let position = '0'; ;) {
    const changes = await sql<ChangeRow[]>`select * from catalog.changes(${position}, 5000)`;
    const last = changes.at(-1);
    if (last === undefined) break;
    copy.apply(changes);
    position = last.position;
  }
  expect(copy.faults).toEqual([]);
  await expectCopied(sql, copy);
}
