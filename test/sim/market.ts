import type { World } from '../../src/sandbox/index.ts';
import { median } from '../../src/store/answer/plausibility.ts';
import { type Draw, pick } from './faults.ts';

const SYSTEMS = ['US', 'UK', 'EU', 'CM'];

/** Other spellings of a size, which many readers take for the same one. */
const SPELLINGS: readonly ((size: string) => string)[] = [
  (size) => size.toUpperCase(),
  (size) => `${size} `,
  (size) => ` ${size}`,
  (size) => `US ${size}`,
  (size) => size.replace('.', ','),
  (size) => `${size}\u00e9`,
  (size) => `${size}e\u0301`,
  (size) => `${size}.0`,
  () => '__proto__',
  () => 'constructor',
  () => '',
];

/** How each world began. */
const BORN = new WeakMap<World, ReturnType<World['truth']>>();

/** A price that no market reaches from those of this catalog. */
const FAR = 100_000;
/** No smaller move is odd (plausibility.ts). */
const NEAR_PERCENT = 8;

/**
 * Prices of a world, none of them used twice, so that each price shows when it was given. Three of four are near
 * what the size or its siblings had, so the mirror believes them at once, as market prices.
 */
export class Prices {
  readonly #used = new Set<number>();
  readonly #draw: Draw;
  readonly #note: (what: string) => void;

  constructor(draw: Draw, note: (what: string) => void) {
    this.#draw = draw;
    this.#note = note;
  }

  /** Returns the next price of a size. For a SKU that the world does not know, any unused one. */
  next(world: World, sku: string, size: string): number {
    const all = [...world.truth().values()];
    for (const { sizeMap } of all) for (const price of Object.values(sizeMap)) this.#used.add(price ?? 0);
    const sizes = new Map(Object.entries(world.find(sku)?.sizeMap ?? {}));
    const present = sizes.get(size) ?? null;
    const base =
      present ??
      levelOf([...sizes.values()]) ??
      levelOf(all.flatMap(({ sizeMap }) => Object.values(sizeMap)));
    if (base === null || this.#draw(4) === 0)
      return this.#unused((base ?? FAR) < FAR / 2 ? FAR : 1000 + this.#draw(5000));
    if (present !== null) this.#note('plausible move');
    const span = Math.ceil((base * NEAR_PERCENT) / 100);
    return this.#unused(Math.ceil(base) - span + this.#draw(2 * span));
  }

  /** Returns the first price from `from` on that has not been used. */
  #unused(from: number): number {
    let price = from;
    while (this.#used.has(price)) price += 1;
    this.#used.add(price);
    return price;
  }
}

function levelOf(prices: readonly (number | null)[]): number | null {
  return median(prices.filter((price) => price !== null));
}

/** Makes one move of the market. `underWay` are SKUs whose answer is on its way. */
export function moveOnce(world: World, draw: Draw, prices: Prices, underWay: readonly string[]): void {
  const born = BORN.get(world) ?? world.truth();
  BORN.set(world, born);
  const everything = [...world.truth().values()];
  const racing = everything.filter(({ sku }) => underWay.includes(sku));
  // Often a SKU whose answer is on its way and does not include the move.
  const all = racing.length > 0 && draw(3) > 0 ? racing : everything;
  const priced = all.filter((row) => row.answer === 'record' && row.listed);
  const sold = priced.filter((row) => !isEmpty(row.sizeMap));
  // Not the ghosts: a listed SKU that becomes priceable moves nothing that the catalog reports.
  const gone = all.filter((row) => !row.listed || (row.answer === 'record' && isEmpty(row.sizeMap)));
  const unlisted = all.filter((row) => row.answer === 'record' && !row.listed);
  const luck = draw(100);
  const live = sold.filter(({ priceSource }) => priceSource === 'live');
  if (luck < 6 && live.length > 0) {
    // Back to its first state, fingerprint included. For other SKUs see test/store/swinging.pg.test.ts.
    const { sku, sizeMap } = pick(live, draw);
    for (const size of Object.keys(sizeMap)) world.dropSize(sku, size);
    for (const [size, first] of Object.entries(
      born.get(sku)?.sizeMap ?? { one: prices.next(world, sku, 'one') },
    ))
      world.setPrice(sku, size, first);
  } else if (luck < 45 && sold.length > 0) {
    const { sku, sizeMap } = pick(sold, draw);
    // An entry without a price, if other entries have one.
    const none = Object.keys(sizeMap).length > 1 && draw(3) === 0;
    const size = pick(Object.keys(sizeMap), draw);
    world.setPrice(sku, size, none ? null : prices.next(world, sku, size));
  } else if (luck < 55 && sold.length > 0) {
    const { sku, sizeMap } = pick(sold, draw);
    if (draw(3) === 0) spellAnew(world, draw, sku, prices);
    else if (draw(2) === 0) world.dropSize(sku, pick(Object.keys(sizeMap), draw));
    else setNext(world, prices, sku, `size ${draw(3)}`);
  } else if (luck < 72 && priced.length > 0) {
    const { sku, priceSource } = pick(priced, draw);
    world.cross(sku, priceSource === 'live' ? 'snapshot' : 'live');
  } else if (luck < 79 && sold.length > 0) {
    world.withdraw(pick(sold, draw).sku);
  } else if (luck < 86 && priced.length > 2) {
    world.remove(pick(priced, draw).sku, { priceable: draw(3) === 0 });
  } else if (luck < 92 && gone.length > 0) {
    world.relist(pick(gone, draw).sku);
  } else if (luck < 94 && unlisted.length > 0) {
    // SKUs that no manifest lists move as well.
    setNext(world, prices, pick(unlisted, draw).sku, 'one');
  } else if (luck < 97) {
    const price = prices.next(world, '', '');
    world.add(`NEW-${price}`, { live: draw(3) === 0, sizes: { one: price, two: price }, sizeType: 'US' });
  } else if (priced.length > 0) {
    world.correctSizeType(pick(priced, draw).sku, pick(SYSTEMS, draw));
  }
}

/** Renames the key of a size, possibly at the same price, or adds a second key. */
function spellAnew(world: World, draw: Draw, sku: string, prices: Prices): void {
  const sizes = world.find(sku)?.sizeMap ?? {};
  const size = pick(Object.keys(sizes), draw);
  const former = Object.entries(sizes).find(([name]) => name === size)?.[1] ?? null;
  const spelled = pick(SPELLINGS, draw)(size);
  if (draw(3) > 0 && spelled !== size) world.dropSize(sku, size);
  if (draw(2) === 0 && former !== null) world.setPrice(sku, spelled, former);
  else setNext(world, prices, sku, spelled);
}

/** Gives a size a price that has not been used. */
export function setNext(world: World, prices: Prices, sku: string, size: string): void {
  world.setPrice(sku, size, prices.next(world, sku, size));
}

function isEmpty(sizes: object): boolean {
  return Object.keys(sizes).length === 0;
}
