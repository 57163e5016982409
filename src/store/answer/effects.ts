import type { SkuResult, NextRefresh } from './types.ts';
import type { PriceDifference, ProductDifferences } from './differences.ts';
import { type AuditFinding, findingOf, type Standing } from '../audit.ts';
import type { FieldChange, PriceMove } from '../changes.ts';
import type { LiveRefresh, LearnedRefresh } from '../live.ts';

export interface Differences {
  readonly prices: readonly PriceDifference[];
  readonly products: ProductDifferences;
}

/** What follows from an answer. Only what came for SKUs whose claim is still ours counts, and is not overtaken. */
export interface AnswerEffects {
  /** Records and 0009 that are applied. */
  readonly answered: readonly SkuResult[];
  /** Those whose records and 0009 are not applied although their claim is still ours. */
  readonly overtaken: readonly string[];
  readonly prices: readonly PriceDifference[];
  /** Prices that moved since an earlier refresh, for the history. */
  readonly moves: readonly PriceMove[];
  readonly moved: ReadonlySet<string>;
  readonly fields: readonly FieldChange[];
  /** SKUs whose metadata is rewritten. */
  readonly renewed: ReadonlySet<string>;
  readonly ahead: readonly LearnedRefresh[];
  readonly findings: readonly { readonly sku: string; readonly finding: AuditFinding }[];
}

/**
 * Decides what an answer changes: from the locked state of its SKUs, its records and 0009 (`settled`), and their
 * differences. Pure.
 */
export function effectsOf(
  locked: readonly LockedSku[],
  settled: readonly SkuResult[],
  { prices, products }: Differences,
  next: Pick<NextRefresh, 'live'>,
): AnswerEffects {
  const rowOf = new Map(locked.filter(({ answerable }) => answerable).map((row) => [row.sku, row]));
  const ours = ({ sku }: { readonly sku: string }) => rowOf.has(sku);
  const answered = settled.filter(ours);
  const late = new Set(locked.filter(({ answerable }) => !answerable).map(({ sku }) => sku));
  // First prices of a SKU are not moves.
  const moves = prices.filter(
    ({ sku, oldPrice, newPrice }) => oldPrice !== newPrice && rowOf.get(sku)?.seenBefore === true,
  );
  const moved = new Set(moves.map(({ sku }) => sku));
  const fields = products.fields.filter(ours);
  return {
    answered,
    overtaken: settled.flatMap(({ sku }) => (late.has(sku) ? [sku] : [])),
    prices: prices.filter(ours),
    moves,
    moved,
    fields,
    renewed: new Set([...fields.map(({ sku }) => sku), ...products.unknown]),
    ahead: locked
      .filter(({ live, answerable }) => live && answerable)
      .flatMap((row) => next.live?.({ ...row, moved: moved.has(row.sku) }) ?? []),
    findings: answered.flatMap(({ sku, kind }) => {
      const row = rowOf.get(sku);
      const finding = row === undefined ? null : findingOf(row, kind, moved.has(sku));
      return finding === null ? [] : [{ sku, finding }];
    }),
  };
}

/** State of an asked SKU whose claim is still this one. */
export type LockedSku = LiveRefresh &
  Standing & {
    readonly answerable: boolean;
    readonly live: boolean;
    readonly seenBefore: boolean;
    /** How long ago a delta reported the SKU, where the request was the first to be sent since; else null. */
    readonly reportedSeconds: number | null;
  };
