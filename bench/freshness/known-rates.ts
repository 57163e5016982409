import type { Rate } from '../../src/store/live/rate-prior.ts';
import { rateFromPast, type RateGroup } from '../../src/sync/live/policy.ts';
import type { Market } from './market.ts';

/** How much of the past counts (past_moves in SQL). */
const PAST_MINUTES = 3 * 24 * 60;

/** What is believed of a SKU that has been swept so far. */
export function pastRate(market: Market, item: number, sweptMinutes: number): Rate {
  const refreshes = Math.floor(PAST_MINUTES / sweptMinutes);
  return rateFromPast(market.pastMoves(item, refreshes, sweptMinutes), PAST_MINUTES);
}

/** SKUs by rate and weight in half powers of two, as store/live/live.ts groups them in SQL. */
export function groupsOf(rates: readonly Rate[], weights: Float64Array): RateGroup[] {
  const groups = new Map<number, { count: number; lambda: number; weight: number }>();
  for (let i = 0; i < rates.length; i += 1) {
    const { alpha, beta } = rates[i] as Rate;
    const lambda = alpha / beta;
    const weight = weights[i] as number;
    const key = Math.round(Math.log2(lambda) * 2) * 1000 + Math.round(Math.log2(weight) * 2);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { count: 1, lambda, weight });
    else {
      group.count += 1;
      group.lambda += lambda;
      group.weight += weight;
    }
  }
  return [...groups.values()].map(({ count, lambda, weight }) => ({
    count,
    lambda: lambda / count,
    weight: weight / count,
  }));
}
