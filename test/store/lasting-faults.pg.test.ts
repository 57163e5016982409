import { expect, test } from 'vitest';
import { acceptDoubted, readDoubts } from '../../src/store/answer/seller-doubts.ts';
import { daemon, doubting, USUAL } from './doubting.ts';
import { found, useStore } from './support.ts';

/*
 * Prices in another unit, satang for baht or another currency, or one for all sizes. Every answer repeats them,
 * even the second; a seller who acted on them would sell at a hundredth of the price, or at a hundred times.
 */

const store = useStore();
const { answer, passMinutes, seen, priced } = doubting(store);
/** As many as a small seller may follow. */
const skus = Array.from({ length: 40 }, (_, n) => `S${String(n).padStart(2, '0')}`);
const times = (factor: number) =>
  Object.fromEntries(Object.entries(USUAL).map(([size, price]) => [size, Math.round(price * factor)]));
const all = (factor: number, of = skus) => of.map((sku) => found(sku, times(factor)));

test('prices in another unit are not acted on, however often they are answered, until they are normal again', async () => {
  const { sql } = store;
  const moves = daemon();
  await priced(...skus);
  const began = await answer(all(100, skus.slice(0, 30)), moves);
  expect(began.massMoved).toMatchObject({ event: 'began', kind: 'factor', answers: 30, implausible: 30 });
  for (let look = 0; look < 4; look += 1) {
    await passMinutes(20);
    await answer(all(100 + look), moves);
    expect(await seen('S00')).toMatchObject({ doubt: 'implausible', actionable: false });
    expect(await seen('S39')).toMatchObject({ doubt: 'implausible', actionable: false });
  }
  const { massMove } = await readDoubts(sql);
  expect(massMove).toMatchObject({ kind: 'factor' });
  expect(massMove?.factor).toBeCloseTo(Math.log(100), 3);

  await answer(all(1.01), moves);
  expect(await seen('S00')).toMatchObject({ doubt: null, actionable: true, price: 4141 });
});

test('implausible prices turn out to be in another unit once more SKUs have moved', async () => {
  const moves = daemon();
  await priced(...skus);
  const first = await answer(all(0.0285, skus.slice(0, 6)), moves);
  expect(first.massMoved).toMatchObject({ event: 'began', kind: 'implausible' });
  await passMinutes(6);
  await answer(all(0.0285, skus.slice(0, 6)), moves);
  expect(await seen('S00')).toMatchObject({ doubt: null });
  const turned = await answer(all(0.0285, skus.slice(6, 20)), moves);
  expect(turned.massMoved).toMatchObject({ event: 'began', kind: 'factor' });
  expect(await seen('S00')).toMatchObject({ doubt: 'mass-move', actionable: false });
  await passMinutes(6);
  await answer(all(0.0285, skus.slice(0, 20)), moves);
  expect(await seen('S00')).toMatchObject({ doubt: 'mass-move', actionable: false });
});

test('once a fault is over, SKUs still in the other unit are requested again at once', async () => {
  const { sql } = store;
  let now = 0;
  const moves = daemon(() => now);
  await priced(...skus);
  await answer(all(100), moves);
  await passMinutes(20);
  await answer(all(100), moves);
  now += 61 * 60_000;
  await passMinutes(61);
  await sql`
    update catalog_internal.due set reason = 'sweep', due_at = now() + interval '20 hours', again_at = null`;
  const ended = await answer(all(1, skus.slice(0, 30)), moves);
  expect(ended.massMoved).toBeNull();
  const over = await answer(all(1.01, skus.slice(0, 30)), moves);
  expect(over.massMoved).toMatchObject({ event: 'ended' });
  // The others have moved since, and wait for their second answer.
  const due = await sql`
    select sku from catalog_internal.due
    where due_at <= now() and reason = 'doubted' and (held_until is null or held_until <= now()) order by sku`;
  expect(due.map(({ sku }) => sku as string)).toEqual(skus.slice(30));
});

test('accepted faults also cover SKUs answered later; single ones are doubted as ever', async () => {
  const { sql } = store;
  const moves = daemon();
  await priced(...skus);
  await answer(all(100, skus.slice(0, 30)), moves);
  expect(await acceptDoubted(sql, null)).toBe(30);
  const later = await answer(all(101, skus.slice(30)), moves);
  expect(later).toMatchObject({ doubted: [], massMoved: null });
  expect(await seen('S39')).toMatchObject({ doubt: null, actionable: true });
  expect((await answer(all(1, ['S39']), moves)).doubted).toHaveLength(1);
  await sql`update catalog_internal.mass_move set accepted_at = accepted_at - interval '8 days'`;
  await passMinutes(6);
  await answer(all(1, ['S39']), moves);
  expect((await answer(all(100, ['S39']), moves)).doubted).toHaveLength(1);
});

test('one price for all sizes is not acted on either, until sizes differ again', async () => {
  const moves = daemon();
  await priced(...skus);
  const lowest = { 40: 4000, 41: 4000, 42: 4000, 43: 4000 };
  const began = await answer(
    skus.map((sku) => found(sku, lowest)),
    moves,
  );
  expect(began.massMoved).toMatchObject({ event: 'began', kind: 'one-price' });
  for (let look = 0; look < 3; look += 1) {
    await passMinutes(20);
    await answer(
      skus.map((sku) => found(sku, lowest)),
      moves,
    );
    expect(await seen('S00')).toMatchObject({ doubt: 'implausible', actionable: false });
  }
  await answer(all(1.01), moves);
  expect(await seen('S00')).toMatchObject({ doubt: null, actionable: true });
});
