import { METADATA } from '../../src/declared/metadata.ts';
import type { TruthRow, World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';

/** A SKU as it is compared between truth and mirror: everything that a seller can read of it except times. */
interface Seen {
  readonly state: string;
  readonly listed: boolean;
  readonly priceSource: string | null;
  readonly prices: Record<string, number | null>;
  readonly sizeType: string | null;
  readonly product: Record<string, string> | null;
}

/** Returns what the mirror should hold of a SKU. One that is gone keeps its metadata, which is then not compared. */
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

/** Returns the documented members of a product; the mirror keeps others, too. */
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

/** A SKU of which the mirror holds something else than the truth. */
export interface Difference {
  readonly sku: string;
  readonly truth: Seen | undefined;
  readonly mirror: Seen | undefined;
}

/**
 * Compares the whole mirror with the sandbox's truth: every SKU that the catalog lists or the mirror knows.
 * Unlisted SKUs that it does not know are ignored.
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

/** Returns an object as text with its keys in order, including an own `__proto__`. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))
      : inner,
  );
}
