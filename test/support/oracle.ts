import { expect } from 'vitest';
import { METADATA } from '../../src/declared/metadata.ts';
import type { TruthRow, World } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/db.ts';

/** One SKU as truth and mirror are compared: everything a seller can read of it but times. */
interface Seen {
  readonly state: string;
  readonly listed: boolean;
  readonly priceSource: string | null;
  readonly prices: Record<string, number | null>;
  readonly sizeType: string | null;
  readonly product: Record<string, string> | null;
}

/** What the mirror should hold of a SKU. A SKU that is gone keeps its metadata, which is not compared then. */
function expected(truth: TruthRow): Seen {
  const record = truth.answer === 'record';
  return {
    state: record ? 'priced' : truth.listed ? 'not_found' : 'gone',
    listed: truth.listed,
    priceSource: truth.listed ? truth.priceSource : null,
    prices: record ? truth.sizeMap : {},
    sizeType: record ? truth.sizeType : null,
    product: record ? { ...truth.product } : null,
  };
}

const DOCUMENTED = Object.values(METADATA).flatMap(([part, member]): string[] =>
  part === 'product' ? [member] : [],
);

/** The members of a product that the partner documents; the mirror keeps others too. */
function documented(product: Record<string, string> | undefined): Record<string, string> | null {
  if (product === undefined) return null;
  return Object.fromEntries(Object.entries(product).filter(([field]) => DOCUMENTED.includes(field)));
}

async function mirrored(sql: Sql): Promise<Map<string, Seen>> {
  const skus = await sql<{ sku: string; state: string; in_manifest: boolean; price_source: string | null }[]>`
    select sku, state, in_manifest, price_source from catalog.skus`;
  const prices = await sql<
    { sku: string; size: string; price: number | null }[]
  >`select sku, size, price from catalog.prices`;
  const products = await sql<{ sku: string; size_map_size_type: string; product: Record<string, string> }[]>`
    select sku, size_map_size_type, product from catalog.products`;
  const pricesOf = Map.groupBy(prices, ({ sku }) => sku);
  const productOf = new Map(products.map((row) => [row.sku, row]));
  return new Map(
    skus.map(({ sku, state, in_manifest, price_source }) => {
      const priced = state === 'priced';
      const gone = !in_manifest && (state === 'removed' || state === 'not_found');
      return [
        sku,
        {
          state: gone ? 'gone' : state,
          listed: in_manifest,
          priceSource: in_manifest ? price_source : null,
          prices: Object.fromEntries((pricesOf.get(sku) ?? []).map(({ size, price }) => [size, price])),
          sizeType: priced ? (productOf.get(sku)?.size_map_size_type ?? null) : null,
          product: priced ? documented(productOf.get(sku)?.product) : null,
        },
      ];
    }),
  );
}

/**
 * The whole mirror against the sandbox's truth: every SKU the catalog lists, and every SKU the mirror has ever heard of
 * (unlisted SKUs that it never heard of are none of its business).
 */
export async function expectMirrorIsTrue(sql: Sql, world: World): Promise<void> {
  const truth = world.truth();
  const mirror = await mirrored(sql);
  const wanted = new Map<string, Seen>();
  for (const [sku, row] of truth) if (row.listed || mirror.has(sku)) wanted.set(sku, expected(row));
  const differing = [...new Set([...wanted.keys(), ...mirror.keys()])].filter(
    (sku) => stable(wanted.get(sku)) !== stable(mirror.get(sku)),
  );
  const shown = differing
    .slice(0, 5)
    .map((sku) => ({ sku, truth: wanted.get(sku), mirror: mirror.get(sku) }));
  expect({ differing: differing.length, shown }).toEqual({ differing: 0, shown: [] });
  expect([...(await unevenRefreshes(sql))], 'a record brings prices and metadata alike').toEqual([]);
}

/** What metadata_age_seconds goes by: the metadata of a priced SKU is as old as its prices. */
const unevenRefreshes = (sql: Sql) => sql`
  select sku, priced_at, refreshed_at from catalog.skus join catalog.products using (sku)
  where state = 'priced' and priced_at <> refreshed_at`;

/** Objects as text, keys in order, own `__proto__` included. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))
      : inner,
  );
}

/** Where the token is the newest, whatever is not as the partner has it must be due: the cursor is not ahead of the work. */
export async function expectCursorNotAhead(sql: Sql, world: World): Promise<void> {
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
  const lost = [...world.truth().values()].filter(({ sku, listed, priceSource, sizeMap }) => {
    const mine = mirror.get(sku);
    if (mine === undefined) return listed;
    if (mine.listed !== listed || (listed && mine.source !== priceSource)) return true;
    return !mine.owed && ordered(mine.prices) !== ordered(sizeMap);
  });
  expect(lost.slice(0, 3)).toEqual([]);
}

/** Each price's history is a chain: every move begins where the one before ended, and the last ends at the present price. */
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
