import { printFigures } from '../frame/figure.ts';
import { optionsOf } from '../frame/options.ts';
import { ceilingFigures } from './results.ts';

/*
 * npm run bench:ceiling [-- --seed 1 --seeds 3 --hours 6 --json] Partners that limit live computations in time, each
 * in another way, and how much of what they allow the production code learns to use. Exit 1 when a figure to reach is
 * missed.
 */

const values = optionsOf({
  seed: { type: 'string', default: '1' },
  seeds: { type: 'string', default: '3' },
  hours: { type: 'string', default: '6' },
  json: { type: 'boolean', default: false },
});

const seeds = Array.from({ length: Math.max(1, Number(values.seeds)) }, (_, i) => Number(values.seed) + i);
printFigures(ceilingFigures(seeds, Number(values.hours)), seeds, values.json);
