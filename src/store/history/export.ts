import type { Tx } from '../connection/db.ts';

/*
 * What `catalog-mirror export` writes: tables and views of the schema catalog as readers see them, in batches of
 * rows.
 */

export const EXPORTS = ['prices', 'history', 'daily', 'products'] as const;
export type Export = (typeof EXPORTS)[number];

/** `time` values are microseconds and `day` values days since 1970, in UTC. */
export type ColumnType = 'text' | 'integer' | 'bigint' | 'real' | 'boolean' | 'time' | 'day';

export interface ExportColumn {
  readonly name: string;
  readonly type: ColumnType;
}

interface ExportSource {
  readonly from: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** If absent, rows come as stored, roughly in order of time: sorting them would take longer than writing them. */
  readonly order?: string;
  /** The time or day column by which rows can be narrowed. */
  readonly since?: string;
  /** A table with the same number of rows. */
  readonly counted: string;
}

const SOURCES: Readonly<Record<Export, ExportSource>> = {
  prices: {
    from: 'catalog.current_prices',
    columns: {
      sku: 'text',
      size: 'text',
      price: 'integer',
      size_type: 'text',
      price_source: 'text',
      priced_at: 'time',
      changed_at: 'time',
      stale: 'boolean',
      actionable: 'boolean',
      p_right: 'real',
      doubt: 'text',
    },
    order: 'sku, size',
    counted: 'catalog.prices',
  },
  history: {
    from: 'catalog.price_history',
    columns: {
      id: 'bigint',
      sku: 'text',
      size: 'text',
      old_price: 'integer',
      new_price: 'integer',
      observed_at: 'time',
      size_type_changed: 'boolean',
    },
    order: 'id',
    since: 'observed_at',
    counted: 'catalog.price_history',
  },
  daily: {
    from: 'catalog.daily_prices',
    columns: {
      sku: 'text',
      size: 'text',
      day: 'day',
      open: 'integer',
      low: 'integer',
      median: 'integer',
      close: 'integer',
      changes: 'integer',
      size_type_changed: 'boolean',
    },
    since: 'day',
    counted: 'catalog.daily_prices',
  },
  products: {
    from: 'catalog.products',
    columns: {
      sku: 'text',
      name: 'text',
      model: 'text',
      brand: 'text',
      gender_size: 'text',
      size_type: 'text',
      category: 'text',
      size_map_size_type: 'text',
      product: 'text',
      refreshed_at: 'time',
      changed_at: 'time',
    },
    order: 'sku',
    counted: 'catalog.products',
  },
};

export const exportColumns = (what: Export): readonly ExportColumn[] =>
  Object.entries(SOURCES[what].columns).map(([name, type]) => ({ name, type }));

/** Returns the tables and views that these exports read. */
export const tablesOf = (exports: readonly Export[]): string[] => exports.map((what) => SOURCES[what].from);

export const hasSince = (what: Export): boolean => SOURCES[what].since !== undefined;

const SELECTED: Readonly<Partial<Record<ColumnType, (name: string) => string>>> = {
  text: (name) => `${name}::text`,
  time: (name) => `(extract(epoch from ${name}) * 1000000)::bigint`,
  day: (name) => `${name} - date '1970-01-01'`,
};

/**
 * Reads the rows in batches of at most `batch`. Values are in the order of `exportColumns`; bigint and time are
 * texts. `since` is a date in UTC; null reads all rows.
 */
export function readExport(
  tx: Tx,
  what: Export,
  { since, batch }: { readonly since: string | null; readonly batch: number },
): AsyncIterable<readonly (readonly unknown[])[]> {
  const { from, order, since: column } = SOURCES[what];
  const selected = exportColumns(what).map(({ name, type }) => SELECTED[type]?.(name) ?? name);
  const isNarrowed = column !== undefined && since !== null;
  const first =
    isNarrowed && SOURCES[what].columns[column] === 'day'
      ? '$1::date'
      : "($1::date::timestamp at time zone 'UTC')";
  const query = [
    `select ${selected.join(', ')} from ${from}`,
    ...(isNarrowed ? [`where ${column} >= ${first}`] : []),
    ...(order === undefined ? [] : [`order by ${order}`]),
  ].join(' ');
  return tx
    .unsafe(query, isNarrowed ? [since] : [])
    .values()
    .cursor(batch);
}

/**
 * Locks what is to be read, as reading does, before the transaction has a snapshot: if a migration rewrote a table
 * and committed after that, this transaction would see it empty.
 */
export async function lockExported(tx: Tx, exports: readonly Export[]): Promise<void> {
  await tx.unsafe(`lock table ${tablesOf(exports).join(', ')} in access share mode`);
}

/** Returns about how many rows there are, by Postgres's last count; null if it never counted. */
export async function estimateRows(tx: Tx, what: Export): Promise<number | null> {
  const [row] = await tx<{ rows: number | null }[]>`
    select nullif(sum(greatest(reltuples, 0)), 0)::float8 as rows from pg_class
    where oid = ${SOURCES[what].counted}::regclass and relkind = 'r'
      or oid in (select relid from pg_partition_tree(${SOURCES[what].counted}::regclass) where isleaf)`;
  return row?.rows ?? null;
}
