import type { World } from '../../src/sandbox/index.ts';
import { type Draw, pick } from './faults.ts';

const SYSTEMS = ['US', 'UK', 'EU', 'CM'];

/** How else a size may be spelled; for many readers it is the same one. */
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

/**
 * One move of the market. Nearly every price is one that there never was before, so that whoever holds it tells when
 * they were told it. `underWay`: SKUs whose answer is on its way.
 */
export function moveOnce(world: World, draw: Draw, price: number, underWay: readonly string[]): void {
  const born = BORN.get(world) ?? world.truth();
  BORN.set(world, born);
  const everything = [...world.truth().values()];
  const racing = everything.filter(({ sku }) => underWay.includes(sku));
  // Often one whose answer is on its way, and does not know of it.
  const all = racing.length > 0 && draw(3) > 0 ? racing : everything;
  const priced = all.filter((row) => row.answer === 'record' && row.listed);
  const sold = priced.filter((row) => !isEmpty(row.sizeMap));
  // Not the ghosts: that a listed SKU becomes priceable moves nothing that the catalog reports.
  const gone = all.filter((row) => !row.listed || (row.answer === 'record' && isEmpty(row.sizeMap)));
  const unlisted = all.filter((row) => row.answer === 'record' && !row.listed);
  const luck = draw(100);
  const live = sold.filter(({ priceSource }) => priceSource === 'live');
  if (luck < 6 && live.length > 0) {
    // Back to what it was at first, fingerprint and all. For the others see test/store/swinging.pg.test.ts.
    const { sku, sizeMap } = pick(live, draw);
    for (const size of Object.keys(sizeMap)) world.dropSize(sku, size);
    for (const [size, first] of Object.entries(born.get(sku)?.sizeMap ?? { one: price }))
      world.setPrice(sku, size, first);
  } else if (luck < 45 && sold.length > 0) {
    const { sku, sizeMap } = pick(sold, draw);
    // An entry without a price, where others have one.
    const none = Object.keys(sizeMap).length > 1 && draw(3) === 0;
    world.setPrice(sku, pick(Object.keys(sizeMap), draw), none ? null : price);
  } else if (luck < 55 && sold.length > 0) {
    const { sku, sizeMap } = pick(sold, draw);
    if (draw(3) === 0) spellAnew(world, draw, sku, price);
    else if (draw(2) === 0) world.dropSize(sku, pick(Object.keys(sizeMap), draw));
    else world.setPrice(sku, `size ${draw(3)}`, price);
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
    // What no manifest lists moves as well.
    world.setPrice(pick(unlisted, draw).sku, 'one', price);
  } else if (luck < 97) {
    world.add(`NEW-${price}`, { live: draw(3) === 0, sizes: { one: price, two: price }, sizeType: 'US' });
  } else if (priced.length > 0) {
    world.correctSizeType(pick(priced, draw).sku, pick(SYSTEMS, draw));
  }
}

/** A size has another key from now on, also at the price of before; or there are both. */
function spellAnew(world: World, draw: Draw, sku: string, price: number): void {
  const sizes = world.find(sku)?.sizeMap ?? {};
  const size = pick(Object.keys(sizes), draw);
  const former = Object.entries(sizes).find(([name]) => name === size)?.[1] ?? price;
  const spelled = pick(SPELLINGS, draw)(size);
  if (draw(3) > 0 && spelled !== size) world.dropSize(sku, size);
  world.setPrice(sku, spelled, draw(2) === 0 ? former : price);
}

function isEmpty(sizes: object): boolean {
  return Object.keys(sizes).length === 0;
}
