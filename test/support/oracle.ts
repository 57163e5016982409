import { expect } from 'vitest';
import type { TruthRow, World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { differencesOf } from './differences.ts';

/** Expects the whole mirror to equal the partner's truth (differencesOf). */
export async function expectMirrorIsTrue(sql: Sql, world: World): Promise<void> {
  const differing = await differencesOf(sql, world);
  expect({ differing: differing.length, shown: differing.slice(0, 5) }).toEqual({ differing: 0, shown: [] });
  expect([...(await unevenRefreshes(sql))], 'a record brings prices and metadata alike').toEqual([]);
}

/** What metadata_age_seconds relies on: the metadata of a priced SKU is as old as its prices. */
const unevenRefreshes = (sql: Sql) => sql`
  select sku, priced_at, refreshed_at from catalog.skus join catalog.products using (sku)
  where state = 'priced' and priced_at <> refreshed_at`;

/** Decides whether the delta reports every move of a SKU: not of live prices, nor of what no manifest lists. */
export const isReported = ({ listed, priceSource }: TruthRow): boolean =>
  listed && priceSource === 'snapshot';

/**
 * Expects that if the token is the newest, whatever differs from the partner is due: the cursor is not ahead of
 * the work. `ofPrices`: the SKUs for which this includes prices.
 */
export async function expectCursorNotAhead(
  sql: Sql,
  world: World,
  ofPrices: (row: TruthRow) => boolean = () => true,
): Promise<void> {
  // A single statement, because a baseline may be committed at any moment.
  const [sync] = await sql<[{ token: string | null; skus: number }]>`
    select snapshot_id as token, (select count(*) from catalog.skus)::int as skus from catalog_internal.sync`;
  if (sync.token === null) expect(sync.skus, 'lines without their token').toBe(0);
  if (sync.token !== world.newestSnapshot()) return;
  const rows = await sql<{ sku: string; listed: boolean; source: string; prices: object; owed: boolean }[]>`
    select s.sku, in_manifest as listed, price_source as source, d.due_at <= now() as owed,
      coalesce((select jsonb_object_agg(size, price) from catalog.prices p where p.sku = s.sku), '{}') as prices
    from catalog.skus s join catalog_internal.due d using (sku)`;
  const mirror = new Map(rows.map((row) => [row.sku, row]));
  const ordered = (prices: object) =>
    JSON.stringify(Object.entries(prices).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const lost = [...world.truth().values()].filter((row) => {
    const { sku, listed, priceSource, sizeMap } = row;
    const mine = mirror.get(sku);
    if (mine === undefined) return listed;
    if (mine.listed !== listed || (listed && mine.source !== priceSource)) return true;
    return ofPrices(row) && !mine.owed && ordered(mine.prices) !== ordered(sizeMap);
  });
  expect(lost.slice(0, 3)).toEqual([]);
}

/**
 * Expects each price's history to be a chain: every move starts where the previous one ended, and the last ends at
 * the current price.
 */
export async function expectHistoryIsAChain(sql: Sql): Promise<void> {
  const broken = await sql`
    select * from (
      select h.*, lag(new_price) over w as before, row_number() over w as nth,
        row_number() over (partition by sku, size order by id desc) = 1 as is_last,
        (select price from catalog.prices p where p.sku = h.sku and p.size = h.size) as present
      from catalog.price_history h window w as (partition by sku, size order by id)
    ) chain
    where old_price is not distinct from new_price or nth > 1 and old_price is distinct from before
      or is_last and new_price is distinct from present`;
  expect([...broken]).toEqual([]);
}
