import type { PaceLimits } from '../../src/pace/policy.ts';
import { sendsPerWindow } from '../../src/pace/policy.ts';
import { figure, type Figure } from '../frame/figure.ts';
import { simulateKnown } from './known.ts';
import { simulateLive } from './live.ts';
import { World, type WorldName, WORLDS } from './worlds.ts';

/*
 * Markets that are not stationary, and one that is, beside what could be had by whoever knew the mean rates: in the
 * course of things, and after an outage of two hours.
 */

export const BENCH_LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
/**
 * Of 20,000 SKUs: live SKUs of a call, and what a hidden ceiling allows in a minute. With fewer SKUs both are smaller.
 */
export const FULL = { skus: 20_000, liveBudget: 5, ceiling: 200 };

export interface WorldSize {
  readonly skus: number;
  readonly hours: number;
  /** The outage, in hours: two of them, from this one on. */
  readonly outageFrom: number;
}

interface Ran {
  /**
   * Weighted part of the prices that were right: in the hours before the outage, in the one after it, in the first 24
   * hours.
   */
  readonly usual: number;
  readonly after: number;
  readonly first: number;
  /** The longest time between two refreshes of a SKU until the outage, in rounds. */
  readonly worstRounds: number;
}

interface Run {
  readonly name: WorldName;
  readonly ceiling: boolean;
  readonly size: WorldSize;
  readonly by: 'value' | 'due time' | 'known rates';
}

function runWorld({ name, ceiling, size, by }: Run, seed: number): Ran {
  const { skus, hours, outageFrom } = size;
  const world = new World(skus, name, hours, seed);
  const liveBudget = Math.round((FULL.liveBudget * skus) / FULL.skus);
  const liveCeiling = ceiling ? (FULL.ceiling * skus) / FULL.skus : null;
  const refreshesPerMinute = liveCeiling ?? sendsPerWindow(BENCH_LIMITS) * liveBudget;
  const outage = { from: outageFrom * 60, minutes: 120 };
  let worst = 0;
  if (by === 'known rates') simulateKnown(world, { minutes: hours * 60, refreshesPerMinute, outage });
  else
    simulateLive(world, {
      policy: 'index',
      minutes: hours * 60,
      limits: BENCH_LIMITS,
      liveBudget,
      liveCeiling,
      outage,
      catchesUp: by === 'value',
      everyMinute: (minute) => {
        world.sample(minute);
        if (minute > 0 && minute < outage.from) worst = world.worstRounds(minute);
      },
    });
  return {
    usual: world.freshness(outageFrom / 2, outageFrom),
    after: world.freshness(outageFrom + 2, outageFrom + 3),
    first: world.freshness(0, Math.min(24, outageFrom)),
    worstRounds: worst,
  };
}

const POINTS = 100;

/** After an outage, and where a ceiling is met: what is due is refreshed by its value. */
export function* catchUpFigures(seeds: readonly number[], size: WorldSize): Generator<Figure> {
  for (const name of ['stationary', 'all of it'] as const)
    for (const ceiling of [false, true]) {
      const of = (by: Run['by']) => seeds.map((seed) => runWorld({ name, ceiling, size, by }, seed));
      const [value, due, known] = [of('value'), of('due time'), of('known rates')];
      const each = (from: readonly Ran[], to: readonly Ran[], what: keyof Ran) =>
        from.map((run, n) => POINTS * (run[what] - (to[n]?.[what] ?? 0)));
      const what = `${name}, ${ceiling ? 'ceiling' : 'no ceiling'}: `;
      yield figure(
        `${what}hour after an outage, points below known`,
        each(known, value, 'after'),
        '≤',
        name === 'all of it' && !ceiling ? 2.5 : 1.5,
      );
      yield figure(`${what}the same, by due time`, each(known, due, 'after'));
      if (ceiling)
        yield figure(`${what}first day, points below known`, each(known, value, 'first'), '≤', 0.9);
      else yield figure(`${what}first day, points below known`, each(known, value, 'first'));
      if (name !== 'stationary') continue;
      yield figure(`${what}points lost in the course of things`, each(due, value, 'usual'), '≤', 0.1);
      yield figure(
        `${what}longest wait in rounds, outages apart`,
        value.map(({ worstRounds }) => worstRounds),
        '≤',
        3.1,
        true,
      );
    }
}

/** In each kind of market: how much better known mean rates would be. */
export function* worldFigures(seeds: readonly number[], size: WorldSize): Generator<Figure> {
  for (const name of Object.keys(WORLDS) as WorldName[])
    for (const ceiling of [false, true]) {
      const of = (by: Run['by']) => seeds.map((seed) => runWorld({ name, ceiling, size, by }, seed));
      const [value, known] = [of('value'), of('known rates')];
      const what = `${name}, ${ceiling ? 'ceiling' : 'no ceiling'}: `;
      yield figure(
        `${what}freshness`,
        value.map(({ usual }) => usual),
      );
      yield figure(
        `${what}points below known rates`,
        value.map((run, n) => POINTS * ((known[n]?.usual ?? 0) - run.usual)),
      );
      yield figure(
        `${what}after an outage, points below known`,
        value.map((run, n) => POINTS * ((known[n]?.after ?? 0) - run.after)),
      );
    }
}
