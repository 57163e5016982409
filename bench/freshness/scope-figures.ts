import { sendsPerWindow } from '../../src/pace/policy.ts';
import { figure, type Figure } from '../frame/figure.ts';
import { LIMITS, runLive, type ScopeSize } from './run.ts';

/*
 * A seller of a hundredth of the catalog: how often live prices are right where the account's requests go to all live
 * SKUs, and where only the seller's own are in scope, with a third of the requests.
 */

/**
 * Part of the requests of the whole catalog that a mirror of the scope takes at most; of these, so many a minute are
 * for SKUs that are not live.
 */
const REQUESTS_PART = 0.35;
const OTHER_REQUESTS = 2;

export function* scopeFigures(seeds: readonly number[], { all, own, hours }: ScopeSize): Generator<Figure> {
  const most = Math.floor(REQUESTS_PART * sendsPerWindow(LIMITS)) - OTHER_REQUESTS;
  // The largest limit with which no more leave in a minute.
  let limits = LIMITS;
  while (sendsPerWindow(limits) > most) limits = { ...limits, maxPerWindow: limits.maxPerWindow - 1 };
  const whole = seeds.map((seed) =>
    runLive(seed, { skus: all, hours }, { policy: 'index', weights: 'watch', ceiling: null }),
  );
  // With requests to spare they are refreshed in turn, every LIVE_INTERVAL.
  const scoped = seeds.map((seed) =>
    runLive(seed, { skus: own, hours }, { policy: 'round-robin', weights: 'watch', ceiling: null, limits }),
  );
  const minutes = hours * 60;
  const requests = ({ refreshes }: (typeof whole)[number]) => refreshes.calls / minutes;
  const name = `scope, ${own} of ${all} live SKUs: `;
  yield figure(
    `${name}freshness, all of them`,
    whole.map(({ warm }) => warm.freshness),
  );
  yield figure(
    `${name}freshness, the seller's alone`,
    scoped.map(({ warm }) => warm.freshness),
    '≥',
    0.99,
    true,
  );
  yield figure(
    `${name}requests for the seller's, of those for all`,
    scoped.map((run, n) => {
      const base = whole[n];
      return base === undefined ? Infinity : (requests(run) + OTHER_REQUESTS) / requests(base);
    }),
    '≤',
    REQUESTS_PART,
    true,
  );
  yield figure(
    `${name}seconds between two refreshes of one`,
    scoped.map(({ round }) => round * 60),
  );
}
