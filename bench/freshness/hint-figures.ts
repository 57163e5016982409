import { sendsPerWindow } from '../../src/pace/policy.ts';
import { hintPrecision, hintRecall, undonePart } from '../../src/sync/live/hints.ts';
import { MAX_ROUNDS } from '../../src/sync/live/policy.ts';
import { figure, type Figure } from '../frame/figure.ts';
import { flood, informed, junk, together } from './hint-streams.ts';
import type { HintStream } from './hints.ts';
import { simulateKnown } from './known.ts';
import { type LiveRefreshes, simulateLive } from './live.ts';
import { BENCH_LIMITS, FULL } from './world-figures.ts';
import { World, type WorldName } from './worlds.ts';

/*
 * What hints gain whose sources are right half of the time and tell of half of the moves, and what it costs to be
 * told nonsense.
 */

export interface HintSize {
  readonly skus: number;
  readonly hours: number;
}

const GOOD = { source: 'good', recall: 0.5, precision: 0.5 };
const POINTS = 100;

/** Who hints. */
const SOURCES = {
  nobody: () => undefined,
  good: (world, seed) => informed(world, GOOD, seed),
  junk: (world, seed, minutes) => junk(world, minutes, hintsPerMinute(world), seed),
  flood: (world) => flood(world),
  all: (world, seed, minutes) =>
    together([informed(world, GOOD, seed), junk(world, minutes, hintsPerMinute(world), seed), flood(world)]),
} as const satisfies Readonly<
  Record<string, (world: World, seed: number, minutes: number) => HintStream | undefined>
>;

/** As many as the good source gives. */
const hintsPerMinute = ({ rates }: World) =>
  (rates.reduce((sum, rate) => sum + rate, 0) * GOOD.recall) / GOOD.precision;

interface Run {
  readonly name: WorldName;
  readonly ceiling: boolean;
  readonly size: HintSize;
}

const scaled = (skus: number, ofAll: number) => Math.max(1, Math.round((ofAll * skus) / FULL.skus));

function runHints(
  { name, ceiling, size: { skus, hours } }: Run,
  by: keyof typeof SOURCES,
  seed: number,
): { readonly freshness: number; readonly live: LiveRefreshes } {
  const world = new World(skus, name, hours, seed);
  const hints = SOURCES[by](world, seed, hours * 60);
  const live = simulateLive(world, {
    policy: 'index',
    minutes: hours * 60,
    limits: BENCH_LIMITS,
    liveBudget: scaled(skus, FULL.liveBudget),
    liveCeiling: ceiling ? scaled(skus, FULL.ceiling) : null,
    releases: true,
    ...(hints === undefined ? {} : { hints }),
    everyMinute: (minute) => world.sample(minute),
  });
  return { freshness: POINTS * world.freshness(hours / 2, hours), live };
}

/**
 * By whoever knows all rates; `knowsSource`: and all of the good source, and refreshes each SKU in three rounds at
 * least, as a mirror does.
 */
function runKnown({ name, ceiling, size: { skus, hours } }: Run, seed: number, knowsSource = false): number {
  const world = new World(skus, name, hours, seed);
  const budget = scaled(skus, FULL.liveBudget);
  const refreshesPerMinute = ceiling ? scaled(skus, FULL.ceiling) : sendsPerWindow(BENCH_LIMITS) * budget;
  const wrongRate = (hintsPerMinute(world) * (1 - GOOD.precision)) / skus;
  const source = { hints: informed(world, GOOD, seed), recall: GOOD.recall, wrongRate };
  simulateKnown(world, {
    minutes: hours * 60,
    refreshesPerMinute,
    ...(knowsSource ? { source, mostRounds: MAX_ROUNDS } : {}),
  });
  return POINTS * world.freshness(hours / 2, hours);
}

/** What hints gain. */
export function* hintFigures(seeds: readonly number[], size: HintSize): Generator<Figure> {
  for (const name of ['stationary', 'flash moves', 'all of it'] as const)
    for (const ceiling of [false, true]) {
      const run = { name, ceiling, size };
      const what = `hints, ${name}, ${ceiling ? 'ceiling' : 'no ceiling'}: `;
      const of = (by: keyof typeof SOURCES) => seeds.map((seed) => runHints(run, by, seed));
      const [nobody, good] = [of('nobody'), of('good')];
      const known = seeds.map((seed) => runKnown(run, seed));
      const over = (runs: typeof good, base: readonly number[]) =>
        runs.map(({ freshness }, n) => freshness - (base[n] ?? 0));
      const without = nobody.map(({ freshness }) => freshness);
      yield figure(`${what}points above known rates, without`, over(nobody, known));
      if (name === 'stationary')
        yield figure(`${what}points above known rates`, over(good, known), '≥', ceiling ? 2 : 1.1);
      else yield figure(`${what}points above known rates`, over(good, known));
      if (name === 'stationary')
        yield figure(
          `${what}points above known rates, by whoever knows the source, too`,
          seeds.map((seed, n) => runKnown(run, seed, true) - (known[n] ?? 0)),
        );
      yield figure(`${what}points gained`, over(good, without));
      const source = good.map(({ live }) => live.sources.get(GOOD.source));
      yield figure(
        `${what}precision learned`,
        source.map((each) => (each === undefined ? 0 : hintPrecision(each.record))),
      );
      yield figure(
        `${what}part learned of what is undone`,
        source.map((each) => (each === undefined ? 0 : undonePart(each.record))),
      );
      yield figure(
        `${what}recall learned`,
        source.map((each) => (each === undefined ? 0 : hintRecall(each.record))),
      );
      yield figure(
        `${what}refreshes a minute brought forward`,
        source.map((each) => (each?.pulled ?? 0) / (size.hours * 60)),
      );
      yield figure(`${what}points lost to junk`, lost(of('junk'), without), '≤', 0.1);
      yield figure(`${what}points lost to a flood`, lost(of('flood'), without), '≤', 0.1);
      if (name !== 'stationary') continue;
      yield figure(
        `${what}points lost of the gain, beside junk and a flood`,
        lost(
          of('all'),
          good.map(({ freshness }) => freshness),
        ),
      );
    }
}

const lost = (runs: readonly { readonly freshness: number }[], base: readonly number[]) =>
  runs.map(({ freshness }, n) => (base[n] ?? 0) - freshness);
