import { parseJson } from '../../lib/json.ts';
import type { Tx } from '../connection/db.ts';
import type { PriceDifference } from './differences.ts';
import { memberChanges } from './members.ts';
import type { PriceRow, SkuResult } from './types.ts';

/** How the prices of answered SKUs compare with the mirror's. */
export interface ComparedPrices {
  readonly differences: readonly PriceDifference[];
  /** For SKUs that were priced once and for which the mirror no longer holds a price. */
  readonly vanished: ReadonlyMap<string, VanishedPrices>;
}

/** The SKU's prices that vanished last, by size, and how many minutes before the request; null if unknown. */
export interface VanishedPrices {
  readonly vanished: Readonly<Record<string, number>> | null;
  readonly vanishedMinutes: number | null;
}

/** What the mirror holds of an answered SKU; null if it holds nothing of the kind. */
export interface SkuAsHeld {
  readonly sizes: readonly string[] | null;
  /** The prices of `sizes`, in the same order. */
  readonly prices: readonly (number | null)[] | null;
  /** Entries that differ from the answer's: JSON text, null if the mirror's price is just a number. */
  readonly entries: readonly (readonly [size: string, entry: string | null])[] | null;
  /** The last prices, newest first, of sizes that have a price again. */
  readonly lastPrices: readonly (readonly [size: string, prices: readonly number[]])[] | null;
}

const pricesOf = (result: SkuResult): readonly PriceRow[] => (result.kind === 'record' ? result.prices : []);

/**
 * Compares the prices of answered SKUs with the mirror's; a SKU that is not found loses all its prices. Call this with
 * the SKUs' rows locked: every writer of prices locks them.
 *
 * Postgres collects what it holds of each SKU, and the prices are compared here: sending all prices of an answer would
 * take both sides longer. Postgres gets the sizes that have a price, to read the last prices of those that have none
 * in the mirror, and the entries, because only Postgres knows which JSON is the same.
 */
export async function comparePrices(
  tx: Tx,
  answered: readonly SkuResult[],
  askedAt: Date,
): Promise<ComparedPrices> {
  const rows = await tx<(SkuAsHeld & VanishedPrices & { readonly sku: string })[]>`
    with held as materialized (
      select n.sku, h.sizes, h.prices, h.entries, h.is_unpriced, n.sizes - h.priced as appeared
      from unnest(${answered.map(({ sku }) => sku)}::text[], ${answered.map(pricedSizes)}::text[]::jsonb[],
        ${answered.map(entriesBySize)}::text[]::jsonb[]) as n(sku, sizes, entries)
      cross join lateral (
        select json_agg(p.size) as sizes, json_agg(p.price) as prices, count(p.price) = 0 as is_unpriced,
          coalesce(array_agg(p.size) filter (where p.price is not null), '{}') as priced,
          json_agg(json_build_array(p.size, p.entry::text)) filter (where p.entry is distinct from n.entries -> p.size) as entries
        from catalog.prices p where p.sku = n.sku
      ) h
    ),
    returned as materialized (
      select h.sku, size from held h join catalog.skus s using (sku) cross join lateral jsonb_array_elements_text(h.appeared) as size
      where h.appeared <> '[]' and s.first_priced_at is not null
    )
    select h.sku, h.sizes, h.prices, h.entries, l.prices as "lastPrices", v.vanished, v.minutes as "vanishedMinutes"
    from held h
    -- Of no size the function is not called, and so no chunk of the history is opened.
    left join (
      select l.sku, json_agg(json_build_array(l.size, l.prices)) as prices from catalog_internal.last_prices(
        (select array_agg(sku) from returned), (select array_agg(size) from returned)
      ) l group by l.sku
    ) l using (sku)
    left join catalog_internal.vanished_prices((select array_agg(sku) from held where is_unpriced), ${askedAt}) v using (sku)`;
  const heldOf = new Map(rows.map((row) => [row.sku, row]));
  return {
    differences: answered.flatMap((result) => priceDifferences(result, heldOf.get(result.sku))),
    vanished: new Map(
      rows.flatMap(({ sku, vanished, vanishedMinutes }): [string, VanishedPrices][] =>
        vanished === null ? [] : [[sku, { vanished, vanishedMinutes }]],
      ),
    ),
  };
}

/** Returns the sizes of a result that have a price, as JSON text. */
const pricedSizes = (result: SkuResult): string =>
  JSON.stringify(pricesOf(result).flatMap(({ size, price }) => (price === null ? [] : [size])));

/** Returns the entries of a result as JSON text, with their numbers as the partner wrote them; null if it has none. */
function entriesBySize(result: SkuResult): string | null {
  const members = pricesOf(result).flatMap(({ size, entry }) =>
    entry === null ? [] : [`${JSON.stringify(size)}:${entry}`],
  );
  return members.length === 0 ? null : `{${members.join()}}`;
}

/** Returns where a result differs from the mirror's prices: first for its own sizes, then for those it lacks. Pure. */
export function priceDifferences(result: SkuResult, held?: SkuAsHeld): PriceDifference[] {
  const { sku } = result;
  const before = new Map(held?.sizes?.map((size, at) => [size, held.prices?.[at] ?? null]));
  const differing = new Map(held?.entries);
  const last = new Map(held?.lastPrices);
  const differences: PriceDifference[] = [];
  for (const { size, price, entry } of pricesOf(result)) {
    const oldPrice = before.get(size) ?? null;
    const how = !before.has(size) ? 'appeared' : oldPrice !== price ? 'moved' : 'entry';
    before.delete(size);
    if (how === 'entry' && !differing.has(size)) continue;
    const lastPrices = last.get(size);
    differences.push({
      sku,
      size,
      how,
      oldPrice,
      newPrice: price,
      entry,
      ...(lastPrices !== undefined && { lastPrices }),
      ...(how === 'entry' && { members: entryChanges(differing.get(size) ?? null, entry) }),
    });
  }
  for (const [size, oldPrice] of before)
    differences.push({ sku, size, how: 'gone', oldPrice, newPrice: null, entry: null });
  return differences;
}

const entryChanges = (from: string | null, to: string | null) =>
  memberChanges(parseJson(from ?? 'null'), parseJson(to ?? 'null'));
