import { inPieces } from '../../lib/pieces.ts';
import type { Sql, Tx } from '../connection/db.ts';
import { scanning, transaction } from '../connection/db.ts';
import { TASKS } from './tasks.ts';

/*
 * Rows that the mirror needs and that only the mirror writes. If a restore left them out, or somebody else's TRUNCATE
 * or DELETE has taken them, they are made anew, as in a new mirror.
 */

/** Tables of catalog_internal whose one row the migrations make; others of one row get it once it is needed. */
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

/** Tables of some rows that never change their number: SQL that has the missing ones, and the column that they fill. */
const SETS = {
  tasks: {
    column: 'task',
    missing: `unnest(array[${TASKS.map((task) => `'${task}'`).join(', ')}])`,
  },
  refresh_places: { column: 'place', missing: 'generate_series(1, 20)' },
} as const;

/** Which tables lack rows that the mirror cannot do without; one statement. The role may read catalog_internal. */
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

/** Makes those rows anew, each as a new mirror has it; returns the tables that lacked some. */
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

/** A part of the catalog that was searched for SKUs without a row of the ledger. */
export interface LedgerPart {
  /** The last SKU that was compared; null: it was the end of the catalog. */
  readonly upTo: string | null;
  /** SKUs that had no row, and have one now. */
  readonly restored: number;
}

/**
 * Marks SKUs due that have no row in the ledger, because they would never be asked for; compares the `most` SKUs behind
 * `after`. What the ledger knew of them is lost, so they count as reported, and are not actionable until they are asked
 * for.
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

/** Whether there is any price. */
export async function hasPrices(sql: Sql): Promise<boolean> {
  const some = await scanning(sql`select where exists (select from catalog.prices)`);
  return some.length > 0;
}

/**
 * Where all prices are gone: marks priced SKUs that have sizes as reported, `most` at a time. Till they are asked for
 * none of them is actionable. Returns how many. Where others are there, the next sweep brings back those that are gone.
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

/** Their rows are locked: one that is forgotten in this moment is not marked. */
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
