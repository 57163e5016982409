import { METADATA_COLUMNS } from '../../declared/metadata.ts';
import type { FirstRecords, StateChange } from '../history/changes.ts';
import type { PriceDifference } from './differences.ts';
import type { SkuResult } from './types.ts';

/** What an answered SKU was before. */
interface Before {
  readonly state: string;
  /** There has been a record of it. */
  readonly seenBefore: boolean;
}

/**
 * What followers of catalog.changes are told of an answer beside its moves: new states, and the first prices and
 * metadata of SKUs (`unknown`: those without metadata so far). Pure.
 */
export function changesBeside(
  answered: readonly SkuResult[],
  prices: readonly PriceDifference[],
  unknown: readonly string[],
  before: ReadonlyMap<string, Before>,
): { readonly states: readonly StateChange[]; readonly first: FirstRecords } {
  const isUnknown = new Set(unknown);
  return {
    states: stateChanges(answered, before),
    first: firstRecords(
      answered.filter(({ sku }) => isUnknown.has(sku)),
      prices.filter(({ sku }) => before.get(sku)?.seenBefore === false),
    ),
  };
}

/** What a record or 0009 makes of a SKU's state: one that was removed stays so until there is a record. */
function stateChanges(
  answered: readonly SkuResult[],
  rowOf: ReadonlyMap<string, Before>,
): readonly StateChange[] {
  return answered.flatMap(({ sku, kind }) => {
    const oldState = rowOf.get(sku)?.state ?? 'pending';
    const newState = kind === 'record' ? 'priced' : oldState === 'removed' ? 'removed' : 'not_found';
    return oldState === newState ? [] : [{ sku, oldState, newState }];
  });
}

/** Of SKUs without metadata so far, and of prices of SKUs that had none. */
function firstRecords(answered: readonly SkuResult[], prices: readonly PriceDifference[]): FirstRecords {
  return {
    prices: prices.flatMap(({ sku, size, newPrice }) =>
      newPrice === null ? [] : [{ sku, size, price: newPrice }],
    ),
    fields: answered.flatMap((result) =>
      result.kind === 'record'
        ? ([...METADATA_COLUMNS, 'product'] as const).flatMap((field) => {
            const value = result.product[field];
            return value === null ? [] : [{ sku: result.sku, field, value }];
          })
        : [],
    ),
  };
}
