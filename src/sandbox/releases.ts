import type { Item, Market } from './market.ts';

/*
 * Products of one brand and model are a line: what is news for one is news for the others, and their prices move
 * together.
 */

export interface ProductLine {
  readonly brand: string;
  readonly model: string;
}

export interface Released extends ProductLine {
  /** SKUs whose prices moved. */
  readonly skus: readonly string[];
}

/** Parts of a line's SKUs, and of the sizes of each, that move; and how far, as a part of the price. */
const SKUS_PART = 0.7;
const SIZES_PART = 0.8;
const MIN_MOVE = 0.05;
const MAX_MOVE = 0.3;
const MIN_PRICE = 50;

/**
 * Most sizes of most SKUs of a line move, all in one direction. Null: there is none of these names with anything on
 * offer.
 */
export function releaseLine(market: Market, wanted: Partial<ProductLine>): Released | null {
  const line = largestLine(market, wanted);
  if (line === null) return null;
  const { rng, examples } = market;
  const direction = rng.chance(0.5) ? 1 : -1;
  const skus: string[] = [];
  for (const item of line.items) {
    if (examples.has(item) || !rng.chance(SKUS_PART)) continue;
    skus.push(item.sku);
    const sizes = [...market.sizesOf(item)];
    // At least most of them, however few there are.
    const unmoved = rng.int(Math.floor(sizes.length * (1 - SIZES_PART)) + 1);
    for (const [size, price] of sizes.slice(unmoved)) {
      if (price === null) continue;
      const move = 1 + direction * (MIN_MOVE + rng.next() * (MAX_MOVE - MIN_MOVE));
      const after = Math.max(MIN_PRICE, Math.round(price * move));
      market.setPrice(item.sku, size, after === price ? price + 1 : after);
    }
  }
  return { brand: line.brand, model: line.model, skus };
}

/** The line with the most live SKUs on offer, of those that are wanted. */
function largestLine(
  market: Market,
  { brand, model }: Partial<ProductLine>,
): (ProductLine & { readonly items: readonly Item[] }) | null {
  const lines = new Map<string, ProductLine & { readonly items: Item[]; live: number }>();
  for (const item of market.items) {
    if (!item.rows || market.sizesOf(item).size === 0) continue;
    const { product } = market.detailsOf(item);
    if ((brand ?? product.brand) !== product.brand || (model ?? product.model) !== product.model) continue;
    const key = JSON.stringify([product.brand, product.model]);
    const line = lines.get(key) ?? { brand: product.brand, model: product.model, items: [], live: 0 };
    line.items.push(item);
    line.live += Number(market.isLive(item));
    lines.set(key, line);
  }
  return [...lines.values()].toSorted((a, b) => b.live - a.live)[0] ?? null;
}
