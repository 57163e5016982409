import type { AuditFinding, Standing } from '../catalog/audit.ts';
import { priorLeverage, RATES_START_AS } from '../live/rate-prior.ts';
import type { RefreshTest } from '../trust/calibration.ts';
import { AGAIN } from '../trust/late-prices.ts';
import type { PriceDifference } from './differences.ts';
import { type SecondLook, wasLate } from './second-looks.ts';
import type { SkuResult } from './types.ts';

/** What was held of a SKU's prices just before its refresh: columns of a locked SKU. */
export interface HeldPrices {
  readonly sku: string;
  readonly cohort: string;
  /** As p_right and size_p_right of catalog.sku_trust; null if it had no price. */
  readonly pRight: number | null;
  readonly sizePRight: number | null;
  /** Minutes since the previous refresh; null if there was none. */
  readonly minutes: number | null;
  /** What its own refreshes have taught about its rate; null if none has. */
  readonly alpha: number | null;
  readonly beta: number | null;
  readonly prior?: number | null;
  readonly priorMinutes: number;
  /** Whether it was refreshed because it had been drawn at random. */
  readonly random: boolean;
}

/** How many sizes had a price in the mirror, and for how many of these an answer has another price, or none. */
export interface SizesFound {
  readonly held: number;
  readonly moved: number;
}

/** Returns, by SKU, what answers found for the held sizes. Pure. */
export function sizesFound(
  answered: readonly SkuResult[],
  differences: readonly PriceDifference[],
): ReadonlyMap<string, SizesFound> {
  const found = new Map<string, { held: number; moved: number }>();
  for (const result of answered) {
    const priced = result.kind === 'record' ? result.prices.filter(({ price }) => price !== null).length : 0;
    found.set(result.sku, { held: priced, moved: 0 });
  }
  for (const { sku, oldPrice, newPrice } of differences) {
    const of = found.get(sku);
    if (of === undefined || oldPrice === newPrice) continue;
    of.held += Number(oldPrice !== null) - Number(newPrice !== null);
    of.moved += Number(oldPrice !== null);
  }
  return found;
}

/** Cohorts whose SKUs change prices at rates of their own. */
const BY_RATE = new Set(['live', 'unlisted']);

const leverageOf = ({ alpha, beta, prior, priorMinutes }: HeldPrices, minutes: number) =>
  priorLeverage(
    alpha === null || beta === null ? RATES_START_AS : { alpha, beta, prior },
    Math.max(0, minutes),
    {
      minutes: priorMinutes,
    },
  );

/**
 * Returns how refreshes test the probabilities held before them: per SKU whether anything has moved, per size how many
 * have; SKUs drawn at random count a second time, as `random`. A refresh before its second look tests nothing, because
 * it may come from the same cache; a refresh that settles what a second look found tests only that. Pure.
 */
export function testsOf(
  outcomes: readonly (HeldPrices &
    Pick<Standing, 'standing' | 'kept'> & {
      readonly moved: boolean;
      readonly finding: AuditFinding | null;
      /** Absent: `none`. */
      readonly look?: SecondLook;
    })[],
  sizes: ReadonlyMap<string, SizesFound>,
): RefreshTest[] {
  return outcomes.flatMap((outcome) => {
    const { sku, pRight, sizePRight, minutes, random, moved, finding, look } = outcome;
    if (pRight === null || sizePRight === null || minutes === null || look === 'early') return [];
    const late = look === undefined ? null : wasLate(look, outcome, moved);
    const judged = { judged: Number(late !== null), late: Number(late === true) };
    if (look === 'late')
      return [{ cohort: AGAIN, probability: pRight, looks: 0, right: 0, minutes: 0, ...judged }];
    const cohort = look === 'second' ? AGAIN : outcome.cohort;
    const { held, moved: sizesMoved } = sizes.get(sku) ?? { held: 0, moved: 0 };
    const missed = finding === 'overdue';
    const skuTest = { probability: pRight, looks: 1, right: Number(!moved), minutes };
    const sizeTest = { probability: sizePRight, looks: held, right: held - sizesMoved, minutes };
    const cohorts = random ? [cohort, 'random'] : [cohort];
    const leverage = BY_RATE.has(cohort) ? leverageOf(outcome, minutes) : 0;
    return cohorts.flatMap((of) => [
      {
        cohort: of,
        ...skuTest,
        missed,
        leverage: of === cohort ? leverage : 0,
        ...(of === AGAIN ? judged : {}),
      },
      ...(held > 0 ? [{ cohort: `${of} sizes`, ...sizeTest }] : []),
    ]);
  });
}
