import { METADATA } from '../../src/declared/metadata.ts';
import type { TruthRow, World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';

/** One SKU as truth and mirror are compared: everything a seller can read of it but times. */
interface Seen {
  readonly state: string;
  readonly listed: boolean;
  readonly priceSource: string | null;
  readonly prices: Record<string, number | null>;
  readonly sizeType: string | null;
  readonly product: Record<string, string> | null;
}

/** What the mirror should hold of a SKU. A SKU that is gone keeps its metadata, which is not compared then. */
function expected(truth: TruthRow): Seen {
  const record = truth.answer === 'record';
  return {
    state: record ? 'priced' : truth.listed ? 'not_found' : 'gone',
    listed: truth.listed,
    priceSource: truth.listed ? truth.priceSource : null,
    prices: record ? truth.sizeMap : {},
    sizeType: record ? truth.sizeType : null,
    product: record ? { ...truth.product } : null,
  };
}

const DOCUMENTED = Object.values(METADATA).flatMap(([part, member]): string[] =>
  part === 'product' ? [member] : [],
);

/** The members of a product that the partner documents; the mirror keeps others too. */
function documented(product: Record<string, string> | undefined): Record<string, string> | null {
  if (product === undefined) return null;
  return Object.fromEntries(Object.entries(product).filter(([field]) => DOCUMENTED.includes(field)));
}

async function mirrored(sql: Sql): Promise<Map<string, Seen>> {
  const skus = await sql<{ sku: string; state: string; in_manifest: boolean; price_source: string | null }[]>`
    select sku, state, in_manifest, price_source from catalog.skus`;
  const prices = await sql<
    { sku: string; size: string; price: number | null }[]
  >`select sku, size, price from catalog.prices`;
  const products = await sql<{ sku: string; size_map_size_type: string; product: Record<string, string> }[]>`
    select sku, size_map_size_type, product from catalog.products`;
  const pricesOf = Map.groupBy(prices, ({ sku }) => sku);
  const productOf = new Map(products.map((row) => [row.sku, row]));
  return new Map(
    skus.map(({ sku, state, in_manifest, price_source }) => {
      const priced = state === 'priced';
      const gone = !in_manifest && (state === 'removed' || state === 'not_found');
      return [
        sku,
        {
          state: gone ? 'gone' : state,
          listed: in_manifest,
          priceSource: in_manifest ? price_source : null,
          prices: Object.fromEntries((pricesOf.get(sku) ?? []).map(({ size, price }) => [size, price])),
          sizeType: priced ? (productOf.get(sku)?.size_map_size_type ?? null) : null,
          product: priced ? documented(productOf.get(sku)?.product) : null,
        },
      ];
    }),
  );
}

/** A SKU of which the mirror holds something else than is true. */
export interface Difference {
  readonly sku: string;
  readonly truth: Seen | undefined;
  readonly mirror: Seen | undefined;
}

/**
 * The whole mirror against the sandbox's truth: every SKU the catalog lists, and every SKU the mirror has ever heard of
 * (unlisted SKUs that it never heard of are none of its business).
 */
export async function differencesOf(sql: Sql, world: World): Promise<Difference[]> {
  const truth = world.truth();
  const mirror = await mirrored(sql);
  const wanted = new Map<string, Seen>();
  for (const [sku, row] of truth) if (row.listed || mirror.has(sku)) wanted.set(sku, expected(row));
  return [...new Set([...wanted.keys(), ...mirror.keys()])]
    .map((sku) => ({ sku, truth: wanted.get(sku), mirror: mirror.get(sku) }))
    .filter((each) => stable(each.truth) !== stable(each.mirror));
}

/** Objects as text, keys in order, own `__proto__` included. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))
      : inner,
  );
}
