import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { runs } from '../support/soak.ts';

/*
 * Sellers join the views with a few rows of their own. Postgres orders at most eight relations freely
 * (join_collapse_limit); beyond that it plans a view separately, and reads the whole mirror for two rows.
 */

const SKUS = 30_000;
/** Relations of the mirror that grow with the catalog. `live_rates` has few rows here. */
const LARGE = new Set(['skus', 'prices', 'products', 'due']);

/** Filled once, for all tests. */
let database: TestDatabase;
let sql: Sql;
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});
beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
  await sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, priced_at, asked_at, first_priced_at)
    select 'S' || n, 'priced', case when n % 20 = 0 then 'live' else 'snapshot' end, true, now(), now(), now()
    from generate_series(1, ${SKUS}) n`;
  await sql`
    insert into catalog.prices (sku, size, price, changed_at)
    select sku, size, 1000, now() from catalog.skus, unnest(array['41', '42', '43']) size`;
  await sql`
    insert into catalog.products (sku, brand, model, product, refreshed_at, changed_at)
    select sku, 'Brand', 'Model', '{}', now(), now() from catalog.skus`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation)
    select sku, 6, 'sweep', false, now() + interval '1 day', 1 from catalog.skus`;
  await sql.unsafe(`
    update catalog_internal.sync set snapshot_id = 's', manifest_applied_at = now(), delta_checked_at = now();
    create table public.offers (sku text, size text, ask integer);
    insert into public.offers values ('S7', '42', 900), ('S8', '43', 1100), ('none', '42', 1000);
    create table public.listings (sku varchar(40), size varchar(10), title text);
    insert into public.listings values ('S7', '42', 'a'), ('S9', '43', 'b');
    analyze`);
});

/** Returns the names of the large relations that a statement reads completely. */
async function readWhole(statement: string, ordered = 8): Promise<string[]> {
  interface Node {
    readonly 'Node Type': string;
    readonly 'Relation Name'?: string;
    readonly Plans?: readonly Node[];
  }
  const [row] = await sql.begin(async (tx) => {
    await tx.unsafe(`set local join_collapse_limit = ${ordered}; set local from_collapse_limit = ${ordered}`);
    return await tx.unsafe<[{ 'QUERY PLAN': [{ Plan: Node }] }]>(`explain (format json) ${statement}`);
  });
  const whole = ({ 'Node Type': type, 'Relation Name': name = '', Plans: below = [] }: Node): string[] => [
    ...(type === 'Seq Scan' && LARGE.has(name) ? [name] : []),
    ...below.flatMap(whole),
  ];
  return whole(row['QUERY PLAN'][0].Plan);
}

const join = fc.constantFrom('join', 'left join');
const filter = fc.constantFrom(
  'true',
  'c.actionable',
  'c.actionable and c.price < o.ask',
  "c.brand = 'Brand'",
);

/** Ways to ask for the prices of the seller's own offers, with or without another table beside them. */
const ofPrices = fc.oneof(
  fc
    .record({ join, filter, beside: fc.constantFrom('', 'join public.listings l on l.sku = o.sku') })
    .map(
      ({ join: how, filter: where, beside }) =>
        `select * from public.offers o ${beside} ${how} catalog.current_prices c on c.sku = o.sku and c.size = o.size where ${where}`,
    ),
  filter.map(
    (where) => `select * from public.offers o, catalog.current_prices c where c.sku = o.sku and ${where}`,
  ),
  filter.map(
    (where) =>
      `select * from catalog.current_prices c join public.offers o using (sku, size) where ${where} order by o.ask - c.price limit 20`,
  ),
  filter.map(
    (where) =>
      `select * from public.offers o where exists (select from catalog.current_prices c where c.sku = o.sku and ${where})`,
  ),
  fc.constantFrom(
    'select * from catalog.current_prices where sku in (select sku from public.offers)',
    'select * from catalog.current_prices where sku = any (array(select sku from public.offers))',
    'select o.sku, m.price from public.offers o cross join lateral (select * from catalog.current_prices c where c.sku = o.sku order by c.price limit 1) m',
    'select distinct on (c.sku) c.sku, c.price from catalog.current_prices c join public.offers o using (sku) order by c.sku, c.price',
    "select * from catalog.movers('1 hour', 50) m join catalog.current_prices c using (sku, size)",
    "select * from catalog.current_prices where sku in (select sku from catalog.skus where sku > 'S2' order by sku limit 20) order by sku, size",
    'update public.offers o set ask = c.price from catalog.current_prices c where c.sku = o.sku and c.size = o.size and c.actionable',
  ),
);

const ofTrust = fc
  .record({
    join,
    beside: fc.constantFrom(
      '',
      'join public.listings l on l.sku = o.sku',
      'join public.listings l using (sku) join public.offers p using (sku)',
    ),
    where: fc.constantFrom('true', 't.actionable', 't.doubt is null', 'not t.stale'),
  })
  .map(
    ({ join: how, beside, where }) =>
      `select * from public.offers o ${beside} ${how} catalog.sku_trust t on t.sku = o.sku where ${where}`,
  );

describe('a few rows of the seller', () => {
  test.each([
    ['their prices', ofPrices],
    ['how far to trust them', ofTrust],
  ])('are where a statement begins: %s', async (_, statements) => {
    await fc.assert(
      fc.asyncProperty(statements, async (statement) => {
        expect(await readWhole(statement)).toEqual([]);
      }),
      { numRuns: runs(25) },
    );
  });

  test('are where a statement of more relations begins if Postgres may order them', async () => {
    const statement = `
      select * from public.offers o join public.listings l using (sku) join public.offers p using (sku)
      join catalog.current_prices c using (sku) join catalog.sku_trust t using (sku)`;
    expect(await readWhole(statement)).not.toEqual([]);
    expect(await readWhole(statement, 16)).toEqual([]);
  });
});
