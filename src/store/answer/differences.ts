import { METADATA, METADATA_COLUMNS, type Metadata, type MetadataColumn } from '../../declared/metadata.ts';
import { parseJson } from '../../lib/json.ts';
import type { Tx } from '../connection/db.ts';
import type { FieldChange, FirstRecords, StateChange } from '../history/changes.ts';
import { type MemberChange, memberChanges } from './members.ts';
import type { SkuResult } from './types.ts';

/** A price as an answer has it, where the mirror holds another; null on the answer's side where it has none. */
export interface PriceDifference {
  readonly sku: string;
  readonly size: string;
  /** `entry`: the price is the same, and the rest of the partner's entry is not. */
  readonly how: 'appeared' | 'gone' | 'moved' | 'entry';
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  /** If the mirror has no price for this size, but for the SKU: the prices that the size had last, newest first. */
  readonly lastPrices?: readonly number[];
  /** The partner's entry as JSON text; null where it was just the number. */
  readonly entry: string | null;
  /** Where nothing else than the entry differs: its members that do. */
  readonly members?: readonly MemberChange[];
}

/** What an answer says of metadata that the mirror does not hold. */
export interface ProductDifferences {
  /** By column. */
  readonly fields: readonly FieldChange[];
  /** Members of the product object, but for those whose new value is the text that a column tells. */
  readonly members: ReadonlyMap<string, readonly MemberChange[]>;
  /** SKUs without any stored metadata. */
  readonly unknown: readonly string[];
}

/** A row of compareProducts: the metadata that the mirror holds of a SKU whose answer has other. */
interface HeldProduct extends Metadata {
  /** Position of the record among those of the answer, from 1. */
  readonly position: number;
  readonly isUnknown: boolean;
  /** The product as the mirror holds it, and with the answer's members: JSON text, null where these are the same. */
  readonly oldProduct: string | null;
  readonly newProduct: string | null;
}

/**
 * Compares the metadata of answered SKUs with the mirror's, field by field; what an answer leaves out it does not
 * correct (partner rules 2.4, 4.2.4). Call this with the SKUs' rows locked.
 */
export async function compareProducts(tx: Tx, answered: readonly SkuResult[]): Promise<ProductDifferences> {
  const rows = answered.flatMap((result) =>
    result.kind === 'record' ? [{ sku: result.sku, ...result.product }] : [],
  );
  if (rows.length === 0) return { fields: [], members: new Map(), unknown: [] };
  const columns = METADATA_COLUMNS.map((column) => tx`, ${tx(column)}`);
  const values = METADATA_COLUMNS.map((column) => tx`, ${rows.map((r) => r[column])}::text[]`);
  const held = METADATA_COLUMNS.map((column) => tx`, p.${tx(column)}`);
  const differs = METADATA_COLUMNS.map(
    (column) => tx`or n.${tx(column)} is not null and n.${tx(column)} is distinct from p.${tx(column)}`,
  );
  const found = await tx<HeldProduct[]>`
    select n.position::int as position, p.sku is null as "isUnknown" ${held},
      case when p.product <> m.product then p.product::text end as "oldProduct",
      case when p.product <> m.product then m.product::text end as "newProduct"
    from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.product)}::text[]::jsonb[] ${values})
      with ordinality as n(sku, product ${columns}, position)
    left join catalog.products p on p.sku = n.sku
    -- With OFFSET 0 it is computed once.
    cross join lateral (select p.product || n.product as product offset 0) m
    where p.sku is null or p.product <> m.product ${differs}`;
  return productDifferences(rows, found);
}

/** What the records of an answer say of metadata, beside what the mirror holds of those that say anything new. */
function productDifferences(
  rows: readonly (Metadata & { readonly sku: string })[],
  found: readonly HeldProduct[],
): ProductDifferences {
  const fields: ColumnChange[] = [];
  const members = new Map<string, MemberChange[]>();
  const unknown: string[] = [];
  for (const { position, isUnknown, oldProduct, newProduct, ...held } of found) {
    const said = rows[position - 1];
    if (said === undefined) continue;
    const { sku } = said;
    if (isUnknown) {
      unknown.push(sku);
      continue;
    }
    const own = METADATA_COLUMNS.flatMap((field): ColumnChange[] => {
      const [oldValue, newValue] = [held[field], said[field]];
      return newValue === null || newValue === oldValue ? [] : [{ sku, field, oldValue, newValue }];
    });
    fields.push(...own);
    if (oldProduct !== null && newProduct !== null) members.set(sku, untold(oldProduct, newProduct, own));
  }
  return { fields, members, unknown };
}

type ColumnChange = FieldChange & { readonly field: MetadataColumn };

/**
 * The members of a product that differ, without those whose columns tell the same: a column has the text of a number,
 * which the object has as a number.
 */
function untold(oldProduct: string, newProduct: string, fields: readonly ColumnChange[]): MemberChange[] {
  const told = new Map<string, string | null>(
    fields.flatMap(({ field, newValue }) => {
      const [part, member] = METADATA[field];
      return part === 'product' ? [[member, newValue]] : [];
    }),
  );
  return memberChanges(parseJson(oldProduct), parseJson(newProduct)).filter(
    ({ names: [name = '', ...deeper], to }) => deeper.length > 0 || !told.has(name) || told.get(name) !== to,
  );
}

/** What an answered SKU was before. */
interface Before {
  readonly state: string;
  /** There has been a record of it. */
  readonly seenBefore: boolean;
}

/**
 * What followers of catalog.changes get of an answer beside its moves: new states, and the first prices and metadata of
 * SKUs (`unknown`: SKUs without metadata so far). Pure.
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
