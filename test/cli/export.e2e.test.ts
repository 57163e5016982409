import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, ofThisDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { runProgram, startProgram, temporaryFolder } from '../support/process.ts';

const role = `exporter_${randomBytes(6).toString('hex')}`;
const ROWS = 3000;
let database: TestDatabase;
let sql: Sql;
/** DATABASE_URL of a role that may only read. */
let url: string;

beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 4 });
  await sql.unsafe(`create role ${role} login password 'pw' in role catalog_reader`);
  const reader = new URL(database.url);
  [reader.username, reader.password] = [role, 'pw'];
  url = reader.href;
  await sql`
    insert into catalog.skus (sku, in_manifest, state, price_source, priced_at, first_priced_at)
    select 'S' || n, true, 'priced', 'snapshot', '2026-01-01 00:00:00.123456+00', '2026-01-01' from generate_series(1, 3) n`;
  await sql`
    insert into catalog.prices (sku, size, price, changed_at) values
      ('S1', '9', 100, '2026-02-03 04:05:06.789012+00'), ('S1', 'ยี่สิบ 👟', null, '1969-12-31 23:59:59.999999+00'), ('S2', '', 2147483647, now())`;
  await sql`
    insert into catalog.products (sku, name, product, refreshed_at, changed_at)
    values ('S1', ${'a "name"\n, ก'}, '{"colour": ["red", null]}', now(), now()), ('S2', null, '{}', now(), now())`;
  await sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select 'S' || n, '9', n, nullif(n % 5, 0), '2026-01-01 00:00+00'::timestamptz + make_interval(secs => n * 60) from generate_series(1, ${ROWS}) n`;
  await sql`
    insert into catalog.daily_prices values
      ('S1', '9', '2025-12-31', null, 5, 6, 7, 3, false, 1), ('S1', '9', '2026-01-01', 7, null, null, null, 1, true, 2),
      ('S1', '9', '1969-12-31', 7, null, null, null, 1, true, 2)`;
  await sql.unsafe('analyze catalog.price_history');
});

afterAll(async () => {
  await sql.unsafe(`drop role ${role}`);
  await sql.end({ timeout: 2 });
  await database.drop();
});

const run = (...args: string[]) => runProgram(['export', ...args], { DATABASE_URL: url });

/** Returns the rows of a file as an independent reader sees them; times in microseconds, days as dates. */
async function rowsOf(path: string): Promise<Record<string, unknown>[]> {
  const file = await asyncBufferFromFile(path);
  const micros = (value: bigint) => value;
  return await parquetReadObjects({ file, parsers: { timestampFromMicroseconds: micros } });
}

/** Returns the same rows from the database. */
async function rowsIn(query: string): Promise<Record<string, unknown>[]> {
  const rows = await sql.unsafe(query);
  return rows.map((row) => Object.fromEntries(Object.entries(row)));
}

const time = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint as ${column}`;
const wide = (rows: Record<string, unknown>[], ...columns: string[]) =>
  rows.map((row) => ({
    ...row,
    ...Object.fromEntries(
      columns.map((column) => [column, row[column] === null ? null : BigInt(row[column] as string)]),
    ),
  }));

test('a table that a migration rewrites meanwhile is read whole, because all tables are locked first', async () => {
  const folder = await temporaryFolder();
  const migrating = await sql.reserve();
  await migrating`begin`;
  await migrating`lock table catalog.products in access exclusive mode`;
  await using program = startProgram(['export', '--out', folder], { DATABASE_URL: url });
  await eventually(async () => {
    const waiting = await sql`
      select from pg_locks where relation = 'catalog.products'::regclass and not granted and mode = 'AccessShareLock'
        and ${ofThisDatabase(sql)}`;
    expect(waiting).toHaveLength(1);
  });
  // Just as ALTER TABLE rewrites a table.
  await migrating`create temporary table kept as select * from catalog.products`;
  await migrating`truncate catalog.products`;
  await migrating`insert into catalog.products select * from kept`;
  await migrating`drop table kept`;
  await migrating`commit`;
  migrating.release();
  expect(await program.exited).toMatchObject({ code: 0 });
  expect(program.stdout.join('\n')).toContain('products.parquet: 2 rows');
});

test('a read-only role exports all four files completely, as the mirror holds them', async () => {
  const folder = join(await temporaryFolder(), 'new');
  const { code, stdout, stderr } = await run('--out', folder);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout.split('\n').map((line) => line.replace(/, .* kB$/, '').replace(`${folder}/`, ''))).toEqual([
    'prices.parquet: 3 rows',
    'history.parquet: 3,000 rows',
    'daily.parquet: 3 rows',
    'products.parquet: 2 rows',
  ]);
  expect((await readdir(folder)).toSorted()).toEqual([
    'daily.parquet',
    'history.parquet',
    'prices.parquet',
    'products.parquet',
  ]);
  const prices = await rowsOf(join(folder, 'prices.parquet'));
  // It differs from moment to moment.
  expect(prices.map(({ p_right }) => Number(p_right) > 0 && Number(p_right) < 1)).toEqual([true, true, true]);
  for (const row of prices) delete row['p_right'];
  expect(prices).toEqual(
    wide(
      await rowsIn(`
        select sku, size, price, size_type, price_source, ${time('priced_at')}, ${time('changed_at')}, stale, actionable, doubt
        from catalog.current_prices order by sku, size`),
      'priced_at',
      'changed_at',
    ),
  );
  expect(await rowsOf(join(folder, 'daily.parquet'))).toEqual(
    await rowsIn(
      'select sku, size, day, open, low, median, close, changes, size_type_changed from catalog.daily_prices',
    ),
  );
  expect(await rowsOf(join(folder, 'products.parquet'))).toEqual(
    wide(
      await rowsIn(`
        select sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product::text, ${time('refreshed_at')}, ${time('changed_at')}
        from catalog.products order by sku`),
      'refreshed_at',
      'changed_at',
    ),
  );
  const history = await rowsOf(join(folder, 'history.parquet'));
  expect(history).toHaveLength(ROWS);
  const some = [0, 1, 4, 1999, 2000, ROWS - 1];
  const inMirror = wide(
    await rowsIn(
      `select id, sku, size, old_price, new_price, ${time('observed_at')}, size_type_changed from catalog.price_history order by id`,
    ),
    'id',
    'observed_at',
  );
  expect(some.map((n) => history[n])).toEqual(some.map((n) => inMirror[n]));
});

test('columns have their declared types, and --since leaves out older changes', async () => {
  const path = join(await temporaryFolder(), 'changes.parquet');
  const { code, stdout } = await run('--what', 'history', '--since', '2026-01-02', '--out', path);
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('changes.parquet: 1,561 rows'),
  });
  const { schema, num_rows } = await parquetMetadataAsync(await asyncBufferFromFile(path));
  expect(
    schema
      .slice(1)
      .map(({ name, type, converted_type }) => [name, type, converted_type].filter(Boolean).join(' ')),
  ).toEqual([
    'id INT64',
    'sku BYTE_ARRAY UTF8',
    'size BYTE_ARRAY UTF8',
    'old_price INT32',
    'new_price INT32',
    'observed_at INT64 TIMESTAMP_MICROS',
    'size_type_changed BOOLEAN',
  ]);
  expect(Number(num_rows)).toBe(1561);
  const [first] = await rowsOf(path);
  expect(first).toMatchObject({ observed_at: BigInt(Date.UTC(2026, 0, 2)) * 1000n });
  const days = join(await temporaryFolder(), 'days.parquet');
  expect(await run('--what', 'daily', '--since', '2026-01-01', '--out', days)).toMatchObject({ code: 0 });
  expect((await rowsOf(days)).map(({ day }) => day)).toEqual([new Date('2026-01-01')]);
});

test('an existing file is kept unless --replace is given', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'products.parquet');
  await writeFile(path, 'mine');
  expect(await run('--out', folder, '--what', 'products')).toMatchObject({
    code: 1,
    stderr: `${path} was not written\n  what to do: it exists: use another name, or --replace`,
  });
  expect(await readFile(path, 'utf8')).toBe('mine');
  // If one of the files exists, none of the others is written either.
  expect(await run('--out', folder)).toMatchObject({ code: 1 });
  expect(await readdir(folder)).toEqual(['products.parquet']);
  expect(await run('--out', folder, '--what', 'products', '--replace')).toMatchObject({ code: 0 });
  expect(await rowsOf(path)).toHaveLength(2);
  expect(await readdir(folder)).toEqual(['products.parquet']);
});

test('a name that ends with a slash is a folder, which is created', async () => {
  const folder = await temporaryFolder();
  expect(await run('--what', 'products', '--out', `${folder}/new/`)).toMatchObject({ code: 0 });
  expect(await rowsOf(join(folder, 'new', 'products.parquet'))).toHaveLength(2);
  await writeFile(join(folder, 'file'), 'mine');
  expect(await run('--what', 'products', '--out', `${folder}/file/`, '--replace')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/was not written\n {2}because: E(?:EXIST|NOTDIR)/),
  });
  expect(await readFile(join(folder, 'file'), 'utf8')).toBe('mine');
});

test.each([
  [[], '--out: expected a file or a folder'],
  [['--out', 'x', '--what', 'price'], '--what: expected one of prices, history, daily, products'],
  [['--out', 'x', '--since', '2026-02-30'], '--since: expected a date, as 2026-01-31'],
  [
    ['--out', 'x', '--what', 'prices', '--since', '2026-02-03'],
    '--since: prices are of now; it is for history and daily',
  ],
])('%j is rejected before anything is touched', async (args, said) => {
  expect(await run(...args)).toMatchObject({ code: 78, stderr: expect.stringContaining(said) });
});

test.each([
  ['where there is no folder', (folder: string) => join(folder, 'none', 'x.parquet')],
  ['where a file is no folder', (folder: string) => join(folder, 'file', 'x.parquet')],
])('nothing is written %s', async (_, pathIn) => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'file'), '');
  const path = pathIn(folder);
  expect(await run('--what', 'daily', '--out', path)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /was not written\n {2}because: E(?:NOENT|NOTDIR): .*\n {2}what to do: check that its folder exists/,
    ),
  });
  expect(await readdir(folder)).toEqual(['file']);
});

test('a full disk leaves no partial file, and keeps the previous one', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'x.parquet');
  await writeFile(path, 'mine');
  const bin = join(folder, 'program');
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  // At most four blocks per file: like a full disk, but without needing a disk of its own.
  await writeFile(bin, `#!/bin/bash\ntrap '' XFSZ\nulimit -f 4\nexec ${process.execPath} ${main} "$@"\n`);
  await chmod(bin, 0o755);
  const ran = await runProgram(
    ['export', '--what', 'history', '--out', path, '--replace'],
    { DATABASE_URL: url },
    { bin },
  );
  expect(ran).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/x\.parquet was not written\n {2}because: E(?:FBIG|NOSPC)/),
  });
  expect((await readdir(folder)).toSorted()).toEqual(['program', 'x.parquet']);
  expect(await readFile(path, 'utf8')).toBe('mine');
});

describe('an export that waits for a table', () => {
  /** Runs an export that cannot read a table, and does `work` as soon as it waits for it. */
  async function stuck(
    folder: string,
    table: string,
    work: (program: ReturnType<typeof startProgram>) => Promise<void>,
  ) {
    await using program = startProgram(['export', '--out', folder], { DATABASE_URL: url });
    await sql.begin(async (tx) => {
      // How long the program takes to start depends on the machine.
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx.unsafe(`lock table ${table} in access exclusive mode`);
      await eventually(
        async () => {
          const [row] =
            await sql`select count(*)::int as n from pg_locks where relation = ${table}::regclass and not granted and ${ofThisDatabase(sql)}`;
          expect(row).toEqual({ n: 1 });
        },
        { what: 'an export that waits' },
      );
      await work(program);
    });
    return { ...(await program.exited), stderr: program.stderr.join('\n') };
  }

  const tables = [
    ['SIGINT', 'catalog.products'],
    ['SIGTERM', 'catalog.products'],
    // This table is read after all the others are locked.
    ['SIGTERM', 'catalog_internal.settings'],
  ] as const;
  test.each(tables)('is ended at once by %s, and leaves nothing: %s', async (signal, table) => {
    const folder = join(await temporaryFolder(), 'files');
    await mkdir(folder);
    const ended = await stuck(folder, table, async (program) => {
      program.signal(signal);
      await program.exited;
    });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('stopped: nothing was written') });
    expect(await readdir(folder)).toEqual([]);
    const [row] = await sql`select count(*)::int as n from pg_stat_activity where usename = ${role}`;
    expect(row).toEqual({ n: 0 });
  });

  test('includes nothing that is committed meanwhile', async () => {
    const folder = join(await temporaryFolder(), 'files');
    const ended = await stuck(folder, 'catalog_internal.settings', async () => {
      await sql`insert into catalog.skus (sku, in_manifest) values ('later', true)`;
      await sql`insert into catalog.daily_prices values ('later', '9', '2026-01-01', 1, 1, 1, 1, 1, false, 1)`;
    });
    expect(ended).toMatchObject({ code: 0 });
    expect(await rowsOf(join(folder, 'daily.parquet'))).toHaveLength(3);
  });
});
