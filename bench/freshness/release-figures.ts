import { figure, type Figure } from '../frame/figure.ts';
import { type LiveRefreshes, simulateLive } from './live.ts';
import { BENCH_LIMITS, FULL } from './world-figures.ts';
import { World, type WorldName } from './worlds.ts';

/* Lines whose SKUs move together: what it gains to go by that, in markets that have such lines and in others. */

export interface ReleaseSize {
  readonly skus: number;
  readonly hours: number;
}

/**
 * Where there are such lines: points that are gained at least, and the part of the error that is left at most;
 * without and with a ceiling.
 */
const WITH = [
  { name: 'releases', points: [0.5, 1.2], left: [0.85, 0.85] },
  { name: 'all of it', points: [0, 0.5], left: [0.82, 0.8] },
] as const;
const WITHOUT = ['stationary', 'bursts', 'regimes'] as const satisfies readonly WorldName[];
/** What it may cost there, in points, and how many suspicions of two days may be wrong. */
const MAX_LOST = 0.1;
const MAX_WRONG = 15;
const TWO_DAYS = 48;

interface Ran {
  readonly freshness: number;
  readonly error: number;
  readonly live: LiveRefreshes;
}

function runReleases(
  seed: number,
  { skus, hours }: ReleaseSize,
  run: { readonly name: WorldName; readonly ceiling: boolean; readonly releases: boolean },
): Ran {
  const world = new World(skus, run.name, hours, seed);
  const live = simulateLive(world, {
    policy: 'index',
    minutes: hours * 60,
    limits: BENCH_LIMITS,
    liveBudget: Math.max(1, Math.round((FULL.liveBudget * skus) / FULL.skus)),
    liveCeiling: run.ceiling ? (FULL.ceiling * skus) / FULL.skus : null,
    releases: run.releases,
    everyMinute: (minute) => world.sample(minute),
  });
  return { freshness: world.freshness(hours / 2, hours), error: world.error(hours / 2, hours), live };
}

/** With and without going by lines, on the same markets. */
function runBoth(seeds: readonly number[], size: ReleaseSize, name: WorldName, ceiling: boolean) {
  const runs = seeds.map((seed) => ({
    on: runReleases(seed, size, { name, ceiling, releases: true }),
    off: runReleases(seed, size, { name, ceiling, releases: false }),
  }));
  return {
    points: runs.map(({ on, off }) => 100 * (on.freshness - off.freshness)),
    left: runs.map(({ on, off }) => on.error / off.error),
    dismissed: runs.map(({ on }) => (on.live.turns.dismissed * TWO_DAYS) / size.hours),
    confirmed: runs.map(({ on }) => (on.live.turns.confirmed * TWO_DAYS) / size.hours),
  };
}

/** What going by lines that move together gains. */
export function* releaseFigures(seeds: readonly number[], size: ReleaseSize): Generator<Figure> {
  for (const { name, points, left } of WITH)
    for (const [at, ceiling] of [false, true].entries()) {
      const both = runBoth(seeds, size, name, ceiling);
      const what = `lines, ${name}, ${ceiling ? 'ceiling' : 'no ceiling'}: `;
      yield figure(`${what}points gained`, both.points, '≥', points[at]);
      yield figure(`${what}part of the error left`, both.left, '≤', left[at]);
      yield figure(`${what}releases confirmed in two days`, both.confirmed);
      yield figure(`${what}suspicions dismissed in two days`, both.dismissed);
    }
  for (const name of WITHOUT)
    for (const ceiling of [false, true]) {
      const both = runBoth(seeds, size, name, ceiling);
      const what = `lines, ${name}, ${ceiling ? 'ceiling' : 'no ceiling'}: `;
      yield figure(`${what}points gained`, both.points, '≥', -MAX_LOST);
      yield figure(`${what}releases confirmed in two days`, both.confirmed);
      yield figure(`${what}suspicions dismissed in two days`, both.dismissed, '≤', MAX_WRONG, true);
    }
}
