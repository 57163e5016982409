import { expect, test } from 'vitest';
import { backlogReasons } from '../../src/status/catalog.ts';
import type { CatalogCounts } from '../../src/store/status/counts.ts';
import { factsOf, mirrorWith } from './cases.ts';

/** A hundred SKUs, so many of which were never priced; of these, so many were asked and failed. */
const codes = (pending: number, unanswered: number, due: Record<string, number>) => {
  const skus: CatalogCounts['skus'] = [
    { state: 'priced', priceSource: 'snapshot', count: 100 - pending },
    { state: 'pending', priceSource: 'snapshot', count: pending },
  ];
  const twoHours = Object.entries(due).map(([reason, count]) => ({ reason, count, oldestAgeSeconds: 7200 }));
  const facts = factsOf(mirrorWith({ stats: { skus, unanswered, due: twoHours } }));
  return backlogReasons(facts).map(({ code }) => code);
};

test.each<[string, number, number, Record<string, number>, string[]]>([
  ['two of a hundred are still to be asked', 2, 0, { new: 2 }, ['filling']],
  ['one is, the other has failed', 2, 1, { error: 1 }, []],
  ['none is, as each has failed', 20, 20, { error: 20 }, ['skus-failing']],
  [
    'none is, and what is due besides is late',
    20,
    20,
    { error: 20, sweep: 1 },
    ['skus-failing', 'backlog-late'],
  ],
  ['some are, and others have failed', 20, 11, { error: 11, new: 9 }, ['skus-failing', 'filling']],
  ['some are, and hardly any has failed', 20, 10, { error: 10, new: 10 }, ['filling']],
  ['some are, and others are deferred', 20, 0, { deferred: 11, new: 9 }, ['filling']],
])('%s', (_, pending, unanswered, due, expected) => {
  expect(codes(pending, unanswered, due)).toEqual(expected);
});
