import { printFigures } from '../frame/figure.ts';
import { optionsOf } from '../frame/options.ts';
import { PARTS, runBench } from './results.ts';

/*
 * npm run bench:freshness [-- --seed 1 --seeds 5 --part 'after an outage' --json]
 * Simulated days through the production pacer, planner, policy and learning. Exit 1 when a figure to reach is missed.
 */

const values = optionsOf(
  {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '5' },
    part: { type: 'string', multiple: true, default: Object.keys(PARTS) },
    json: { type: 'boolean', default: false },
  },
  ({ part }) =>
    part.every((one) => one in PARTS) ? null : `--part: expected one of ${Object.keys(PARTS).join(', ')}`,
);

const seeds = Array.from({ length: Math.max(1, Number(values.seeds)) }, (_, i) => Number(values.seed) + i);
const size = {
  skus: 20_000,
  hours: 48,
  fillSkus: 500_000,
  pacingHours: 24,
  incident: { skus: 500_000, hours: 12, sweptMinutes: 43 },
  worlds: {
    large: { skus: 20_000, hours: 40, outageFrom: 36 },
    small: { skus: 4000, hours: 40, outageFrom: 36 },
  },
  releases: { skus: 4000, hours: 48 },
  hints: { skus: 4000, hours: 48 },
  scope: { all: 25_000, own: 250, hours: 48 },
};
printFigures(runBench(seeds, size, values.part), seeds, values.json);
