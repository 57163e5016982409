import { METADATA, METADATA_COLUMNS, type MetadataColumn } from '../../declared/metadata.ts';
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

/** A row of comparePrices: only what the program does not know already from the answer. */
interface PriceRowFound {
  /** Position of the price in the answer, from 1; null where the answer has none: then `sku` and `size` identify it. */
  readonly position: number | null;
  readonly sku: string | null;
  readonly size: string | null;
  readonly oldPrice: number | null;
  readonly lastPrices: readonly number[] | null;
  /** Where nothing but the entry differs. */
  readonly oldEntry: string | null;
  readonly how: PriceDifference['how'];
}

/**
 * Compares the prices of answered SKUs with the mirror's; a SKU that is not found loses all of its own. Call this
 * with the SKUs' rows locked: every writer of prices locks those.
 */
export async function comparePrices(tx: Tx, answered: readonly SkuResult[]): Promise<PriceDifference[]> {
  const rows = answered.flatMap((result) =>
    result.kind === 'record' ? result.prices.map((price) => ({ sku: result.sku, ...price })) : [],
  );
  const found = await tx<PriceRowFound[]>`
    with new as (
      select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.size)}::text[],
        ${rows.map((r) => r.price)}::int[], ${rows.map((r) => r.entry)}::text[]::jsonb[])
        with ordinality as n(sku, size, price, entry, position)
    ),
    old as (select sku, size, price, entry from catalog.prices where sku = any(${answered.map(({ sku }) => sku)})),
    -- Read where a size appears alone.
    seen as not materialized (
      select sku from catalog.skus where sku = any(${answered.map(({ sku }) => sku)}) and first_priced_at is not null
    ),
    differing as materialized (
      select sku, size, position::int as position, old.price as "oldPrice",
        case when old.price is not distinct from new.price then old.entry::text end as "oldEntry",
        old.price is null and new.price is not null and new.sku in (select sku from seen) as returned,
        case when position is null then 'gone' when old.sku is null then 'appeared'
          when old.price is distinct from new.price then 'moved' else 'entry' end as how
      from new full join old using (sku, size)
      where position is null or old.sku is null or old.price is distinct from new.price or old.entry is distinct from new.entry
    )
    select position, case when position is null then d.sku end as sku, case when position is null then d.size end as size,
      "oldPrice", "oldEntry", l.prices as "lastPrices", how
    -- Of no size the function is not called, and so no chunk of the history is opened.
    from differing d left join catalog_internal.last_prices(
      (select array_agg(sku) from differing where returned), (select array_agg(size) from differing where returned)
    ) l on l.sku = d.sku and l.size = d.size and d.returned`;
  return found.map(({ position, sku, size, oldPrice, lastPrices, oldEntry, how }): PriceDifference => {
    const row = rows[(position ?? 0) - 1];
    if (row !== undefined) {
      const { entry } = row;
      const members = how === 'entry' && {
        members: memberChanges(JSON.parse(oldEntry ?? 'null'), JSON.parse(entry ?? 'null')),
      };
      const last = lastPrices !== null && { lastPrices };
      return { sku: row.sku, size: row.size, how, oldPrice, newPrice: row.price, entry, ...last, ...members };
    }
    return { sku: sku ?? '', size: size ?? '', how, oldPrice, newPrice: null, entry: null };
  });
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
  const pairs = METADATA_COLUMNS.map(
    (column, at) => tx`${at === 0 ? tx`` : tx`,`} (${column}::text, old.${tx(column)}, new.${tx(column)})`,
  );
  const found = await tx<(ColumnChange | ObjectChange | { readonly sku: string; readonly field: null })[]>`
    with new as (
      select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.product)}::text[]::jsonb[] ${values})
        as n(sku, product ${columns})
    ),
    fields as materialized (
      select new.sku, f.field, f.old_value, f.new_value
      from new join catalog.products old using (sku)
      cross join lateral (values ${pairs}) as f(field, old_value, new_value)
      where f.new_value is not null and f.old_value is distinct from f.new_value
    )
    select sku, field, old_value as "oldValue", new_value as "newValue" from fields
    union all
    select new.sku, 'product', old.product::text, (old.product || new.product)::text
    from new join catalog.products old using (sku)
    where old.product is distinct from old.product || new.product
    union all
    select sku, null, null, null from new where not exists (select from catalog.products old where old.sku = new.sku)`;
  const fields = found.filter((row): row is ColumnChange => row.field !== null && row.field !== 'product');
  const objects = found.filter((row): row is ObjectChange => row.field === 'product');
  return {
    fields,
    members: new Map(objects.map((row): [string, MemberChange[]] => [row.sku, untold(row, fields)])),
    unknown: found.flatMap(({ sku, field }) => (field === null ? [sku] : [])),
  };
}

type ColumnChange = FieldChange & { readonly field: MetadataColumn };
interface ObjectChange {
  readonly sku: string;
  readonly field: 'product';
  readonly oldValue: string;
  readonly newValue: string;
}

/**
 * The members of a product that differ, without those whose columns tell the same: a column has the text of a number,
 * which the object has as a number.
 */
function untold({ sku, oldValue, newValue }: ObjectChange, fields: readonly ColumnChange[]): MemberChange[] {
  const told = new Map<string, string | null>(
    fields.flatMap((change) => {
      const [part, member] = METADATA[change.field];
      return change.sku === sku && part === 'product' ? [[member, change.newValue]] : [];
    }),
  );
  return memberChanges(JSON.parse(oldValue), JSON.parse(newValue)).filter(
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
