import { test } from 'vitest';
import { expectFiguresReached } from './simulated-days.ts';

test.for([
  ['live prices', 16],
  ['live prices below a ceiling', 20],
] as const)('the simulated days of %s reach their figures', ([part, figures]) => {
  expectFiguresReached(part, figures);
});
