import type { HintStream } from './hints.ts';
import type { World } from './worlds.ts';

/** A source of hints of which all is known. Times in minutes. */
export interface KnownSource {
  readonly hints: HintStream;
  /** The part of a SKU's moves that it hints at, and how often a minute it hints at a SKU that has not moved. */
  readonly recall: number;
  readonly wrongRate: number;
}

/**
 * What could be had by whoever knew the mean rate of each SKU and nothing else: every minute the refreshes go where
 * they gain most among all SKUs (the index of Olston & Pandey), without a bound on the wait unless `mostRounds` is
 * given. With a `source`, by whoever knew all of that, too (the index of Busa-Fekete et al.): no learner that keeps
 * the longest wait is better, but by chance.
 */
export function simulateKnown(
  world: World,
  {
    minutes,
    refreshesPerMinute,
    outage,
    source,
    mostRounds = Infinity,
  }: {
    readonly minutes: number;
    readonly refreshesPerMinute: number;
    readonly outage?: { readonly from: number; readonly minutes: number };
    readonly source?: KnownSource;
    readonly mostRounds?: number;
  },
): void {
  const gains = new Float64Array(world.size);
  const hinted = new Uint32Array(world.size);
  const most = (mostRounds * world.size) / refreshesPerMinute;
  let credit = 0;
  // Looked at between two refreshes, as prices of a SKU that is refreshed each minute are half a minute old on average.
  const sample = (minute: number) => world.sample(minute + 0.5);
  const refresh = (item: number, minute: number) => {
    world.refresh(item, minute);
    hinted[item] = 0;
  };
  for (let minute = 0; minute < minutes; minute += 1) {
    for (const item of world.replacedUntil(minute)) refresh(item, minute);
    for (const { item, at } of source?.hints.until(minute) ?? [])
      if (at > (world.lastRefresh[item] as number)) hinted[item] = (hinted[item] as number) + 1;
    if (outage !== undefined && minute >= outage.from && minute < outage.from + outage.minutes) {
      sample(minute);
      continue;
    }
    credit += refreshesPerMinute;
    const count = Math.floor(credit);
    credit -= count;
    for (let item = 0; item < world.size; item += 1) {
      const waited = minute - (world.lastRefresh[item] as number);
      if (waited >= most) gains[item] = Number.MAX_VALUE;
      else if (source === undefined) gains[item] = gainOf(world, item, waited);
      else gains[item] = hintedGainOf(world, item, waited, hinted[item] as number, source);
    }
    const least = gains.toSorted()[Math.max(0, world.size - count)] ?? 0;
    let left = count;
    for (let item = 0; item < world.size && left > 0; item += 1) {
      if ((gains[item] as number) < least) continue;
      refresh(item, minute);
      left -= 1;
    }
    sample(minute);
  }
}

function gainOf(world: World, item: number, waited: number): number {
  const rate = world.rates[item] as number;
  const moves = rate * waited;
  return ((world.weights[item] as number) / rate) * (-Math.expm1(-moves) - moves * Math.exp(-moves));
}

/**
 * Of a SKU with so many hints since its last refresh: what it would be right longer for, refreshed each time it is as
 * uncertain as now. Hints and the moves that nobody hints at make it uncertain; each hint as much as so many minutes
 * do.
 */
function hintedGainOf(
  world: World,
  item: number,
  waited: number,
  hints: number,
  { recall, wrongRate }: KnownSource,
): number {
  const rate = world.rates[item] as number;
  const untold = (1 - recall) * rate;
  const hintRate = recall * rate + wrongRate;
  const hintMinutes = Math.log(hintRate / wrongRate) / untold;
  const until = waited + hints * hintMinutes;
  let [cycle, right] = [0, 0];
  for (let told = 0, left = until; left > 0; told += 1, left -= hintMinutes) {
    cycle += reached(told, hintRate * left) / hintRate;
    right +=
      ((wrongRate / (rate + wrongRate)) ** told * reached(told, (rate + wrongRate) * left)) /
      (rate + wrongRate);
  }
  return (world.weights[item] as number) * (right - Math.exp(-untold * until) * cycle);
}

/** Whether more than `count` events have come, of which `mean` are expected. */
function reached(count: number, mean: number): number {
  let [term, sum] = [Math.exp(-mean), 0];
  for (let n = 0; n <= count; n += 1) {
    sum += term;
    term *= mean / (n + 1);
  }
  return Math.max(0, 1 - sum);
}
