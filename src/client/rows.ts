import type { Column } from 'drizzle-orm';

/**
 * What drivers return for a column: bigint as text, as it may be beyond 2^53, a date as Date, and everything else as
 * Drizzle does.
 */
type Value<C extends Column> = C['_']['columnType'] extends 'PgBigInt64' | 'PgBigInt53'
  ? string
  : C['_']['columnType'] extends 'PgDateString'
    ? Date
    : C['_']['data'];

/** A row of a table or view by the names of its columns in SQL, as `postgres` returns it. */
export type Row<Table> = {
  readonly [
    K in keyof Table as Table[K] extends Column ? Table[K]['_']['name'] : never
  ]: Table[K] extends Column
    ? Value<Table[K]> | (Table[K]['_']['notNull'] extends true ? never : null)
    : never;
};
