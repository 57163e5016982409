import { expect, test } from 'vitest';
import { pageMember } from '../../src/partner/delta-answer.ts';
import { mayBePrice } from '../../src/partner/size-map.ts';

/* Texts that a reader must not try in every way to divide them: as many as an answer may have, or as long. */

/** What takes a fraction of a second would take ten and more. */
const WITHIN = { timeout: 5000 };

test.each([
  ['         1                           1A1', false],
  ['.............1.......................1A1', false],
  ['฿                1                     A', true],
])('as many entries as an answer may have are told from prices at once: %j', WITHIN, (text, isOne) => {
  const read = Array.from({ length: 100_000 }, () => mayBePrice(text));
  expect(read.every((one) => one === isOne)).toBe(true);
});

test.each([
  ['x', 'more'],
  ['no', null],
])('a member of many blanks and %j is read once', WITHIN, (said, announced) => {
  const more = `${' '.repeat(100_000)}${said}`;
  expect(pageMember({ more }, new Set())).toBe(announced);
});
