import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { REFRESHES_CAME, takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { some } from '../support/soak.ts';
import { hasEnded, outcome, requested, taken } from './refreshing.ts';
import { answerAsked, found, knownSkus, mark, useStore } from './support.ts';

const store = useStore();

async function priced(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await answerAsked(store.sql, ...skus.map((sku) => found(sku, { 8: 80 })));
}

/** Opens a seller's single session, whose transactions have this isolation level by default. */
function sellerWith(isolation: string) {
  const seller = postgres(store.url, { max: 1, onnotice: () => {}, connection: { options: isolation } });
  onTestFinished(() => seller.end({ timeout: 1 }));
  return seller;
}

const LEVELS = ['read uncommitted', 'read committed', 'repeatable read', 'serializable'];

describe.each(some(LEVELS, 1))('sessions whose transactions are %s', (level) => {
  const isolation = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`;

  test('wait in catalog.refresh_now side by side, and each learns of its answer', async () => {
    const { sql } = store;
    const skus = Array.from({ length: 12 }, (_, i) => `S${i}`);
    await priced(...skus);
    const sellers = skus.map(() => sellerWith(isolation));
    const levels = await Promise.all(sellers.map((seller) => seller`show default_transaction_isolation`));
    expect(levels.map(([row]) => row?.['default_transaction_isolation'])).toEqual(skus.map(() => level));
    const calls = sellers.map((seller, i) =>
      outcome(seller`call catalog.refresh_now(array[${skus[i] ?? ''}], '30 s')`),
    );
    let ended: string | null = null;
    for (const call of calls) void call.then((how) => (ended ??= how));
    await eventually(async () => {
      if (ended !== null) throw new Error(`one has ended too early: ${ended}`);
      const waiting = await sql`select from catalog_internal.refresh_places where pid is not null`;
      expect(waiting).toHaveLength(skus.length);
      expect(await requested(sql)).toHaveLength(skus.length);
    });
    // Each must renew its place after this.
    await sql`update catalog_internal.refresh_places set until = until - interval '3 s' where pid is not null`;
    await eventually(async () => {
      const early = await sql`
        select from catalog_internal.refresh_places where pid is not null and until < clock_timestamp() + interval '7 s'`;
      expect(early).toHaveLength(0);
    });
    const came = sql.unsafe<[{ came: boolean }]>(`select ${REFRESHES_CAME} as came`);
    expect([...(await came)]).toEqual([{ came: true }]);
    await takeRefreshes(sql);
    await answerAsked(sql, ...skus.map((sku) => found(sku)));
    expect(await Promise.all(calls)).toEqual(skus.map(() => 'done'));
  });

  test('cannot wait inside a transaction, and are told so', async () => {
    await priced('A');
    const seller = sellerWith(isolation);
    const within = seller.begin((tx) => tx`call catalog.refresh_now(array['A'], '1 s')`);
    expect(await outcome(within)).toMatch(/^25001 \| catalog\.refresh_now cannot wait inside/);
    expect(await requested(store.sql)).toEqual([]);
  });
});

test('serializable transactions hint and ask for SKUs side by side, and none fails because of another', async () => {
  const { sql } = store;
  const skus = ['A', 'B', 'C', 'D'];
  await priced(...skus);
  const isolation = String.raw`-c default_transaction_isolation=serializable`;
  const all = Promise.withResolvers<null>();
  let open = 0;
  const ends = skus.map((sku) =>
    sellerWith(isolation).begin(async (tx) => {
      const said =
        await tx`select catalog.hint(${sku}, 'orders') as hint, catalog.refresh(array[${sku}]) as refresh`;
      expect([...said]).toEqual([{ hint: true, refresh: 1 }]);
      open += 1;
      if (open === skus.length) all.resolve(null);
      await all.promise;
    }),
  );
  // If one fails, the others must fail too, rather than wait for it.
  for (const end of ends) end.catch((error: unknown) => all.reject(error));
  await Promise.all(ends);
  expect(await requested(sql)).toEqual(skus);
  expect(await sql`select from catalog_internal.hints`).toHaveLength(skus.length);
});

test('serializable transactions make promises side by side without failing each other, and get warnings', async () => {
  const { sql } = store;
  const skus = ['A', 'B', 'C', 'D'];
  await priced(...skus, 'E');
  await sql`insert into catalog.watchlist (sku, max_age) values ('E', '1 hour')`;
  const all = Promise.withResolvers<null>();
  let open = 0;
  const warnings: string[] = [];
  const ends = skus.map(async (sku) => {
    const seller = postgres(store.url, {
      max: 1,
      onnotice: ({ message }) => warnings.push(String(message)),
      connection: { options: String.raw`-c default_transaction_isolation=serializable` },
    });
    onTestFinished(() => seller.end({ timeout: 1 }));
    await seller.begin(async (tx) => {
      await tx`insert into catalog.watchlist (sku, max_age) values (${sku}, '1 hour')`;
      await tx`update catalog.watchlist set max_age = '2 hours' where sku = ${sku}`;
      open += 1;
      if (open === skus.length) all.resolve(null);
      await all.promise;
    });
  });
  for (const end of ends) end.catch((error: unknown) => all.reject(error));
  await Promise.all(ends);
  expect(await sql`select from catalog.watchlist`).toHaveLength(5);
  // What it asks for, together with what the mirror has read of others, exceeds the capacity.
  await sql`insert into catalog_internal.watched (sku, weight, max_age) select 'W' || n, 1, 30 from generate_series(1, 5000) n`;
  warnings.length = 0;
  const seller = postgres(store.url, { max: 1, onnotice: ({ message }) => warnings.push(String(message)) });
  onTestFinished(() => seller.end({ timeout: 1 }));
  await seller.begin('isolation level serializable', async (tx) => {
    await tx`insert into catalog.watchlist (sku, max_age) values ('F', '30 s')`;
  });
  expect(warnings.join()).toMatch(/of 5001 are not kept/);
});

describe('a SKU whose ledger row is deleted while somebody waits for it', () => {
  const now = (timeout: string) =>
    outcome(store.sql`call catalog.refresh_now(array['A'], ${timeout}::text::interval)`);
  const deleteRow = () => store.sql`delete from catalog_internal.due where sku = 'A'`;

  test('is not answered by that', async () => {
    await priced('A');
    const call = now('2 s');
    await taken(store.sql, 'A');
    await deleteRow();
    expect(await call).toMatch(/^CM003 \| 0 of 1 SKUs .* \| Not answered: A \(due\)$/);
  });

  test('is answered once its row is restored and receives an answer', async () => {
    const { sql } = store;
    await priced('A');
    // A generation far from that of a new row.
    for (let marks = 0; marks < 5; marks += 1) await mark(sql, ['A']);
    const call = now('30 s');
    await taken(sql, 'A');
    await deleteRow();
    const [ticks] = await sql<[{ began: string }]>`select clock_timestamp()::text as began`;
    await eventually(async () => {
      const [row] = await sql`
        select from pg_stat_activity
        where datname = current_database() and query like 'call catalog.refresh_now%' and xact_start > ${ticks.began}::text::timestamptz + interval '0.1 s'`;
      expect(row).toBeDefined();
    });
    expect(await hasEnded(call)).toBe(false);
    await answerAsked(sql, found('A'));
    expect(await call).toBe('done');
  });

  test('is not waited for if the catalog no longer contains it', async () => {
    const { sql } = store;
    await priced('A');
    const call = now('60 s');
    await taken(sql, 'A');
    const began = Date.now();
    await sql`delete from catalog.skus where sku = 'A'`;
    await deleteRow();
    expect(await call).toMatch(/^CM003 \| 0 of 1 .* \| Not answered: A \(not in the catalog any longer\)$/);
    expect(Date.now() - began).toBeLessThan(30_000);
  });
});
