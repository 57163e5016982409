import { expect, test } from 'vitest';
import { PARTS } from '../../bench/freshness/results.ts';
import { expectFiguresReached, TIMEOUT } from './simulated-days.ts';

const HERE = [
  ['how likely live prices are right', 65],
  ['drawn markets', 5],
  ['bursty neighbours', 4],
  ['rates that are redrawn', 1],
  ['everything live', 4],
  ['after an outage', 16],
  ['other markets', 60],
  ['releases of lines', 34],
  ['hints', 58],
  ['scope', 4],
  ['the fill', 8],
  ['the pace', 12],
] as const;

test.for(HERE)('the simulated days of %s reach their targets', TIMEOUT, ([part, figures]) => {
  expectFiguresReached(part, figures);
});

test('every part of the bench is run here or in freshness-live', () => {
  const live = ['live prices', 'live prices below a ceiling'];
  expect([...live, ...HERE.map(([part]) => part)]).toEqual(Object.keys(PARTS));
});
