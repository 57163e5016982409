import { expect, test } from 'vitest';
import { judgeHealth } from '../../src/status/health.ts';
import type { MassMove } from '../../src/store/answer/mass-move.ts';
import { factsOf, mirrorWith, NOW } from './cases.ts';

const HUNDRED: MassMove = {
  since: new Date(NOW.getTime() - 720_000),
  kind: 'factor',
  answers: 1000,
  implausible: 40,
  move: 0.05,
  factor: Math.log(100),
};

test.each([
  [
    'factor',
    'prices have moved implausibly in masses for 12m (40 of 1,000',
    'many of them 100 times what they were)',
  ],
  ['factor-of-some', 'prices of some SKUs have moved implausibly by one factor for 12m', 'no others wait'],
] as const)(
  'moves of kind %s: the reason says which SKUs wait, for whom, and by which factor they moved',
  (kind, text, more) => {
    const facts = factsOf(mirrorWith({}));
    const doubts = { implausible: 40, massMoved: 2, last: 'A', massMove: { ...HUNDRED, kind } };
    const health = judgeHealth({ ...facts, doubts });
    expect(health.reasons).toMatchObject([{ code: 'mass-move' }]);
    for (const said of [text, more, '100 times', '42 SKUs wait for your word, last A'])
      expect(health.reasons[0]?.text).toContain(said);
  },
);

test.each([
  ['factor', 'for 12m (many SKUs are 100 times what they were); 42'],
  ['factor-of-some', 'for 12m (several SKUs are 100 times what they were; no others wait); 42'],
  ['one-price', 'for 12m (many SKUs have one price for all sizes); 42'],
  ['lost', 'for 12m (many SKUs have lost all their prices); 42'],
  ['implausible', 'for 12m (many answers were hardly prices); 42'],
  ['far', 'for 12m (prices have moved further than they usually do); 42'],
] as const)('moves of kind %s: the reason gives no numbers if none are stored', (kind, text) => {
  const facts = factsOf(mirrorWith({}));
  const factor = kind.startsWith('factor') ? HUNDRED.factor : null;
  const massMove = { ...HUNDRED, kind, answers: 5, implausible: 0, move: null, factor };
  const doubts = { implausible: 40, massMoved: 2, last: 'A', massMove };
  expect(judgeHealth({ ...facts, doubts }).reasons[0]?.text).toContain(text);
});
