import { expect } from 'vitest';
import type { TruthRow, World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { differencesOf } from './differences.ts';

/** The whole mirror is as the partner has it (differencesOf). */
export async function expectMirrorIsTrue(sql: Sql, world: World): Promise<void> {
  const differing = await differencesOf(sql, world);
  expect({ differing: differing.length, shown: differing.slice(0, 5) }).toEqual({ differing: 0, shown: [] });
  expect([...(await unevenRefreshes(sql))], 'a record brings prices and metadata alike').toEqual([]);
}

/** What metadata_age_seconds goes by: the metadata of a priced SKU is as old as its prices. */
const unevenRefreshes = (sql: Sql) => sql`
  select sku, priced_at, refreshed_at from catalog.skus join catalog.products using (sku)
  where state = 'priced' and priced_at <> refreshed_at`;

/** What the delta tells of every move of: of live prices, and of what no manifest lists, nobody does. */
export const isReported = ({ listed, priceSource }: TruthRow): boolean =>
  listed && priceSource === 'snapshot';

/**
 * Where the token is the newest, whatever is not as the partner has it must be due: the cursor is not ahead of the
 * work. `ofPrices`: of which SKUs this holds for prices, too.
 */
export async function expectCursorNotAhead(
  sql: Sql,
  world: World,
  ofPrices: (row: TruthRow) => boolean = () => true,
): Promise<void> {
  // One statement: a baseline may be committed at any moment.
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
 * Each price's history is a chain: every move begins where the one before ended, and the last ends at the present
 * price.
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
