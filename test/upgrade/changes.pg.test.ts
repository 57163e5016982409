import { randomBytes } from 'node:crypto';
import { describe, type onTestFinished, test } from 'vitest';
import { dropOldHistory, writeChanges } from '../../src/store/changes.ts';
import { connect, migrateDatabase, type Sql } from '../../src/store/db.ts';
import { createDatabase } from '../support/db.ts';
import { temporaryFolder } from '../support/process.ts';
import { migrationsIn } from './former.ts';

/** Migrations of the last version whose histories each counted by themselves, and were plain tables. */
const FORMER = 10;
const BEGIN = 1_000_000_000_000;

/** A database of that version: three price moves and two corrections, with ids that both tables have. */
async function formerDatabase(onEnd: typeof onTestFinished): Promise<{ sql: Sql; url: string }> {
  const database = await createDatabase();
  const sql = connect(database.url, { max: 2 });
  onEnd(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  await migrateDatabase(database.url, { folder: migrationsIn(await temporaryFolder(onEnd), FORMER) });
  await sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select 'A', n::text, n, n + 1, now() - interval '40 days' from generate_series(1, 3) n`;
  await sql`
    insert into catalog.product_history (sku, field, old_value, new_value, observed_at)
    select 'A', 'name', n::text, 'N', now() - interval '40 days' from generate_series(1, 2) n`;
  return { sql, url: database.url };
}

const followed = async (sql: Sql, most: number) => {
  const rows: string[] = [];
  for (let position = '0'; ;) {
    const more = await sql<{ position: string; kind: string }[]>`
      select position, kind from catalog.changes(${position}, ${most})`;
    if (more.length === 0) return rows;
    rows.push(...more.map((row) => `${row.position} ${row.kind}`));
    position = more.at(-1)!.position;
  }
};

async function writeBoth(sql: Sql): Promise<void> {
  await sql.begin((tx) =>
    writeChanges(
      tx,
      [{ sku: 'A', size: '9', oldPrice: 1, newPrice: 2 }],
      [{ sku: 'A', field: 'name', oldValue: 'N', newValue: 'M' }],
      null,
    ),
  );
}

describe.concurrent('a mirror with rows in both histories', () => {
  test('is followed from its first row on, none missed where two share a position; new ones have one each', async ({
    expect,
    onTestFinished,
  }) => {
    const { sql, url } = await formerDatabase(onTestFinished);
    const rows = () =>
      sql`select id, sku, size, old_price, new_price, observed_at from catalog.price_history order by id`;
    const fileOf = (table: string) => sql`select pg_relation_filenode(${table}::regclass) as file`;
    const before = { rows: await rows(), file: await fileOf('catalog.price_history') };
    await migrateDatabase(url);
    // Not copied.
    expect({ rows: await rows(), file: await fileOf('catalog_internal.price_history_former') }).toEqual(
      before,
    );
    await writeBoth(sql);
    for (const most of [1, 2, 1000])
      expect(await followed(sql, most)).toEqual([
        '1 product',
        '1 price',
        '2 product',
        '2 price',
        '3 price',
        `${BEGIN} product`,
        `${BEGIN + 1} price`,
      ]);
    expect(await dropOldHistory(sql, 30 * 86_400_000)).toBe(1);
    expect(await sql`select catalog.changes_oldest() as oldest`).toEqual([{ oldest: String(BEGIN - 1) }]);
    expect(await sql`select id from catalog.price_history`).toEqual([{ id: String(BEGIN + 1) }]);
    // What is said of the meaning of old prices stays.
    expect(await sql`select from catalog.product_history`).toHaveLength(3);
  });

  test('keeps what the seller has put upon it: views and grants go on with the whole history', async ({
    expect,
    onTestFinished,
  }) => {
    const { sql, url } = await formerDatabase(onTestFinished);
    const role = `analyst_${randomBytes(6).toString('hex')}`;
    onTestFinished(async () => {
      const admin = connect(url.replace(/[^/]*$/, 'postgres'), { max: 1 });
      await admin.unsafe(`drop role ${role}`);
      await admin.end();
    });
    await sql.unsafe(`
      create role ${role};
      grant select on catalog.price_history to ${role};
      grant usage on schema catalog to ${role};
      create schema shop;
      create view shop.moves with (security_barrier = true) as select * from catalog.price_history where new_price is not null;
      create view shop.skus as select distinct sku from shop.moves`);
    await migrateDatabase(url);
    await writeBoth(sql);
    expect(await sql`select * from shop.moves`).toHaveLength(4);
    expect(await sql`select reloptions from pg_class where oid = 'shop.moves'::regclass`).toEqual([
      { reloptions: ['security_barrier=true'] },
    ]);
    const [may] = await sql`
      select has_table_privilege(${role}, 'catalog.price_history', 'select') as read,
        has_table_privilege(${role}, 'catalog.price_history', 'insert') as write`;
    expect(may).toEqual({ read: true, write: false });
    await sql.unsafe(`drop owned by ${role}`);
  });

  test.for([
    ['a materialized view', 'create materialized view public.moves as select * from catalog.price_history'],
    [
      'a trigger',
      'create trigger mine before update on catalog.price_history execute function suppress_redundant_updates_trigger()',
    ],
    ['a publication', 'create publication mine for table catalog.price_history'],
  ] as const)(
    'is left as it was, and says why, where there is %s upon it',
    async ([, statement], { expect, onTestFinished }) => {
      const { sql, url } = await formerDatabase(onTestFinished);
      await sql.unsafe(statement);
      await expect(migrateDatabase(url)).rejects.toMatchObject({
        kind: 'migration-failed',
        message: expect.stringContaining('in 0010_changes'),
        cause: { message: expect.stringMatching(/is used by: .*(?:moves|mine)/) },
      });
      // Nothing but the proof that the next try builds on, which was none of the migration's transaction.
      expect(
        await sql`select convalidated from pg_constraint where conname = 'price_history_former'`,
      ).toEqual([{ convalidated: true }]);
      expect(await sql`select from catalog.price_history`).toHaveLength(3);
      await sql`insert into catalog.price_history (sku, size, observed_at) values ('A', '1', now())`;
    },
  );
});
