import { OF_FACTOR } from './doubts.ts';
import { median } from './plausibility.ts';

/**
 * Implausible SKUs that show a common factor, how near (natural logarithm: nearer than markets ever move together,
 * farther than rounding to whole baht goes), the part that they are of those that have moved about as far (OF_FACTOR),
 * and the least that is another unit or currency, and no crash. How many others are implausible tells nothing of it.
 */
const FACTOR = { skus: 8, part: 0.8, near: 0.02, least: Math.log(4) } as const;

/**
 * The factor that several of these SKUs have in common, where that is another unit's; of more such factors that of most
 * SKUs; null: none. Pure.
 */
export function commonFactor(factors: readonly number[]): number | null {
  const sorted = factors.toSorted((a, b) => a - b);
  const [near, around] = [countsWithin(sorted, FACTOR.near), countsWithin(sorted, OF_FACTOR)];
  let best: { readonly factor: number; readonly skus: number } | null = null;
  for (const [at, factor] of sorted.entries()) {
    const [skus, all] = [near[at] ?? 0, around[at] ?? 0];
    if (skus < FACTOR.skus || skus < FACTOR.part * all || Math.abs(factor) < FACTOR.least) continue;
    if (skus > (best?.skus ?? 0)) best = { factor, skus };
  }
  const by = best?.factor;
  return by === undefined ? null : median(sorted.filter((each) => Math.abs(each - by) <= FACTOR.near));
}

/** Of sorted numbers, how many are no further from each of them than this. */
function countsWithin(sorted: readonly number[], far: number): number[] {
  let [from, to] = [0, 0];
  return sorted.map((number) => {
    while ((sorted[to] ?? Infinity) <= number + far) to += 1;
    while ((sorted[from] ?? Infinity) < number - far) from += 1;
    return to - from;
  });
}
