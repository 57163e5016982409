import { describe, expect, test } from 'vitest';
import { readDoubts } from '../../src/store/answer/seller-doubts.ts';
import { adoptAccount } from '../../src/store/setup/account.ts';
import { daemon, doubting } from './doubting.ts';
import { found, knownSkus, useStore } from './support.ts';

/* A size sells out and is offered again; its price is compared with the one before. */

const store = useStore();
const { answer, passMinutes, seen } = doubting(store);

type Prices = Readonly<Record<string, number | null>>;

async function known(prices: Prices): Promise<void> {
  const { sql } = store;
  await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
  await knownSkus(sql, ['A']);
  await answer([found('A', prices)]);
}

describe('a size that is offered again', () => {
  test.each<[string, Prices, Prices, Prices]>([
    ['of two', { 9: 4000, 10: 4200 }, { 10: 4200 }, { 9: 400_000, 10: 4200 }],
    [
      'of two, its entry without a price',
      { 9: 4000, 10: 4200 },
      { 9: null, 10: 4200 },
      { 9: 14_000, 10: 4200 },
    ],
    ['of two, cheaper', { 9: 4000, 10: 4200 }, { 10: 4200 }, { 9: 1300, 10: 4200 }],
    [
      'of many, as dear as others',
      { 7: 1500, 8: 4000, 9: 4100, 10: 4200 },
      { 8: 4000, 9: 4100, 10: 4200 },
      { 7: 5000, 8: 4000, 9: 4100, 10: 4200 },
    ],
  ])('at three times its last price, or a third, is doubted: %s', async (_, before, without, now) => {
    await known(before);
    await answer([found('A', without)]);
    expect((await answer([found('A', now)])).doubted).toEqual([{ sku: 'A', oddity: 'jump' }]);
    await answer([found('A', now)]);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
    await passMinutes(6);
    await answer([found('A', now)]);
    expect(await seen('A')).toMatchObject({ doubt: null, actionable: true });
  });

  test('at about its former price is not doubted, and ends a doubt', async () => {
    await known({ 9: 4000, 10: 4200 });
    await answer([found('A', { 10: 4200 })]);
    expect((await answer([found('A', { 9: 8000, 10: 4200 })])).doubted).toEqual([]);
    await answer([found('A', { 10: 4200 })]);
    await answer([found('A', { 9: 40_000, 10: 4200 })]);
    await answer([found('A', { 9: 40_000, 10: 4200 })]);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible' });
    await answer([found('A', { 9: 4100, 10: 4200 })]);
    expect(await seen('A')).toMatchObject({ doubt: null });
  });

  test('is compared with its price before a wrong one that was there for one answer', async () => {
    const wrong = { 9: 400_000, 10: 4200 };
    await known({ 9: 4000, 10: 4200 });
    for (let time = 0; time < 3; time += 1) {
      expect((await answer([found('A', wrong)])).doubted).toHaveLength(1);
      await answer([found('A', { 10: 4200 })]);
      expect(await seen('A')).toMatchObject({ doubt: null });
    }
  });

  test('is not believed because of a wrong past price: the same number is doubted again', async () => {
    const [right, wrong] = [
      { 9: 4000, 10: 4200 },
      { 9: 400_000, 10: 4200 },
    ];
    await known(right);
    for (const prices of [wrong, { 10: 4200 }, right, wrong]) await answer([found('A', prices)]);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
    await answer([found('A', right)]);
    expect(await seen('A')).toMatchObject({ doubt: null, actionable: true });
  });

  test('does not hide the evidence of the other sizes for a mass move', async () => {
    const moves = daemon();
    const skus = Array.from({ length: 20 }, (_, n) => `A${n}`);
    const all = (prices: Prices) => skus.map((sku) => found(sku, prices));
    await store.sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
    await knownSkus(store.sql, skus);
    await answer(all({ 7: 4000, 8: 4100, 9: 4300, 10: 4200 }));
    await answer(all({ 9: 4300, 10: 4200 }), moves);
    const faulty = all({ 7: 400_000, 8: 410_000, 9: 430_000, 10: 420_000 });
    expect((await answer(faulty, moves)).massMoved).toMatchObject({ event: 'began', kind: 'factor' });
    await passMinutes(6);
    await answer(faulty, moves);
    expect(await seen('A0')).toMatchObject({ doubt: 'implausible', actionable: false });
  });

  test('is doubted even if the SKU had no price at all meanwhile', async () => {
    const wrong = { 9: 400_000, 10: 4200 };
    await known({ 9: 4000, 10: 4200 });
    await answer([found('A', wrong)]);
    await answer([found('A', { 10: 4200 })]);
    await answer([found('A', {})]);
    expect((await answer([found('A', wrong)])).doubted).toEqual([{ sku: 'A', oddity: 'jump' }]);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
  });

  test('is no evidence for a mass move, whatever it costs', async () => {
    const moves = daemon();
    await known({ 9: 4000, 10: 4200 });
    await answer([found('A', { 10: 4200 })]);
    await answer([found('A', { 9: 40_000, 10: 4200 })], moves);
    expect(moves.hour()).toMatchObject({ answers: 0, implausible: 0 });
    expect(await readDoubts(store.sql)).toMatchObject({ implausible: 1 });
  });

  test('is not compared with prices of another account', async () => {
    await known({ 7: 1500, 8: 4000, 9: 4100, 10: 4200 });
    await answer([found('A', { 8: 4000, 9: 4100, 10: 4200 })]);
    await adoptAccount(store.sql, { baseUrl: 'https://other.example', apiKey: 'k' });
    const applied = await answer([found('A', { 7: 5000, 8: 4000, 9: 4100, 10: 4200 })]);
    expect(applied.doubted).toEqual([]);
  });
});
