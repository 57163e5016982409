import { expect, test } from 'vitest';
import { doubting, POISON } from './doubting.ts';
import { found, ledger, useStore } from './support.ts';

const store = useStore();

const { answer, passMinutes, seen, priced } = doubting(store);

test('while prices are known to lag, a second answer counts once no cache can still have the first', async () => {
  const { sql } = store;
  await priced('A');
  await sql`update catalog_internal.beliefs set late_since = now()`;
  await answer([found('A', POISON)]);
  expect((await ledger(sql)).get('A')?.heldFor).toBeCloseTo(17 / 60, 2);
  await passMinutes(6);
  await answer([found('A', POISON)]);
  expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
  expect((await ledger(sql)).get('A')?.heldFor).toBeCloseTo(11 / 60, 2);
  await passMinutes(12);
  await answer([found('A', POISON)]);
  expect(await seen('A')).toEqual({ doubt: null, actionable: true, price: 41_000 });
});

test('if prices have begun to lag meanwhile, the wait for the second answer starts anew', async () => {
  await priced('A');
  await answer([found('A', POISON)]);
  await store.sql`update catalog_internal.beliefs set late_since = now()`;
  await passMinutes(6);
  await answer([found('A', POISON)]);
  expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
});
