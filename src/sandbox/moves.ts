import { missingSize } from './catalogue.ts';
import type { Item, Market } from './market.ts';

const TRIES = 64;
const PAINTS: readonly [string, ...string[]] = ['Retro', 'SE', 'Premium', 'PRM'];
const SYSTEMS: readonly [string, ...string[]] = ['US', 'UK', 'EU', 'CM'];

/** What can happen to the market by itself, with its relative weight. */
const MOVES: readonly { weight: number; apply: (market: Market) => void }[] = [
  { weight: 68, apply: walkPrice },
  { weight: 6, apply: openSize },
  { weight: 6, apply: closeSize },
  { weight: 5, apply: crossCohort },
  { weight: 3, apply: (market) => onListed(market, (item) => market.withdraw(item.sku)) },
  { weight: 3, apply: relistOldest },
  { weight: 1, apply: removeOne },
  { weight: 2, apply: (market) => void market.add(undefined, { live: market.rng.chance(0.05) }) },
  { weight: 1, apply: correctSizeType },
  { weight: 5, apply: renameProduct },
];

const TOTAL_WEIGHT = MOVES.reduce((sum, move) => sum + move.weight, 0);

/** Lets `count` random things happen to the market, drawn from the market's own generator. */
export function stepMarket(market: Market, count: number): void {
  for (let done = 0; done < count; done += 1) {
    let draw = market.rng.next() * TOTAL_WEIGHT;
    for (const move of MOVES) {
      draw -= move.weight;
      if (draw >= 0) continue;
      move.apply(market);
      break;
    }
  }
}

/** Finds a random item that fits by probing, the examples left alone; gives up quietly where hardly any does. */
function onRandom(market: Market, fits: (item: Item) => boolean, act: (item: Item) => void): void {
  for (let tryNumber = 0; tryNumber < TRIES; tryNumber += 1) {
    const item = market.items[market.rng.int(market.items.length)];
    if (item === undefined || market.examples.has(item) || !fits(item)) continue;
    act(item);
    return;
  }
}

function onListed(market: Market, act: (item: Item) => void): void {
  onRandom(market, (item) => item.rows && market.sizesOf(item).size > 0, act);
}

function onRandomSize(market: Market, act: (item: Item, size: string, price: number | null) => void): void {
  onRandom(
    market,
    (item) => market.sizesOf(item).size > 0,
    (item) => {
      const [first, ...rest] = market.sizesOf(item);
      if (first !== undefined) act(item, ...market.rng.pick([first, ...rest]));
    },
  );
}

function walkPrice(market: Market): void {
  onRandomSize(market, (item, size, price) => {
    const before = price ?? 1000;
    const drift = 0.01 + market.rng.next() * 0.09;
    const after = Math.max(50, Math.round(before * (market.rng.chance(0.5) ? 1 + drift : 1 - drift)));
    market.setPrice(item.sku, size, after === before ? before + 1 : after);
  });
}

function openSize(market: Market): void {
  onListed(market, (item) => {
    const sizes = market.sizesOf(item);
    const size = missingSize(market.detailsOf(item).sizeType, sizes, market.rng);
    const level = sizes.values().next().value ?? 1000;
    if (size !== null)
      market.setPrice(item.sku, size, Math.max(50, Math.round(level * (0.9 + market.rng.next() * 0.2))));
  });
}

function closeSize(market: Market): void {
  onRandomSize(market, (item, size) => market.dropSize(item.sku, size));
}

function crossCohort(market: Market): void {
  const toLive = market.rng.chance(0.5);
  onRandom(
    market,
    (item) => item.rows && !item.mislisted && item.live !== toLive,
    (item) => market.cross(item.sku, toLive ? 'live' : 'snapshot'),
  );
}

function relistOldest(market: Market): void {
  const oldest = market.gone.values().next().value;
  if (oldest !== undefined) market.relist(oldest.sku);
}

function removeOne(market: Market): void {
  onRandom(
    market,
    (item) => item.rows,
    (item) => market.remove(item.sku, market.rng.chance(0.2)),
  );
}

function correctSizeType(market: Market): void {
  onListed(market, (item) => {
    const { sizeType } = market.detailsOf(item);
    const next = market.rng.pick(SYSTEMS);
    if (next !== sizeType) market.correctSizeType(item.sku, next);
  });
}

function renameProduct(market: Market): void {
  onListed(market, (item) => {
    const { product } = market.detailsOf(item);
    market.setProduct(item.sku, {
      name: `${product.brand} ${product.model} ${market.rng.pick(PAINTS)} ${market.rng.int(1000)}`,
    });
  });
}
