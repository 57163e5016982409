import { sendsPerWindow } from '../../src/pace/policy.ts';
import { figure, type Figure } from '../frame/figure.ts';
import { drawnFigures } from './drawn-figures.ts';
import { hintFigures } from './hint-figures.ts';
import { simulateLive } from './live.ts';
import { Account, Market } from './market.ts';
import type { Neighbours } from './neighbours.ts';
import { simulatePacing } from './pacing.ts';
import { simulateFill } from './packing.ts';
import { releaseFigures } from './release-figures.ts';
import { type BenchSize, LIMITS, LIVE_BUDGET, runLive } from './run.ts';
import { scopeFigures } from './scope-figures.ts';
import { trustFigures } from './trust-figures.ts';
import { catchUpFigures, worldFigures } from './world-figures.ts';

/**
 * Of a rolling minute, by somebody who asks evenly. At most 0.992 can be used with calls at the full pace: it sends
 * 118 in 60.5 seconds, which may all fall into one minute, and no 118 calls in a row have more answered than the
 * minute allows.
 */
const CEILING_USED = 0.985;
/** The first minutes count, in which it is learned. */
const CEILING_USED_BY_A_FILL = 0.97;
/** Over the whole catalog SKUs change less often than those that are always live: a median of once in three days. */
const INCIDENT_MEDIAN_MINUTES = 72 * 60;

type Part = (seeds: readonly number[], size: BenchSize) => Generator<Figure>;

/** What is simulated, each part by itself. */
export const PARTS: Readonly<Record<string, Part>> = {
  *'live prices'(seeds, size) {
    for (const weights of ['zipf', 'watch'] as const) yield* liveFigures(seeds, size, weights, null);
  },
  *'live prices below a ceiling'(seeds, size) {
    for (const weights of ['zipf', 'watch'] as const) yield* liveFigures(seeds, size, weights, 200);
  },
  'how likely live prices are right': trustFigures,
  'drawn markets': drawnFigures,
  'bursty neighbours': burstyFigures,
  'rates that are redrawn': redrawFigures,
  'everything live': incidentFigures,
  'after an outage': (seeds, { worlds }) => catchUpFigures(seeds, worlds.large),
  'other markets': (seeds, { worlds }) => worldFigures(seeds, worlds.small),
  'releases of lines': (seeds, { releases }) => releaseFigures(seeds, releases),
  hints: (seeds, { hints }) => hintFigures(seeds, hints),
  scope: (seeds, { scope }) => scopeFigures(seeds, scope),
  'the fill': packingFigures,
  'the pace': pacingFigures,
};

export function* runBench(
  seeds: readonly number[],
  size: BenchSize,
  parts: readonly string[] = Object.keys(PARTS),
): Generator<Figure> {
  for (const part of parts) yield* PARTS[part]?.(seeds, size) ?? [];
}

function* liveFigures(
  seeds: readonly number[],
  size: BenchSize,
  weights: 'zipf' | 'watch',
  ceiling: number | null,
): Generator<Figure> {
  const runs = seeds.map((seed) => ({
    turn: runLive(seed, size, { policy: 'round-robin', weights, ceiling }),
    index: runLive(seed, size, { policy: 'index', weights, ceiling }),
  }));
  const name = `${weights}, ${ceiling === null ? 'no ceiling' : `ceiling ${ceiling}`}: `;
  const each = (value: (run: (typeof runs)[number]) => number) => runs.map(value);
  yield figure(
    `${name}freshness, round robin`,
    each(({ turn }) => turn.warm.freshness),
  );
  yield figure(
    `${name}freshness, learned index`,
    each(({ index }) => index.warm.freshness),
  );
  yield figure(
    `${name}freshness, known-rates optimum`,
    each(({ index }) => index.optimum),
  );
  yield figure(
    `${name}part of the optimum`,
    each(({ index }) => index.warm.freshness / index.optimum),
    '≥',
    0.99,
  );
  yield figure(
    `${name}distance from round robin closed`,
    each(
      ({ turn, index }) =>
        (index.warm.freshness - turn.warm.freshness) / (index.optimum - turn.warm.freshness),
    ),
    '≥',
    weights === 'zipf' ? 0.95 : 0.9,
  );
  yield figure(
    `${name}part of the optimum from cold`,
    each(({ index }) => index.cold.freshness / index.optimum),
    '≥',
    0.985,
  );
  yield figure(
    `${name}wrong-price minutes against round robin`,
    each(({ turn, index }) => index.warm.wrongMinutes / turn.warm.wrongMinutes),
    '≤',
    weights === 'zipf' ? 0.4 : 0.75,
  );
  yield figure(
    `${name}longest wait in rounds`,
    each(({ index }) => index.warm.worstMinutes / index.round),
    '≤',
    3.1,
    true,
  );
  if (ceiling === null) return;
  yield figure(
    `${name}part of the ceiling used`,
    each(({ index }) => index.refreshes.refreshesPerMinute / ceiling),
    '≥',
    CEILING_USED,
  );
  yield figure(
    `${name}deferred part of live SKUs asked`,
    each(
      ({ index }) =>
        index.refreshes.deferred /
        (index.refreshes.deferred + index.refreshes.refreshesPerMinute * size.hours * 60),
    ),
    '≤',
    0.01,
  );
}

/**
 * Neighbours whose bursts have the mirror refused some thirty times a day: refreshes are lost, and every wait is
 * longer. Rounds are those of the undisturbed pace, so that they do not grow with what they measure.
 */
function* burstyFigures(seeds: readonly number[], size: BenchSize): Generator<Figure> {
  const undisturbed = size.skus / (sendsPerWindow(LIMITS) * LIVE_BUDGET);
  for (const weights of ['zipf', 'watch'] as const) {
    const runs = seeds.map((seed) =>
      runLive(seed, size, { policy: 'index', weights, ceiling: null, neighbours: 'bursty' }),
    );
    const name = `${weights}, bursty neighbours: `;
    yield figure(
      `${name}live calls refused a day`,
      runs.map(({ refreshes }) => (refreshes.refused * 24) / size.hours),
    );
    yield figure(
      `${name}longest wait in undisturbed rounds`,
      runs.map(({ warm }) => warm.worstMinutes / undisturbed),
      '≤',
      4.5,
      true,
    );
  }
}

function* redrawFigures(seeds: readonly number[], size: BenchSize): Generator<Figure> {
  const runs = seeds.map((seed) =>
    runLive(seed, size, {
      policy: 'index',
      weights: 'zipf',
      ceiling: null,
      redrawHours: size.hours,
      hours: 2 * size.hours,
    }),
  );
  yield figure(
    'zipf, rates redrawn every two days: part of the optimum',
    runs.map(({ warm, optimum }) => warm.freshness / optimum),
    '≥',
    0.985,
  );
}

function* incidentFigures(seeds: readonly number[], { incident }: BenchSize): Generator<Figure> {
  for (const [ceiling, limit] of [
    [null, 0.95],
    [200, 0.935],
  ] as const) {
    const run = (seed: number, policy: 'index' | 'round-robin') => {
      const market = new Market(incident.skus, 'zipf', seed, INCIDENT_MEDIAN_MINUTES);
      market.refreshedWithin(incident.sweptMinutes);
      const account = new Account(0);
      simulateLive(
        market,
        {
          policy,
          minutes: incident.hours * 60,
          limits: LIMITS,
          liveBudget: LIVE_BUDGET,
          liveCeiling: ceiling,
          incident: { sweptMinutes: incident.sweptMinutes, market },
        },
        [account],
      );
      return account.result().freshness;
    };
    const name = `everything live, ${ceiling === null ? 'no ceiling' : `ceiling ${ceiling}`}: `;
    const turn = seeds.map((seed) => run(seed, 'round-robin'));
    yield figure(`${name}freshness over ${incident.hours} h, round robin`, turn);
    const index = seeds.map((seed) => run(seed, 'index'));
    yield figure(`${name}freshness over ${incident.hours} h, learned index`, index, '≥', limit);
  }
}

function* packingFigures(seeds: readonly number[], { fillSkus: skus }: BenchSize): Generator<Figure> {
  for (const [liveShare, mislisted, limit] of [
    [0.01, 0, 1.02],
    [0.05, 0, 1.02],
    [0.1, 0, 1.02],
    [0.05, 0.2, 1.03],
  ] as const) {
    const runs = seeds.map((seed) => simulateFill({ skus, liveShare, mislisted, ceiling: null }, seed));
    yield figure(
      `fill, ${liveShare * 100} % live${mislisted > 0 ? ', a fifth of them mislisted' : ''}: calls against the bound`,
      runs.map(({ calls, bound }) => calls / bound),
      '≤',
      limit,
    );
  }
  const liveShare = 0.05;
  const runs = seeds.map((seed) => simulateFill({ skus, liveShare, mislisted: 0, ceiling: 200 }, seed));
  const name = 'fill, 5 % live, hidden ceiling 200: ';
  yield figure(
    `${name}time of all but a thousandth against the bound`,
    runs.map(({ nearlyAllMinutes, boundMinutes }) => nearlyAllMinutes / boundMinutes),
    '≤',
    1.04,
  );
  yield figure(
    `${name}time of the last SKU against the bound`,
    runs.map(({ minutes, boundMinutes }) => minutes / boundMinutes),
  );
  yield figure(
    `${name}part of the ceiling used`,
    runs.map(({ ceilingUsed }) => ceilingUsed),
    '≥',
    CEILING_USED_BY_A_FILL,
  );
  yield figure(
    `${name}deferred part of live SKUs`,
    runs.map(({ deferred }) => deferred / (deferred + skus * liveShare)),
    '≤',
    0.01,
  );
}

function* pacingFigures(seeds: readonly number[], { pacingHours }: BenchSize): Generator<Figure> {
  for (const neighbours of ['quiet', 'on and off', 'bursty'] as const satisfies Neighbours[]) {
    const runs = seeds.map((seed) => simulatePacing(neighbours, seed, pacingHours));
    const name = `pace, neighbours ${neighbours}: `;
    const perDay = (count: number) => (count * 24) / pacingHours;
    const pace = runs.map((r) => r.requestsPerMinute);
    const what = `${name}requests a minute`;
    yield neighbours === 'bursty' ? figure(what, pace, '≥', 100) : figure(what, pace);
    yield figure(
      `${name}most own requests in 60 s at the partner`,
      runs.map((r) => r.mostInWindow),
      '≤',
      118,
      true,
    );
    if (neighbours === 'bursty')
      yield figure(
        `${name}back-offs a day`,
        runs.map((r) => perDay(r.episodes)),
        '≤',
        40,
      );
    else
      yield figure(
        `${name}circuit breaker a day`,
        runs.map((r) => perDay(r.refused)),
        '≤',
        0,
      );
    yield figure(
      `${name}refused requests for each back-off`,
      runs.map((r) => (r.episodes === 0 ? 0 : r.refused / r.episodes)),
      '≤',
      1.05,
    );
  }
}
