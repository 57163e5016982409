import type { MetadataColumn } from '../declared/metadata.ts';
import { isObject, parseJson } from '../lib/json.ts';
import type { PRICE_SOURCES, SKU_STATES } from '../store/schema/catalog.ts';

/** What all rows of catalog.changes() have in common. */
interface AnyChange {
  /** Position of the change in the order of all changes: a bigint, as text. */
  readonly position: string;
  readonly sku: string;
  /** The size keys of the SKU have a new meaning from here on; the market did not move. */
  readonly meaning_changed: boolean;
  readonly observed_at: Date;
}

/** A price appeared (`old_price` null), moved, or disappeared (`new_price` null). Whole baht. */
export interface PriceChange extends AnyChange {
  readonly kind: 'price';
  readonly size: string;
  readonly old_price: number | null;
  readonly new_price: number | null;
  readonly field: null;
  readonly old_value: null;
  readonly new_value: null;
}

/** A column of catalog.products, or members of its object `product` (as JSON text: see `productAfter`). */
export interface ProductChange extends AnyChange {
  readonly kind: 'product';
  readonly size: null;
  readonly old_price: null;
  readonly new_price: null;
  readonly field: MetadataColumn | 'product';
  readonly old_value: string | null;
  readonly new_value: string | null;
}

/** The SKU itself. `state` from null: it appears. `state` to null: it is no longer mirrored, and all of it goes. */
export interface SkuChange extends AnyChange {
  readonly kind: 'sku';
  readonly size: null;
  readonly old_price: null;
  readonly new_price: null;
  readonly field: 'state' | 'price_source' | 'in_manifest';
  readonly old_value: SkuValue | null;
  readonly new_value: SkuValue | null;
}

type SkuValue = (typeof SKU_STATES)[number] | (typeof PRICE_SOURCES)[number] | 'true' | 'false';

/** A row of catalog.changes() or catalog.changes_snapshot(). */
export type Change = PriceChange | ProductChange | SkuChange;

/** The columns of both functions, in their order. */
export const CHANGE_COLUMNS = [
  'position',
  'kind',
  'sku',
  'size',
  'old_price',
  'new_price',
  'field',
  'old_value',
  'new_value',
  'meaning_changed',
  'observed_at',
] as const satisfies readonly (keyof Change)[];

/**
 * Builds a change from the values of its columns, in their order. A client may parse types in its own way, as
 * Drizzle does, so whatever depends on that is read as text: `position`, and `observed_at` as epoch milliseconds.
 */
export function changeOf(values: readonly unknown[]): Change {
  const change = Object.fromEntries(CHANGE_COLUMNS.map((column, at) => [column, values[at]]));
  return { ...change, observed_at: new Date(Number(change['observed_at'])) } as unknown as Change;
}

type Members = Readonly<Record<string, unknown>>;
const member = (of: Members, name: string): unknown => (Object.hasOwn(of, name) ? of[name] : undefined);

/** Returns `held` after some of its members have changed from `were` to `are`, including members of members. */
function merged(held: unknown, were: unknown, are: unknown): unknown {
  if (!isObject(held) || !isObject(were) || !isObject(are)) return are;
  const kept = Object.entries(held).filter(
    ([name]) => !Object.hasOwn(were, name) || Object.hasOwn(are, name),
  );
  const moved = Object.entries(are).map(([name, value]): [string, unknown] => [
    name,
    merged(member(held, name), member(were, name), value),
  ]);
  return Object.fromEntries([...kept, ...moved]);
}

const parsed = (text: string | null): unknown => (text === null ? null : parseJson(text));

/**
 * Returns the object `product` after a change, for programs that keep a copy of it; null if there is none (yet).
 * Pure, and the same as catalog.product_after() in SQL. A change of a price or of the SKU leaves it unchanged,
 * unless the SKU is no longer mirrored. Throws SyntaxError if a value of field `product` is not JSON, which never
 * happens in the feed.
 */
export function productAfter(product: Members | null, change: Change): Members | null {
  if (change.kind === 'sku') return change.field === 'state' && change.new_value === null ? null : product;
  if (change.kind !== 'product' || change.field === 'size_map_size_type') return product;
  if (change.field === 'product')
    return merged(product, parsed(change.old_value), parsed(change.new_value)) as Members | null;
  return product === null ? null : { ...product, [change.field]: change.new_value };
}
