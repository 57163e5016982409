import { test } from 'vitest';
import { expectFiguresReached, TIMEOUT } from './simulated-days.ts';

test.for([
  ['live prices', 16],
  ['live prices below a ceiling', 20],
] as const)('the simulated days of %s reach their figures', TIMEOUT, ([part, figures]) => {
  expectFiguresReached(part, figures);
});
