import { expect, test } from 'vitest';
import { pageMember } from '../../src/partner/delta-answer.ts';
import { mayBePrice } from '../../src/partner/size-map.ts';

/* Texts on which a reader must not backtrack: as many, or as long, as an answer may contain. */

/** What takes a fraction of a second would take ten seconds or more with backtracking. */
const WITHIN = { timeout: 5000 };

test.each([
  ['         1                           1A1', false],
  ['.............1.......................1A1', false],
  ['฿                1                     A', true],
])('as many entries as an answer may contain are told from prices at once: %j', WITHIN, (text, isOne) => {
  const read = Array.from({ length: 100_000 }, () => mayBePrice(text));
  expect(read.every((one) => one === isOne)).toBe(true);
});

test.each([
  ['x', 'more'],
  ['no', null],
])('a member of many blanks and %j is read in one pass', WITHIN, (said, announced) => {
  const more = `${' '.repeat(100_000)}${said}`;
  expect(pageMember({ more }, new Set())).toBe(announced);
});
