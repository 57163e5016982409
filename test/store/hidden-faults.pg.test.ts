import { describe, expect, test } from 'vitest';
import { readDoubts } from '../../src/store/answer/seller-doubts.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { daemon, doubting, USUAL } from './doubting.ts';
import { found, useStore } from './support.ts';

/*
 * Prices in another unit that are hard to detect: in some sizes of each SKU, across the answers of several
 * daemons, or of SKUs that were believed before the fault was known.
 */

const store = useStore();
const { answer, passMinutes, seen, priced } = doubting(store);

const times = (factor: number, sizes: readonly string[] = Object.keys(USUAL)) =>
  Object.fromEntries(
    Object.entries(USUAL).map(([size, price]) => [
      size,
      sizes.includes(size) ? Math.round(price * factor) : price,
    ]),
  );
const named = (letter: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${letter}${String(n).padStart(3, '0')}`);
const all = (skus: readonly string[], prices: Record<string, number>): SkuResult[] =>
  skus.map((sku) => found(sku, prices));

async function actionable(skus: readonly string[]): Promise<number> {
  const rows =
    await store.sql`select from catalog.sku_trust where sku = any(${skus as string[]}) and actionable`;
  return rows.count;
}

test('some faulty sizes of many SKUs stay doubted, however often answered, until they are normal again', async () => {
  const moves = daemon();
  const [bad, good] = [named('B', 12), named('G', 400)];
  await priced(...bad, ...good);
  await answer(all(good, times(1.02)), moves);
  const inDollars = times(1 / 34, ['41']);
  const { massMoved } = await answer(all(bad, inDollars), moves);
  expect(massMoved).toMatchObject({ event: 'began', kind: 'factor' });
  for (let look = 0; look < 3; look += 1) {
    await passMinutes(6);
    await answer(all(bad, inDollars), moves);
    expect(await actionable(bad)).toBe(0);
  }
  await answer(all(bad, USUAL), moves);
  expect(await actionable(bad)).toBe(bad.length);
});

test('a fault is found during another mass move, even if each of two daemons sees only some of its SKUs', async () => {
  const [bad, good] = [named('B', 12), named('G', 13)];
  await priced(...bad, ...good);
  const [one, other] = [daemon(), daemon()];
  const odd = good.slice(0, 5).map((sku, n) => found(sku, { ...USUAL, 41: 16_000 + 5000 * n }));
  expect((await answer(odd, one)).massMoved).toMatchObject({ event: 'began', kind: 'implausible' });
  expect((await answer(all(bad.slice(0, 6), times(5)), one)).massMoved).toBeNull();
  const turned = await answer(all(bad.slice(6), times(5)), other);
  expect(turned.massMoved).toMatchObject({ event: 'began', kind: 'factor' });
  await passMinutes(6);
  await answer(all(bad, times(5)), other);
  expect(await actionable(bad)).toBe(0);
  await answer(all(bad, USUAL), one);
  expect(await actionable(bad)).toBe(bad.length);
});

test('a size that first appeared in the wrong unit keeps its SKU doubted no longer than the others', async () => {
  const moves = daemon();
  const [bad, good] = [named('B', 10), named('G', 400)];
  await priced(...bad, ...good);
  await answer(all(good, times(1.02)), moves);
  // Confirmed by a second answer before the fault is known.
  const more = { ...times(100), 44: 440_000 };
  await answer(all(['B000'], more), moves);
  await passMinutes(6);
  await answer(all(['B000'], more), moves);
  expect(await seen('B000')).toMatchObject({ actionable: true });
  const began = await answer(all(bad.slice(1), times(100)), moves);
  expect(began.massMoved).toMatchObject({ event: 'began' });
  expect(await seen('B000')).toMatchObject({ actionable: false });
  await passMinutes(6);
  await answer(all(['B000'], { ...USUAL, 44: 4400 }), moves);
  await answer(all(bad.slice(1), USUAL), moves);
  expect(await actionable(bad)).toBe(bad.length);
  expect((await readDoubts(store.sql)).implausible).toBe(0);
});

test.each([
  [2000, 0, 0],
  [1900, 0, 1],
  [2000, 61, 1],
])(
  '%i odd moves stored %i minutes ago during a mass move leave room for %i more, up to what is read',
  async (stored, minutes, more) => {
    const { sql } = store;
    await priced('A000', ...named('B', 6));
    const one = daemon();
    await answer(all(named('B', 6), { ...USUAL, 41: 16_000 }), one);
    await sql`
      insert into catalog_internal.odd_moves (sku, factor, begun_at)
      select 'S' || n, 1.2, clock_timestamp() - make_interval(mins => ${minutes}) from generate_series(1, ${stored}::int) n`;
    await answer(all(['A000'], times(100)), one);
    expect(await sql`select from catalog_internal.odd_moves where sku = 'A000'`).toHaveLength(more);
  },
);

describe('mass moves that a daemon with few answers sees no evidence of', () => {
  const [odd, few, good] = [named('O', 12), named('F', 20), named('G', 400)];
  const usual = (skus: readonly string[]) => all(skus, times(1.01));

  /** Starts a mass move that is an hour old, and known to a daemon that has had 19 answers for others since. */
  async function begun(kind: string, odds: readonly SkuResult[]) {
    let now = 0;
    const [fast, slow] = [daemon(() => now), daemon(() => now)];
    await priced(...odd, ...few, ...good);
    await answer(usual(good), fast);
    expect((await answer(odds, fast)).massMoved).toMatchObject({ event: 'began', kind });
    await answer(usual(few.slice(0, 19)), slow);
    now += 61 * 60_000;
    await passMinutes(61);
    return { fast, slow };
  }

  test('last while answers of other daemons show odd moves, and end after that', async () => {
    const { slow } = await begun(
      'implausible',
      odd.map((sku, n) => found(sku, { ...USUAL, 41: 16_000 + 5000 * n })),
    );
    expect((await answer(usual(few.slice(19)), slow)).massMoved).toBeNull();
    await store.sql`update catalog_internal.odd_moves set begun_at = begun_at - interval '61 minutes'`;
    expect((await answer(usual(few.slice(19)), slow)).massMoved).toMatchObject({ event: 'ended' });
  });

  test('last for all SKUs if they have a factor', async () => {
    const { fast, slow } = await begun('factor', all(odd, times(100)));
    await answer(all(odd, times(100)), fast);
    expect((await answer(usual(few.slice(19)), slow)).massMoved).toBeNull();
    expect((await readDoubts(store.sql)).massMove).toMatchObject({ kind: 'factor' });
  });
});
