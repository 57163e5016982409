import { describe, expect, test } from 'vitest';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { refreshAll } from '../../src/store/sellers/refresh.ts';
import { readLeftOut, readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { baseline, line, standing } from './manifest.ts';
import {
  callInputs,
  followWatchlist,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  answerAsked,
  mark,
  passHours,
  pricesOf,
  removeByDelta,
  stateOf,
  useStore,
} from './support.ts';
import { dueNow, watch } from './watching.ts';

const store = useStore();

describe('watching a SKU', () => {
  test('gets it refreshed next, whether or not the catalog lists it', async () => {
    const { sql } = store;
    await standing(store, line('known'), line('other'));
    await mark(sql, ['other']);
    await passHours(sql, 1);
    await sql`insert into catalog.watchlist (sku, weight, note) values ('known', 3, 'mine'), ('unlisted', 2, null)`;
    expect(await dueNow(store.sql)).toEqual(['known watched 3', 'other changed 1', 'unlisted watched 2']);
    const taken: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const quota = { lane: 'urgent', live: false, count: 1, earlySeconds: 0 } as const;
      taken.push((await claimDue(sql, { quotas: [quota] }, LEASE_MS))?.skus[0]?.sku ?? '');
    }
    expect(taken).toEqual(['known', 'unlisted', 'other']);
    const rows = await sql`select sku, in_manifest, state from catalog.skus where sku = 'unlisted'`;
    expect([...rows]).toEqual([{ sku: 'unlisted', in_manifest: false, state: 'pending' }]);
  });

  test('that the catalog does not list has it priced, and again by age', async () => {
    const { sql } = store;
    await standing(store, line('A'));
    await watch(store.sql, 'W');
    await answerAsked(sql, found('W', { 9: 90 }));
    expect(await pricesOf(sql, 'W')).toEqual({ 9: 90 });
    expect((await ledger(sql)).get('W')).toMatchObject({ reason: 'unlisted' });
    await passHours(sql, 21);
    await answerAsked(sql, found('W', { 9: 91 }));
    expect(await pricesOf(sql, 'W')).toEqual({ 9: 91 });
  });

  test('marks nothing when nothing is inserted, and nothing twice', async () => {
    const { sql } = store;
    await watch(store.sql, 'A');
    await sql`insert into catalog.watchlist (sku) values ('A') on conflict do nothing`;
    await sql`insert into catalog.watchlist (sku) select 'B' where false`;
    await sql`update catalog.watchlist set note = 'x'`;
    await sql`delete from catalog.watchlist where sku = 'none'`;
    expect([...(await ledger(sql)).values()]).toMatchObject([{ sku: 'A', generation: 1 }]);
    expect(await sql`select from catalog_internal.watch_changes`).toHaveLength(0);
  });

  test('in thousands of statements of one transaction marks each, at its commit', async () => {
    const { sql } = store;
    await watch(sql, 'first');
    const count = 3000;
    await sql.begin(async (tx) => {
      await tx.unsafe(`do $$ begin
        for n in 1 .. ${count} loop insert into catalog.watchlist (sku) values ('W' || n); end loop;
      end $$`);
      expect((await ledger(sql)).size).toBe(1);
    });
    expect((await ledger(sql)).size).toBe(count + 1);
  });

  test('before the first baseline has it priced, and the baseline lists it without losing that', async () => {
    const { sql } = store;
    await watch(store.sql, 'A', 'U');
    await answerAsked(sql, found('A', { 9: 90 }), found('U', { 9: 70 }));
    await baseline(store.url, [line('A')], { token: { generatedAt: new Date(Date.now() - HOUR) } });
    const rows = await sql`select sku, state, in_manifest, price_source from catalog.skus order by sku`;
    expect([...rows]).toEqual([
      { sku: 'A', state: 'priced', in_manifest: true, price_source: 'snapshot' },
      { sku: 'U', state: 'priced', in_manifest: false, price_source: null },
    ]);
    expect([await pricesOf(sql, 'A'), await pricesOf(sql, 'U')]).toEqual([{ 9: 90 }, { 9: 70 }]);
  });

  test.each([
    ["it's; drop table catalog.skus --"],
    ['back\\slash "quote" %_'],
    [' spaces around '],
    ['line\nbreak\ttab'],
    ['รองเท้า-👟'],
    ['__proto__'],
    ['a,b,{c}'],
    ['NULL'],
    ['x'.repeat(512)],
  ])('takes its name literally: %j', async (sku) => {
    const { sql } = store;
    await sql`insert into catalog.watchlist (sku, weight) values (${sku}, 2)`;
    expect(await dueNow(store.sql)).toEqual([`${sku} watched 2`]);
    await answerAsked(sql, found(sku, { 9: 90 }));
    expect(await pricesOf(sql, sku)).toEqual({ 9: 90 });
    await sql`update catalog.watchlist set weight = 3`;
    await sql`delete from catalog.watchlist`;
  });

  test.each([
    ['', 1, 'sku_has_1_to_512_characters'],
    ['x'.repeat(513), 1, 'sku_has_1_to_512_characters'],
    ['x'.repeat(10_000), 1, 'sku_has_1_to_512_characters'],
    ['A', 0, 'watchlist_weight'],
    ['A', -1, 'watchlist_weight'],
    ['A', Number.NaN, 'watchlist_weight'],
    ['A', Infinity, 'watchlist_weight'],
  ])('refuses what can be no SKU or no weight: %j %j', async (sku, weight, constraint) => {
    await expect(
      store.sql`insert into catalog.watchlist (sku, weight) values (${sku}, ${weight})`,
    ).rejects.toThrow(constraint);
  });

  test('by 20,000 rows in one statement marks each', async () => {
    const { sql } = store;
    await sql`insert into catalog.watchlist (sku, weight) select 'S' || n, 1 + n % 5 from generate_series(1, 20000) n`;
    await followWatchlist(sql);
    // Not joined: if autovacuum has just analyzed empty tables, Postgres would compare each row with each.
    const [row] = await sql`
      select count(*)::int as marked, count(distinct rank)::int as ranks, min(generation) as least, max(generation) as most,
        (select count(*)::int from catalog.skus) as known
      from catalog_internal.due where reason = 'watched' and lane = 1`;
    expect(row).toEqual({ marked: 20_000, ranks: 5, least: 1, most: 1, known: 20_000 });
    await sql`truncate catalog.watchlist`;
    await followWatchlist(sql);
    expect(await sql`select from catalog_internal.due where rank <> 1`).toHaveLength(0);
  });
});

describe('a watched SKU', () => {
  test('that is 0009 is not found, requested again in its time, and at once when watched anew', async () => {
    const { sql } = store;
    await watch(store.sql, 'G');
    await answerAsked(sql, { sku: 'G', kind: 'not_found' });
    expect(await stateOf(sql, 'G')).toMatchObject({ state: 'not_found' });
    expect((await ledger(sql)).get('G')?.dueIn).toBeCloseTo(40, 0);
    await sql`delete from catalog.watchlist`;
    await watch(store.sql, 'G');
    expect(await dueNow(store.sql)).toEqual(['G watched 1']);
    await answerAsked(sql, found('G', { 9: 90 }));
    expect(await stateOf(sql, 'G')).toMatchObject({ state: 'priced' });
  });

  test('that is removed is requested again in its time, because nothing else would show that it is back', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await watch(store.sql, 'A');
    for (const sku of ['A', 'B']) await removeByDelta(sql, sku);
    await answerAsked(sql, { sku: 'A', kind: 'not_found' }, { sku: 'B', kind: 'not_found' });
    expect((await ledger(sql)).get('A')?.dueIn).toBeCloseTo(40, 0);
    expect((await ledger(sql)).get('B')?.dueIn).toBe(Infinity);
    expect(await stateOf(sql, 'A')).toMatchObject({ state: 'removed' });
    await passHours(sql, 41);
    await answerAsked(sql, found('A', { 9: 95 }));
    expect(await stateOf(sql, 'A')).toMatchObject({ state: 'priced', removed: false });
    await watch(store.sql, 'B');
    expect(await dueNow(store.sql)).toEqual(['B watched 1']);
  });

  test('stays through baselines that do not list it, and a full refresh', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await watch(store.sql, 'A', 'U');
    await answerAsked(sql, found('A', { 9: 90 }), found('U', { 9: 70 }));
    for (const snapshotId of ['m2', 'm3']) {
      await baseline(store.url, [line('B')], { token: { snapshotId } });
      await answerAsked(sql, found('A', { 9: 90 }));
    }
    await refreshAll(sql, 'prices');
    expect((await dueNow(store.sql)).map((row) => row.split(' ')[0])).toEqual(['A', 'B', 'U']);
    expect(await sql`select sku from catalog.watchlist order by sku`).toEqual([{ sku: 'A' }, { sku: 'U' }]);
    expect([await pricesOf(sql, 'A'), await pricesOf(sql, 'U')]).toEqual([{ 9: 90 }, { 9: 70 }]);
  });

  test('keeps the wait of a deferral, and is due at once after an error', async () => {
    const { sql } = store;
    await knownSkus(sql, ['D', 'E']);
    await answerAsked(
      sql,
      { sku: 'D', kind: 'deferred', waitMs: HOUR },
      { sku: 'E', kind: 'error', waitMs: HOUR },
    );
    await watch(store.sql, 'D', 'E');
    const rows = await ledger(sql);
    expect(rows.get('D')?.heldFor).toBeCloseTo(1, 1);
    expect(rows.get('E')).toMatchObject({ heldFor: null, lane: 1 });
  });
});

describe('the list as a whole', () => {
  const readAll = (most = 100) => readWatchlist(store.sql, { most, everything: true });
  const watched = async () =>
    (await store.sql`select sku from catalog_internal.watched order by sku`).map(({ sku }) => sku as string);

  test('is compared with what is watched: replicated rows count, and deleted ones are forgotten', async () => {
    const { sql } = store;
    await watch(sql, 'B', 'C');
    await ledger(sql);
    // A replication worker fires no statement triggers.
    await sql`alter table catalog.watchlist disable trigger user`;
    await sql`insert into catalog.watchlist (sku, weight) values ('A', 5)`;
    await sql`update catalog.watchlist set weight = 7 where sku = 'B'`;
    await sql`delete from catalog.watchlist where sku = 'C'`;
    await sql`alter table catalog.watchlist enable trigger user`;
    await sql`alter table catalog.watchlist enable always trigger watch_added`;
    expect(await dueNow(sql)).toEqual(['B watched 1', 'C watched 1']);
    expect(await readAll()).toBe(true);
    expect(await dueNow(sql)).toEqual(['A watched 5', 'B watched 7', 'C watched 1']);
    expect(await watched()).toEqual(['A', 'B']);
    expect((await ledger(sql)).get('B')?.generation).toBe(1);
  });

  test('is watched up to its limit, by weight; the rest is left out until there is room', async () => {
    const { sql } = store;
    await sql`insert into catalog.watchlist (sku, weight) select 'S' || n, n from generate_series(1, 8) n`;
    await readAll(5);
    expect(await watched()).toEqual(['S4', 'S5', 'S6', 'S7', 'S8']);
    expect(await readLeftOut(sql)).toBe(3);
    expect((await dueNow(sql)).length).toBe(5);
    await sql`insert into catalog.watchlist (sku, weight) values ('great', 99)`;
    await readWatchlist(sql, { most: 5, everything: false });
    expect(await watched()).toHaveLength(5);
    await sql`delete from catalog.watchlist where sku in ('S4', 'S5')`;
    await readAll(5);
    expect(await watched()).toEqual(['S3', 'S6', 'S7', 'S8', 'great']);
    expect(await readLeftOut(sql)).toBe(2);
  });

  test('is copied to the ledger in pieces, and continues if a daemon has died between them', async () => {
    const { sql } = store;
    await sql`insert into catalog.watchlist (sku) select 'S' || n from generate_series(1, 5000) n`;
    await sql`select catalog_internal.read_watchlist(false, 10000)`;
    await sql`select catalog_internal.watched_to_ledger(2000)`;
    expect((await callInputs(sql)).watchlistMoved).toBe(true);
    expect((await ledger(sql)).size).toBe(5000);
    expect((await callInputs(sql)).watchlistMoved).toBe(false);
  });

  test('is not waited for if somebody else is reading it', async () => {
    const { sql } = store;
    await watch(sql, 'A');
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.watching for update`;
      expect(await readAll()).toBe(false);
    });
    expect(await readAll()).toBe(true);
  });
});

describe('between two readings of the list', () => {
  test('a SKU that is removed, added and removed again is not requested', async () => {
    const { sql } = store;
    await standing(store, line('A'));
    await watch(sql, 'A');
    await followWatchlist(sql);
    await answerAsked(sql, found('A', { 9: 90 }));
    const take = () => sql`delete from catalog.watchlist where sku = 'A'`;
    await take();
    await watch(sql, 'A');
    await take();
    await followWatchlist(sql);
    expect(await dueNow(sql)).toEqual([]);
  });

  test('a SKU whose weight changes before it is copied to the ledger is still requested', async () => {
    const { sql } = store;
    await standing(store, line('A'));
    await watch(sql, 'A');
    // A daemon that dies here has read the list, but copied nothing to the ledger.
    await sql`select catalog_internal.read_watchlist(false, 100)`;
    await sql`update catalog.watchlist set weight = 7`;
    await followWatchlist(sql);
    expect(await dueNow(sql)).toEqual(['A watched 7']);
  });
});
