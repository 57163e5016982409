import type { TruthRow, World } from '../../src/sandbox/index.ts';

/**
 * Moves the first price of a SKU, by no more than is accepted without a second answer. `more` distinguishes moves.
 */
export function nudge(world: World, { sku, sizeMap }: Pick<TruthRow, 'sku' | 'sizeMap'>, more = 0): void {
  for (const [size, price] of Object.entries(sizeMap).slice(0, 1))
    world.setPrice(sku, size, Math.round((price ?? 1000) * 1.2) + more);
}

/** Makes all kinds of moves that the catalog reports, in the snapshot cohort, and builds a snapshot of them. */
export function moveMarket(world: World, round: number): void {
  const listed = [...world.truth().values()].filter((row) => row.listed && row.answer === 'record');
  const priced = listed.filter(
    (row) => row.priceSource === 'snapshot' && Object.keys(row.sizeMap).length > 0,
  );
  const from = (start: number, count: number) => priced.slice(start + round * 60, start + round * 60 + count);
  for (const row of from(0, 40)) nudge(world, row, round);
  for (const { sku } of from(40, 5)) world.remove(sku);
  for (const { sku } of from(45, 5)) world.withdraw(sku);
  for (const { sku } of from(50, 5)) world.cross(sku, 'live');
  for (let i = 0; i < 5; i += 1) world.add();
  world.buildSnapshot();
}

/** Returns a generator of reproducible numbers in [0, 1). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
