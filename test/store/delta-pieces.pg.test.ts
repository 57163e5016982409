import { expect, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { knownSkus, useStore } from './support.ts';

const store = useStore();

const REMOVED = Array.from({ length: 12_000 }, (_, n) => `R${String(n).padStart(5, '0')}`);
const CHANGED = Array.from({ length: 7000 }, (_, n) => `C${String(n).padStart(5, '0')}`);

async function large(): Promise<void> {
  await store.sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now()`;
  await knownSkus(store.sql, [...REMOVED, ...CHANGED]);
  await store.sql`
      insert into catalog.prices (sku, size, price, changed_at)
      select sku, size, 100, now() from unnest(${REMOVED}::text[]) sku, unnest(array['8', '9', '10']) size`;
}

/** Returns what the delta leaves behind, apart from times and positions. */
async function standing() {
  const [row] = await store.sql`
      select (select snapshot_id from catalog_internal.sync) as token,
        (select count(*)::int from catalog.skus where state = 'removed' and not in_manifest) as removed,
        (select count(*)::int from catalog.skus where price_source = 'live') as live,
        (select count(*)::int from catalog.prices) as prices,
        (select count(*)::int from catalog.price_history where old_price = 100 and new_price is null) as history,
        (select count(*)::int from catalog_internal.due where reason = 'removed') as asked,
        (select count(*)::int from catalog_internal.due where reason in ('changed', 'new')) as marked`;
  return row;
}

/** Does something in the transaction of the second piece that removes SKUs. */
async function onSecondPiece(statement: string, work: () => Promise<void>): Promise<void> {
  await store.sql.unsafe(`
      create function public.on_piece() returns trigger language plpgsql as $$ begin
        if (select count(*) from catalog.price_history) > 15000 then ${statement}; end if;
        return null;
      end $$;
      create trigger on_piece after insert on catalog.price_history for each statement execute function public.on_piece()`);
  try {
    await work();
  } finally {
    await store.sql.unsafe('drop trigger on_piece on catalog.price_history; drop function public.on_piece()');
  }
}

const AFTER = {
  token: 's2',
  removed: 12_000,
  live: 500,
  prices: 0,
  history: 36_000,
  asked: 11_999,
  marked: 7001,
};
const WHOLE = {
  since: 's1',
  toSnapshot: 's2',
  changed: [...CHANGED, 'R00001'],
  nowLive: CHANGED.slice(1, 501),
  removed: [...REMOVED, 'C00000'],
};

test('a delta too large for one transaction is applied in pieces, and the token moves with the last', async () => {
  await large();
  const applied = await applyDelta(store.sql, WHOLE);
  expect(applied).toMatchObject({ applied: true, marked: 19_002, removed: 12_001, crossedToLive: 500 });
  expect(await standing()).toEqual({ ...AFTER, removed: 12_001 });
});

test('a delta that fails between two pieces has not moved the token, and is applied again', async () => {
  await large();
  await onSecondPiece("raise exception 'made to fail' using errcode = 'query_canceled'", async () => {
    await expect(applyDelta(store.sql, WHOLE)).rejects.toThrow('made to fail');
  });
  expect(await standing()).toMatchObject({ token: 's1', prices: 21_000, history: 15_000 });
  await applyDelta(store.sql, WHOLE);
  expect(await standing()).toEqual({ ...AFTER, removed: 12_001 });
});

test('a delta is given up if another daemon moves the token in between', async () => {
  await large();
  await onSecondPiece("update catalog_internal.sync set snapshot_id = 'theirs'", async () => {
    expect(await applyDelta(store.sql, WHOLE)).toMatchObject({ applied: false });
  });
  expect(await standing()).toMatchObject({ token: 'theirs', history: 30_000 });
});

test('a delta whose pool switches to another server with the same token moves the token of neither', async () => {
  const servers = [await createDatabase('migrated'), await createDatabase('migrated')];
  const both = servers.map(({ url }) => connect(url, { max: 1 })) as [Sql, Sql];
  for (const sql of both)
    await sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now()`;
  let begun = 0;
  // The pool of a host name that was switched while the former server kept running.
  const pool = { begin: (work: never) => both[(begun += 1) % 2 === 0 ? 0 : 1].begin(work) } as unknown as Sql;
  try {
    const applied = await applyDelta(pool, { ...WHOLE, changed: REMOVED, nowLive: [], removed: [] });
    expect(applied).toMatchObject({ applied: false });
    for (const sql of both)
      expect(await sql`select snapshot_id from catalog_internal.sync`).toEqual([{ snapshot_id: 's1' }]);
    // Requested again, from a pool that leads to one server only.
    await applyDelta(both[0], { ...WHOLE, changed: REMOVED, nowLive: [], removed: [] });
    expect(await both[0]`select count(*)::int as due from catalog_internal.due`).toEqual([{ due: 12_000 }]);
  } finally {
    for (const sql of both) await sql.end({ timeout: 2 });
    for (const server of servers) await server.drop();
  }
});

test('a first delta, without statistics in Postgres, is about as fast as one on analyzed tables', async () => {
  await store.sql`update catalog_internal.sync set snapshot_id = 's1'`;
  const take = async (name: string) => {
    const removed = Array.from({ length: 60_000 }, (_, n) => `${name}${n}`);
    const from = performance.now();
    await applyDelta(store.sql, { since: 's1', toSnapshot: 's1', changed: [], nowLive: [], removed });
    return performance.now() - from;
  };
  const first = await take('A');
  await store.sql`analyze`;
  const second = await take('B');
  // Comparing each row of the ledger with each SKU took 18 s, and the second delta 0.7 s.
  expect(first).toBeLessThan(Math.max(8000, 12 * second));
});
