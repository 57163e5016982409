import { connect, type Sql } from '../../src/store/connection/db.ts';

/*
 * A Postgres clock that can be set, in one database only: `now()`, `statement_timestamp()` and `clock_timestamp()`
 * of `pg_catalog` are replaced there. A sequence holds the offset, because everybody sees its value at once and no
 * rollback undoes it. It must exist before the mirror's functions, which bind these names when they are created.
 */

const INSTALL = `
  create schema movable;
  create sequence movable.ahead_ms minvalue -9000000000000000 start 0;
  select setval('movable.ahead_ms', 0);
  set allow_system_table_mods = on;
  alter function pg_catalog.now() rename to machine_now;
  alter function pg_catalog.statement_timestamp() rename to machine_statement_timestamp;
  alter function pg_catalog.clock_timestamp() rename to machine_clock_timestamp;
  create function pg_catalog.now() returns timestamptz language sql stable parallel safe as
    $$ select machine_now() + make_interval(secs => pg_sequence_last_value('movable.ahead_ms'::regclass) / 1000.0) $$;
  create function pg_catalog.statement_timestamp() returns timestamptz language sql stable parallel safe as
    $$ select machine_statement_timestamp() + make_interval(secs => pg_sequence_last_value('movable.ahead_ms'::regclass) / 1000.0) $$;
  create function pg_catalog.clock_timestamp() returns timestamptz language sql volatile as
    $$ select machine_clock_timestamp() + make_interval(secs => pg_sequence_last_value('movable.ahead_ms'::regclass) / 1000.0) $$;
  reset allow_system_table_mods`;

/** Makes the clock of an empty database movable. */
export async function makeClockMovable(url: string): Promise<void> {
  const sql = connect(url, { max: 1 });
  try {
    await sql.unsafe(INSTALL);
  } finally {
    await sql.end();
  }
}

/** Sets the clock this many seconds ahead of the machine's, or behind it if negative. */
export async function setClockAhead(sql: Sql, seconds: number): Promise<void> {
  await sql`select setval('movable.ahead_ms', ${Math.round(seconds * 1000)})`;
}

/** Columns that the mirror does not write by Postgres's clock, but by others' times or in plain sessions. */
const OTHER_CLOCKS: ReadonlySet<string> = new Set([
  'catalog.skus.updated_at',
  'catalog_internal.sync.snapshot_generated_at',
  'catalog_internal.sync.seen_generated_at',
  'catalog_internal.instances.backend_start',
  'catalog_internal.followers.backend_start',
]);

/**
 * Returns the mirror's own columns with times of Postgres's clock: table and column. Chunks of the history count
 * with their table.
 */
async function timeColumns(sql: Sql) {
  const columns = await sql<{ table: string; column: string; generated: boolean }[]>`
    select format('%s.%s', table_schema, table_name) as "table", column_name as "column", is_generated <> 'NEVER' as generated
    from information_schema.columns
    join information_schema.tables using (table_schema, table_name)
    where table_schema in ('catalog', 'catalog_internal') and data_type = 'timestamp with time zone' and table_type = 'BASE TABLE'
      and table_name !~ '^price_history_'`;
  return columns.filter(({ table, column }) => !OTHER_CLOCKS.has(`${table}.${column}`));
}

/** Members within JSON that hold times of snapshots which the manifest route has named. */
const NAMED = ['named', 'seen'];

/** Returns the latest time in each column of the mirror that contains any after `moment`, except `infinity`. */
export async function timesAfter(sql: Sql, moment: Date): Promise<Record<string, Date>> {
  const found: Record<string, Date> = {};
  for (const { table, column } of await timeColumns(sql)) {
    const [row] = await sql.unsafe<{ at: Date | null }[]>(
      `select max("${column}") filter (where "${column}" > $1 and "${column}" < 'infinity') as at from ${table}`,
      [moment],
    );
    if (row?.at instanceof Date) found[`${table}.${column}`] = row.at;
  }
  for (const member of NAMED) {
    const [row] = await sql<[{ at: Date | null }]>`
      select max(t.at) as at from catalog_internal.sync, jsonb_array_elements(named_snapshots) n,
        lateral (select (n ->> ${member})::timestamptz) t (at) where t.at > ${moment}`;
    if (row.at !== null) found[`catalog_internal.sync.named_snapshots.${member}`] = row.at;
  }
  return found;
}

/**
 * Sets each column of the mirror to the current time, in a new row if its table has none. Returns their names.
 * Runs in a transaction without foreign keys, triggers and checks; the other values of a row mean nothing.
 */
export async function dateAll(sql: Sql): Promise<string[]> {
  const written = (await timeColumns(sql)).filter(({ generated }) => !generated);
  const dated = Map.groupBy(written, ({ table }) => table);
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      do $$ declare c record; begin
        for c in select conrelid::regclass as "table", conname from pg_constraint
          where contype = 'c' and connamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace) and coninhcount = 0
        loop execute format('alter table %s drop constraint %I', c."table", c.conname); end loop;
      end $$`;
    for (const [table, columns] of dated) {
      const needed = await tx<{ column: string; type: string }[]>`
        select quote_ident(attname) as column, format_type(atttypid, null) as type from pg_attribute
        where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attnotnull and not atthasdef and attidentity = ''`;
      const [some] = await tx.unsafe(`select from ${table} limit 1`);
      if (some === undefined && needed.length > 0)
        await tx.unsafe(
          `insert into ${table} (${needed.map(({ column }) => column).join(', ')})
           values (${needed.map(({ type }) => `${ANY_VALUE[type.endsWith('[]') ? '[]' : type] ?? "'1'"}::${type}`).join(', ')})`,
        );
      if (some === undefined && needed.length === 0) await tx.unsafe(`insert into ${table} default values`);
      const set = columns.map(({ column }) => `"${column}" = clock_timestamp()`).join(', ');
      await tx.unsafe(`update ${table} set ${set}`);
    }
    await tx`
      update catalog_internal.sync set named_snapshots = jsonb_build_array(jsonb_build_object('id', 's1', 'generated', clock_timestamp(),
        'named', clock_timestamp(), 'seen', clock_timestamp()))`;
  });
  return written.map(({ table, column }) => `${table}.${column}`);
}

/** A value of a type for which `1` is not valid. */
const ANY_VALUE: Readonly<Record<string, string>> = {
  date: "(clock_timestamp() at time zone 'UTC')",
  'timestamp with time zone': 'clock_timestamp()',
  '[]': "'{}'",
};
