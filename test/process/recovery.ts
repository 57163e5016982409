import { expect } from 'vitest';
import { type ChangeRow, expectCopied, MirrorCopy } from '../support/copy.ts';
import { expectCursorNotAhead, expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import type { Stack } from '../support/stack.ts';

/**
 * Checks that an undisturbed run finds everything that is marked, and that after some time and another run every
 * table is true, and history and feed are complete.
 */
export async function expectTrueAtTheEnd(stack: Stack): Promise<void> {
  await runOnce(stack);
  // Before everything is asked for again, because a lost mark would leave a wrong price.
  await expectCursorNotAhead(stack.sql, stack.sandbox.world);
  // Nothing reports live prices and metadata: this does what passing time would do.
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

/** Checks that a copy built from nothing but the feed, from the database's first day on, equals the mirror. */
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
