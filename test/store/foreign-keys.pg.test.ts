import { expect, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect } from '../../src/store/connection/db.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { baseline, line, standing } from './manifest.ts';
import { answerAsked, found, ledger, movesOf, pricesOf, stateOf, useStore } from './support.ts';

const store = useStore();

/** Makes a seller's object on tables of the mirror until the end of the test. */
async function sellers(make: string, drop: string): Promise<AsyncDisposable> {
  await store.sql.unsafe(make);
  return { [Symbol.asyncDispose]: async () => void (await store.sql.unsafe(drop)) };
}

const LISTING = `create table public.listing (sku text, size text, foreign key (sku, size) references catalog.prices`;
const DROP_LISTING = 'drop table public.listing';

/** Prices two SKUs that a delta from `s1` to `s2` removes, and one that it reports. */
async function priced(): Promise<void> {
  await standing(store, line('A'), line('B'), line('C'));
  await answerAsked(store.sql, found('A', { 8: 80, 9: 90 }), found('B', { 9: 90 }), found('C', { 9: 90 }));
  await store.sql`update catalog_internal.sync set snapshot_id = 's1'`;
}

const DELTA = { since: 's1', toSnapshot: 's2', changed: ['C'], removed: ['A', 'B'], nowLive: [] };

const token = async () =>
  (await store.sql`select snapshot_id from catalog_internal.sync`)[0]?.['snapshot_id'] as string;

const quarantined = () =>
  store.sql`select source, reason, sku, sample from catalog_internal.quarantine order by id`;

/** Expects the delta to be applied except where somebody objects, which is never to the prices of B. */
async function expectAppliedAround(problem: string): Promise<void> {
  const { sql } = store;
  expect(await token()).toBe('s2');
  expect((await ledger(sql)).get('C')).toMatchObject({ reason: 'changed' });
  expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'removed' });
  expect(await stateOf(sql, 'A')).toMatchObject({ state: 'removed', removed: true });
  expect(await sql`select from catalog.sku_trust where sku in ('A', 'B') and actionable`).toHaveLength(0);
  expect(await pricesOf(sql, 'B')).toEqual({});
  expect(await movesOf(sql, 'B')).toEqual(['9: 90 → null']);
  expect(await quarantined()).toEqual([
    { source: 'store', reason: 'not-deleted', sku: 'A', sample: expect.stringContaining(problem) as string },
  ]);
}

test.each(['', ' deferrable initially deferred'])(
  'a foreign key to a price%s does not stop a delta from removing other SKUs and reporting changes',
  async (when) => {
    const { sql } = store;
    await priced();
    await using _ = await sellers(`${LISTING}${when})`, DROP_LISTING);
    await sql`insert into public.listing values ('A', '9')`;
    await applyDelta(sql, DELTA);
    await expectAppliedAround('SQLSTATE 23503, by listing_sku_size_fkey of public.listing');
    expect(await pricesOf(sql, 'A')).toEqual({ 8: null, 9: null });
    const gone = async () => (await movesOf(sql, 'A')).filter((move) => move.endsWith('null'));
    expect(await gone()).toEqual(['8: 80 → null', '9: 90 → null']);
    // Without the foreign key, its next answer deletes them.
    await sql`delete from public.listing`;
    await answerAsked(sql, { sku: 'A', kind: 'not_found' });
    expect(await pricesOf(sql, 'A')).toEqual({});
    expect(await gone()).toHaveLength(2);
  },
);

test('a trigger that rejects changes of a price keeps that price, but stops nothing else of a delta', async () => {
  await priced();
  await using _ = await sellers(
    `create function public.keep() returns trigger language plpgsql as $$ begin perform no_such_function(); end $$;
     create trigger keep before delete or update on catalog.prices for each row when (old.sku = 'A') execute function public.keep()`,
    'drop function public.keep cascade',
  );
  await applyDelta(store.sql, DELTA);
  await expectAppliedAround('SQLSTATE 42883');
  expect(await pricesOf(store.sql, 'A')).toEqual({ 8: 80, 9: 90 });
});

test("a seller's open transaction with a foreign key to a price stops nothing else of a delta", async () => {
  const { sql } = store;
  await priced();
  await using _ = await sellers(`${LISTING})`, DROP_LISTING);
  const daemon = connect(store.url, { max: 1 });
  await daemon`set lock_timeout = '200ms'`;
  await sql.begin(async (seller) => {
    await seller`insert into public.listing values ('A', '9')`;
    await applyDelta(daemon, DELTA);
    await expectAppliedAround('SQLSTATE 55P03, by the lock of another session');
    expect(await pricesOf(sql, 'A')).toEqual({ 8: null, 9: null });
  });
  await daemon.end();
});

test('of many removed SKUs, only those keep prices that a foreign key refers to', async () => {
  const { sql } = store;
  const names = Array.from({ length: 300 }, (_, n) => `R${String(n).padStart(3, '0')}`);
  const kept = names.filter((_, n) => n % 97 === 5);
  await standing(store, ...names.map((sku) => line(sku)));
  await answerAsked(sql, ...names.map((sku) => found(sku, { 9: 90 })));
  await sql`update catalog_internal.sync set snapshot_id = 's1'`;
  await using _ = await sellers(`${LISTING})`, DROP_LISTING);
  await sql`insert into public.listing select sku, '9' from unnest(${kept}::text[]) sku`;
  await applyDelta(sql, { ...DELTA, changed: [], removed: names });
  expect((await quarantined()).map(({ sku }) => sku as string)).toEqual(kept);
  expect((await sql`select sku from catalog.prices order by sku`).map(({ sku }) => sku as string)).toEqual(
    kept,
  );
  expect(await token()).toBe('s2');
});

test('a rejection of anything else in a delta fails it: nothing is applied, and the token stays', async () => {
  await priced();
  await using _ = await sellers(
    `alter table catalog.skus add constraint no_live check (price_source is distinct from 'live')`,
    'alter table catalog.skus drop constraint no_live',
  );
  await expect(applyDelta(store.sql, { ...DELTA, nowLive: ['C'] })).rejects.toMatchObject({ code: '23514' });
  expect(await token()).toBe('s1');
  expect(await quarantined()).toEqual([]);
});

test("a seller's open transaction with a foreign key to a SKU blocks no delta, refresh or manifest", async () => {
  const { sql } = store;
  await priced();
  await using _ = await sellers(
    'create table public.stock (sku text references catalog.skus)',
    'drop table public.stock',
  );
  const daemon = connect(store.url, { max: 1 });
  await daemon`set lock_timeout = '200ms'`;
  await sql.begin(async (seller) => {
    await seller`insert into public.stock select sku from catalog.skus`;
    await applyDelta(daemon, DELTA);
    await refreshSkus(daemon, ['B', 'C', 'D']);
    await baseline(store.url, [line('A'), line('C', { hash: 'other' }), line('E')]);
  });
  await daemon.end();
  expect(await sql`select sku from catalog.skus where in_manifest order by sku`).toEqual(
    ['A', 'C', 'E'].map((sku) => ({ sku })),
  );
});
