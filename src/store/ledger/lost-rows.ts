import { inPieces } from '../../lib/pieces.ts';
import type { Sql, Tx } from '../connection/db.ts';
import { scanning, transaction } from '../connection/db.ts';
import { TASKS } from './tasks.ts';

/*
 * Rows that the mirror needs and that only the mirror writes. If a restore left them out, or somebody's TRUNCATE or
 * DELETE removed them, they are created again as in a new mirror.
 */

/** Tables of catalog_internal whose single row the migrations insert; others get theirs when it is needed. */
export const SINGLE_ROWS = [
  'account',
  'beliefs',
  'call_size',
  'clock',
  'daily',
  'delta_audit',
  'lineage',
  'live_ceiling',
  'live_plan',
  'mass_move',
  'promising',
  'releases',
  'scoping',
  'settings',
  'sync',
  'watching',
] as const;

/** Tables with a fixed set of rows: the column that identifies a row, and SQL for all its values. */
const SETS = {
  tasks: {
    column: 'task',
    missing: `unnest(array[${TASKS.map((task) => `'${task}'`).join(', ')}])`,
  },
  refresh_places: { column: 'place', missing: 'generate_series(1, 20)' },
} as const;

/**
 * Returns the tables that lack rows that the mirror cannot do without. The role must be able to read
 * catalog_internal.
 */
export async function readLostRows(sql: Sql): Promise<string[]> {
  const singles = SINGLE_ROWS.map(
    (table) => `select '${table}' as name where not exists (select from catalog_internal.${table})`,
  );
  const sets = Object.entries(SETS).map(
    ([table, { column, missing }]) => `
      select '${table}' where exists (
        select from ${missing} as m where not exists (select from catalog_internal.${table} t where t.${column} = m)
      )`,
  );
  const lost = await sql.unsafe<{ name: string }[]>([...singles, ...sets].join(' union all '));
  return lost.map(({ name }) => `catalog_internal.${name}`).toSorted();
}

/** Inserts those rows again, as a new mirror has them; returns the tables that lacked some. */
export async function restoreLostRows(sql: Sql): Promise<string[]> {
  const lost = await readLostRows(sql);
  if (lost.length === 0) return lost;
  await sql.begin(async (tx) => {
    for (const table of SINGLE_ROWS)
      if (lost.includes(`catalog_internal.${table}`))
        await tx.unsafe(`insert into catalog_internal.${table} default values on conflict do nothing`);
    for (const [table, { column, missing }] of Object.entries(SETS))
      if (lost.includes(`catalog_internal.${table}`))
        await tx.unsafe(
          `insert into catalog_internal.${table} (${column}) select * from ${missing} on conflict do nothing`,
        );
  });
  return lost;
}

/** The result of searching a part of the catalog for SKUs without a row of the ledger. */
export interface LedgerPart {
  /** The last SKU compared; null at the end of the catalog. */
  readonly upTo: string | null;
  /** How many SKUs had no row, and have one now. */
  readonly restored: number;
}

/**
 * Marks SKUs due that have no row in the ledger, because they would never be asked for; compares the `most` SKUs
 * after `after`. What the ledger knew of them is lost, so they count as reported, and are not actionable until they
 * have been asked for.
 */
export async function restoreLedger(sql: Sql, after: string, most: number): Promise<LedgerPart> {
  return await transaction(sql, async (tx) => {
    const [{ last, lost }] = await tx<[{ last: string | null; lost: string[] }]>`
      with part as (select sku from catalog.skus where sku > ${after} order by sku limit ${most})
      select (select max(sku) from part having count(*) = ${most}) as last,
        array(
          select sku from part p where not exists (select from catalog_internal.due d where d.sku = p.sku offset 0) order by sku
        ) as lost`;
    return { upTo: last, restored: lost.length === 0 ? 0 : await markLost(tx, lost) };
  });
}

export async function hasPrices(sql: Sql): Promise<boolean> {
  const some = await scanning(sql`select where exists (select from catalog.prices)`);
  return some.length > 0;
}

/**
 * If all prices are gone, marks priced SKUs that have sizes as reported, `most` at a time; none of them is
 * actionable until it has been asked for. Returns how many. If only some prices are gone, the next sweep brings them
 * back.
 */
export async function restorePrices(sql: Sql, most: number): Promise<number> {
  let marked = 0;
  await inPieces((after) =>
    transaction(sql, async (tx) => {
      const skus = await tx<{ sku: string }[]>`
        select sku from catalog.skus where sku > ${after} and state = 'priced' and sizes > 0 order by sku limit ${most}`;
      if (skus.length > 0)
        marked += await markLost(
          tx,
          skus.map(({ sku }) => sku),
        );
      return skus.length === most ? (skus.at(-1)?.sku ?? null) : null;
    }),
  );
  return marked;
}

/** Locks the SKUs' rows, so a SKU that is deleted at this moment is not marked. */
async function markLost(tx: Tx, skus: readonly string[]): Promise<number> {
  const [{ marked }] = await tx<[{ marked: number }]>`
    with locked as materialized (
      select sku, state, price_source from catalog.skus where sku = any (${skus as string[]}::text[]) order by sku for no key update
    ),
    marked as (
      select catalog_internal.mark_due(
        array_agg(sku), case when state = 'pending' then 'new' else 'changed' end, price_source = 'live'
      ) as skus
      from locked group by state = 'pending', price_source = 'live'
    )
    select coalesce(sum(skus), 0)::int as marked from marked`;
  return marked;
}
