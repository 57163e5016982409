import { connect, type Sql } from '../../src/store/connection/db.ts';

/*
 * A clock of Postgres that can be set, in one database alone: `now()`, `statement_timestamp()` and `clock_timestamp()`
 * of `pg_catalog` are others there. A sequence has by how much it is ahead, since it is read at once by everybody and rolled back by
 * nobody. To be there before the mirror's functions are: these mean what they name when they are made.
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

/** Makes the clock of an empty database one that can be set. */
export async function makeClockMovable(url: string): Promise<void> {
  const sql = connect(url, { max: 1 });
  try {
    await sql.unsafe(INSTALL);
  } finally {
    await sql.end();
  }
}

/** Sets the clock ahead of the machine's by so much, or behind it. */
export async function setClockAhead(sql: Sql, seconds: number): Promise<void> {
  await sql`select setval('movable.ahead_ms', ${Math.round(seconds * 1000)})`;
}

/** Columns that the mirror writes by Postgres's clock; those of others' times and of plain sessions are not. */
export const OTHER_CLOCKS: ReadonlySet<string> = new Set([
  'catalog.skus.updated_at',
  'catalog_internal.sync.snapshot_generated_at',
  'catalog_internal.sync.seen_generated_at',
  'catalog_internal.instances.backend_start',
]);

/** The latest time in each column of the mirror that has any after `moment`, `infinity` aside. */
export async function timesAfter(sql: Sql, moment: Date): Promise<Record<string, Date>> {
  const columns = await sql<{ table: string; column: string }[]>`
    select format('%s.%s', table_schema, table_name) as "table", column_name as "column" from information_schema.columns
    join information_schema.tables using (table_schema, table_name)
    where table_schema in ('catalog', 'catalog_internal') and data_type = 'timestamp with time zone' and table_type = 'BASE TABLE'
      and table_name !~ '^price_history_'`;
  const found: Record<string, Date> = {};
  for (const { table, column } of columns) {
    const name = `${table}.${column}`;
    if (OTHER_CLOCKS.has(name)) continue;
    const [row] = await sql.unsafe<{ at: Date | null }[]>(
      `select max("${column}") filter (where "${column}" > $1 and "${column}" < 'infinity') as at from ${table}`,
      [moment],
    );
    if (row?.at instanceof Date) found[name] = row.at;
  }
  return found;
}
