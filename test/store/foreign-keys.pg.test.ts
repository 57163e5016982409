import { expect, test } from 'vitest';
import { connect } from '../../src/store/db.ts';
import { applyDelta } from '../../src/store/delta.ts';
import { refreshSkus } from '../../src/store/refresh.ts';
import { baseline, line, standing } from './manifest.ts';
import { answerAsked, found, useStore } from './support.ts';

const store = useStore();

/** What a seller has put upon tables of the mirror, until the end of the test. */
async function sellers(make: string, drop: string): Promise<AsyncDisposable> {
  await store.sql.unsafe(make);
  return { [Symbol.asyncDispose]: async () => void (await store.sql.unsafe(drop)) };
}

/** Two priced SKUs that a delta from `s1` to `s2` removes, and one that it reports. */
async function priced(): Promise<void> {
  await standing(store, line('A'), line('B'), line('C'));
  await answerAsked(store.sql, found('A', { 8: 80, 9: 90 }), found('B', { 9: 90 }), found('C', { 9: 90 }));
  await store.sql`update catalog_internal.sync set snapshot_id = 's1'`;
}

const DELTA = { since: 's1', toSnapshot: 's2', changed: ['C'], removed: ['A', 'B'], nowLive: [] };

test('an open transaction of a seller with a foreign key to a SKU holds up neither delta, refresh nor manifest', async () => {
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
