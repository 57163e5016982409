import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { forgetUnknown } from '../../src/store/sellers/watchlist.ts';
import { baseline, line, standing } from './manifest.ts';
import { askedFor, onlyScope, standings } from './scoping.ts';
import { answerAsked, claimAll, followWatchlist, found, HOUR, ledger, REFRESH, useStore } from './support.ts';
import { dueNow, watch } from './watching.ts';

const store = useStore();

describe('a SKU that is neither listed nor watched, and that never had a price,', () => {
  const known = async () =>
    (await store.sql`select sku from catalog.skus order by sku`).map(({ sku }) => sku as string);
  const later = () => store.sql`update catalog.skus set asked_at = asked_at - interval '2 hours'`;

  test('is forgotten at once if never requested, an hour after it was unknown, or after a day of errors', async () => {
    const { sql } = store;
    await standing(store, line('listed'), line('sold out'));
    await watch(sql, 'unknown', 'priced', 'kept', 'fails', 'was priced');
    await answerAsked(
      sql,
      found('priced', { 9: 90 }),
      { sku: 'was priced', kind: 'not_found' },
      { sku: 'unknown', kind: 'not_found' },
      { sku: 'kept', kind: 'not_found' },
      { sku: 'sold out', kind: 'not_found' },
      { sku: 'fails', kind: 'error', waitMs: HOUR },
      { sku: 'listed', kind: 'error', waitMs: HOUR },
    );
    await sql`update catalog.skus set first_priced_at = now() - interval '1 year' where sku = 'was priced'`;
    await sql`update catalog.skus set state = 'pending', first_priced_at = null where sku = 'listed'`;
    await watch(sql, 'unasked');
    await followWatchlist(sql);
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 0, rejected: null });
    await sql`delete from catalog.watchlist where sku <> 'kept'`;
    await followWatchlist(sql);
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 1, rejected: null });
    expect(await known()).toEqual(['fails', 'kept', 'listed', 'priced', 'sold out', 'unknown', 'was priced']);
    await later();
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 1, rejected: null });
    await sql`update catalog.skus set first_seen_at = now() - interval '25 hours'`;
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 1, rejected: null });
    expect(await known()).toEqual(['kept', 'listed', 'priced', 'sold out', 'was priced']);
    expect([...(await ledger(sql)).keys()].toSorted()).toEqual(await known());
    await watch(sql, 'unknown');
    expect(await dueNow(sql)).toContain('unknown watched 1');
  });

  test('is kept for a day if a rejected line has named it and answers are errors', async () => {
    const { sql, url } = store;
    await baseline(url, [line('listed')], { rejected: ['in a broken line'] });
    await answerAsked(sql, { sku: 'in a broken line', kind: 'error', waitMs: HOUR });
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 0, rejected: null });
    await sql`update catalog.skus set first_seen_at = now() - interval '25 hours'`;
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 1, rejected: null });
    expect(await known()).toEqual(['listed']);
  });

  test('is kept while it is being requested, and while somebody’s refresh of it is due', async () => {
    const { sql } = store;
    await watch(sql, 'A', 'B');
    const claim = await claimAll(sql);
    expect(claim.skus).toHaveLength(2);
    await sql`truncate catalog.watchlist`;
    await followWatchlist(sql);
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 0, rejected: null });
    await applyAnswer(
      sql,
      claim,
      [
        { sku: 'A', kind: 'not_found' },
        { sku: 'B', kind: 'not_found' },
      ],
      REFRESH,
    );
    await later();
    await refreshSkus(sql, ['B']);
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 1, rejected: null });
    expect(await known()).toEqual(['B']);
  });

  test('is kept until requested if a rule needs its metadata, but not if only a former watch did', async () => {
    const { sql, url } = store;
    await onlyScope(sql, ['brand', 'Nike']);
    await baseline(url, [line('listed')], { rejected: ['in a broken line', 'in one, and watched'] });
    await refreshSkus(sql, ['named', 'named, and watched']);
    await watch(sql, 'watched', 'watched still', 'in one, and watched', 'named, and watched', 'asked for');
    await followWatchlist(sql);
    await sql`update catalog_internal.due set claim = nextval('catalog_internal.claim_numbers'), held_until = now() where sku = 'asked for'`;
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 0, rejected: null });
    await sql`delete from catalog.watchlist where sku <> 'watched still'`;
    await followWatchlist(sql);
    expect(await standings(sql)).toMatchObject({ watched: 'out', 'watched still': 'asked', named: 'asked' });
    await sql`update catalog_internal.due set claim = null, held_until = null`;
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 1, rejected: null });
    const kept = [
      'asked for',
      'in a broken line',
      'in one, and watched',
      'listed',
      'named',
      'named, and watched',
      'watched still',
    ];
    expect(await known()).toEqual(kept);
    expect(await askedFor(sql)).toEqual(kept);
    await answerAsked(sql, ...kept.map((sku) => ({ sku, kind: 'not_found' as const })));
    await later();
    expect(await forgetUnknown(sql, 100)).toEqual({ forgotten: 5, rejected: null });
    expect(await known()).toEqual(['listed', 'watched still']);
  });

  test(
    'leaves nothing behind, even if 20,000 are inserted and deleted after there were few for long',
    {
      timeout: 120_000,
    },
    async () => {
      const { sql } = store;
      // From the sixth time on, Postgres keeps a plan.
      for (let times = 0; times < 6; times += 1) {
        await watch(sql, 'one');
        await followWatchlist(sql);
        await sql`delete from catalog.watchlist`;
        await followWatchlist(sql);
        expect(await forgetUnknown(sql, 15_000)).toEqual({ forgotten: 1, rejected: null });
      }
      await sql`insert into catalog.watchlist (sku) select 'made up ' || n from generate_series(1, 20000) n`;
      await followWatchlist(sql);
      await sql`delete from catalog.watchlist`;
      await followWatchlist(sql);
      expect(await forgetUnknown(sql, 15_000)).toEqual({ forgotten: 15_000, rejected: null });
      expect(await forgetUnknown(sql, 15_000)).toEqual({ forgotten: 5000, rejected: null });
      const [left] =
        await sql`select (select count(*)::int from catalog.skus) + (select count(*)::int from catalog_internal.due)
      + (select count(*)::int from catalog_internal.watched) as rows`;
      expect(left).toEqual({ rows: 0 });
    },
  );
});
