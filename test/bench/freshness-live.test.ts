import { expect, test } from 'vitest';
import { informed } from '../../bench/freshness/hint-streams.ts';
import { simulateLive } from '../../bench/freshness/live.ts';
import { BENCH_LIMITS } from '../../bench/freshness/world-figures.ts';
import { World } from '../../bench/freshness/worlds.ts';
import { expectFiguresReached, TIMEOUT } from './simulated-days.ts';

test.for([
  ['live prices', 16],
  ['live prices below a ceiling', 20],
] as const)('the simulated days of %s reach their targets', TIMEOUT, ([part, figures]) => {
  expectFiguresReached(part, figures);
});

test('hints gain freshness even if moves are soon undone', () => {
  const gain = (hinted: boolean) => {
    const world = new World(2000, 'flash moves', 24, 8);
    const hints = informed(world, { source: 'good', recall: 0.5, precision: 0.5 }, 8);
    simulateLive(world, {
      policy: 'index',
      minutes: 24 * 60,
      limits: BENCH_LIMITS,
      liveBudget: 1,
      liveCeiling: 20,
      everyMinute: (minute) => world.sample(minute),
      ...(hinted ? { hints } : {}),
    });
    return 100 * world.freshness(8, 24);
  };
  expect(gain(true) - gain(false)).toBeGreaterThan(0);
});
