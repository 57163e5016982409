import { METADATA, METADATA_COLUMNS, type Metadata, type MetadataColumn } from '../../declared/metadata.ts';
import { parseJson } from '../../lib/json.ts';
import type { Tx } from '../connection/db.ts';
import type { FieldChange, FirstRecords, StateChange } from '../history/changes.ts';
import { type MemberChange, memberChanges } from './members.ts';
import type { SkuResult } from './types.ts';

/** An answer's price that differs from the mirror's; null on the answer's side if it has none. */
export interface PriceDifference {
  readonly sku: string;
  readonly size: string;
  /** `entry`: the price is the same, but the rest of the partner's entry differs. */
  readonly how: 'appeared' | 'gone' | 'moved' | 'entry';
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  /** The last prices, newest first, of a size without a price in the mirror, if the SKU was priced before. */
  readonly lastPrices?: readonly number[];
  /** The partner's entry as JSON text; null if it was just the number. */
  readonly entry: string | null;
  /** If only the entry differs: its members that do. */
  readonly members?: readonly MemberChange[];
}

/** What an answer says of metadata that the mirror does not hold. */
export interface ProductDifferences {
  /** By column. */
  readonly fields: readonly FieldChange[];
  /** Changed members of the product object, except those whose column has changed to the same text. */
  readonly members: ReadonlyMap<string, readonly MemberChange[]>;
  /** SKUs without any stored metadata. */
  readonly unknown: readonly string[];
}

/** A row of compareProducts: the mirror's metadata of a SKU whose answer differs. */
interface HeldProduct extends Metadata {
  /** Position of the record in the answer, from 1. */
  readonly position: number;
  readonly isUnknown: boolean;
  /** The product as the mirror holds it, and with the answer's members: JSON text, null if these are the same. */
  readonly oldProduct: string | null;
  readonly newProduct: string | null;
}

/**
 * Compares the metadata of answered SKUs with the mirror's, field by field; an answer does not change what it leaves
 * out (partner rules 2.4, 4.2.4). Call this with the SKUs' rows locked.
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

/** Returns what the records of an answer say of metadata, compared with `found`, the mirror's rows that differ. */
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
 * Returns the members of a product that differ, without those whose columns report the same. A member that is a number
 * stays, because its column holds only the text.
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

/** An answered SKU before the answer. */
interface Before {
  readonly state: string;
  /** Whether it has had a record before. */
  readonly seenBefore: boolean;
}

/**
 * Returns what followers of catalog.changes get of an answer besides its moves: new states, and the first prices and
 * metadata of SKUs (`unknown`: SKUs without metadata so far). Pure.
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

/** Returns how records and 0009 change the states of SKUs: a removed SKU stays removed until it has a record. */
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

/** Returns the metadata of SKUs that had none so far, and the given prices of SKUs that had none. */
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
