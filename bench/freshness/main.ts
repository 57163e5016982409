import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { runBench, type Figure } from './results.ts';

/*
 * npm run bench:freshness [-- --seed 1 --seeds 5 --json]
 * Simulated days through the production pacer, planner, policy and learning. Exit 1 when a figure to reach is missed.
 */

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
});

const figures: Figure[] = [];
const seeds = Array.from({ length: Math.max(1, Number(values.seeds)) }, (_, i) => Number(values.seed) + i);
const out = (line: string) => {
  if (!values.json) process.stdout.write(`${line}\n`);
};
out(
  `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Node.js ${process.versions.node}; seeds ${seeds.join(', ')}`,
);
for (const figure of runBench(seeds, {
  skus: 20_000,
  hours: 48,
  fillSkus: 500_000,
  pacingHours: 24,
  incident: { skus: 500_000, hours: 12, sweptMinutes: 43 },
})) {
  figures.push(figure);
  const reach = figure.reach === undefined ? '' : `reach ${figure.reach.is} ${figure.reach.limit}`;
  out(`${figure.ok ? ' ' : '✗'} ${figure.what.padEnd(58)}${figure.value.toFixed(4).padStart(10)}  ${reach}`);
}
if (values.json) process.stdout.write(`${JSON.stringify({ seeds, figures }, null, 2)}\n`);
process.exitCode = figures.every(({ ok }) => ok) ? 0 : 1;
