import type { World } from './worlds.ts';

/**
 * What could be had by whoever knew the mean rate of each SKU and nothing else: every minute the refreshes go where they gain most among
 * all SKUs, without a bound on the wait (the index of Olston & Pandey).
 */
export function simulateKnown(
  world: World,
  {
    minutes,
    refreshesPerMinute,
    outage,
  }: {
    readonly minutes: number;
    readonly refreshesPerMinute: number;
    readonly outage?: { readonly from: number; readonly minutes: number };
  },
): void {
  const gains = new Float64Array(world.size);
  let credit = 0;
  // Looked at between two refreshes, as prices of a SKU that is refreshed each minute are half a minute old on average.
  const sample = (minute: number) => world.sample(minute + 0.5);
  for (let minute = 0; minute < minutes; minute += 1) {
    for (const item of world.replacedUntil(minute)) world.refresh(item, minute);
    if (outage !== undefined && minute >= outage.from && minute < outage.from + outage.minutes) {
      sample(minute);
      continue;
    }
    credit += refreshesPerMinute;
    const count = Math.floor(credit);
    credit -= count;
    for (let item = 0; item < world.size; item += 1) gains[item] = gainOf(world, item, minute);
    const least = gains.toSorted()[Math.max(0, world.size - count)] ?? 0;
    let left = count;
    for (let item = 0; item < world.size && left > 0; item += 1) {
      if ((gains[item] as number) < least) continue;
      world.refresh(item, minute);
      left -= 1;
    }
    sample(minute);
  }
}

function gainOf(world: World, item: number, minute: number): number {
  const rate = world.rates[item] as number;
  const moves = rate * (minute - (world.lastRefresh[item] as number));
  return ((world.weights[item] as number) / rate) * (-Math.expm1(-moves) - moves * Math.exp(-moves));
}
