import { inPieces } from '../../lib/pieces.ts';
import { notingUnseenClock } from '../clock.ts';
import { type Queryable, type Sql, transaction } from '../connection/db.ts';
import { lockNewSkus } from '../connection/locks.ts';
import { absentSku, writeSkuChanges } from '../history/changes.ts';
import { requestTask } from '../ledger/tasks.ts';

/** What a refresh did, and whether bulk calls had been paused after failures. */
export interface Refreshed {
  /** SKUs that were marked, or that had not been due. */
  readonly due: number;
  /** SKUs that were unknown until now, in order. */
  readonly added: readonly string[];
  /** SKUs that no longer wait after errors or deferrals. */
  readonly released: number;
  readonly resumed: boolean;
  /** SKUs that are out of scope and are not asked for; absent if none. */
  readonly outside?: number;
  /** SKUs that are asked for once, because a rule of the scope needs their metadata; absent if none. */
  readonly once?: number;
}

/** SQL: whether sellers have asked for SKUs that are not marked yet (catalog.refresh). */
export const REFRESHES_CAME = 'catalog_internal.refreshes_came()';

/** How much sellers have asked for from SQL, over the mirror's life. */
export interface RefreshStats {
  /** SKUs. */
  readonly asked: number;
  /** Calls that exceeded the bounds. */
  readonly refused: number;
}

/** Reads what catalog.refresh was asked for so far; counters that only grow. */
export async function readRefreshStats(sql: Sql): Promise<RefreshStats> {
  const [row] = await sql<[RefreshStats]>`
    select coalesce(pg_sequence_last_value('catalog_internal.refreshes_asked'), 0)::float8 as asked,
      coalesce(pg_sequence_last_value('catalog_internal.refreshes_refused'), 0)::float8 as refused`;
  return row;
}

/** How many requests of sellers are taken before one call; takes some milliseconds. */
const TAKEN_AT_ONCE = 1000;

/** Marks SKUs that sellers have asked for, except those that are being asked for at the moment. Returns how many. */
export async function takeRefreshes(sql: Sql): Promise<number> {
  const [{ taken }] = await sql<[{ taken: number }]>`
    select catalog_internal.take_refreshes(${TAKEN_AT_ONCE}::int) as taken`;
  return taken;
}

/**
 * Marks SKUs due now, ahead of everything; unknown ones are mirrored from now on. No deferral, error or pause of
 * calls delays them any longer.
 */
export async function refreshSkus(sql: Sql, skus: readonly string[]): Promise<Refreshed> {
  const wanted = [...new Set(skus)];
  return await transaction(sql, async (tx) => {
    await lockNewSkus(tx);
    await tx`select from catalog.skus where sku = any(${wanted}) order by sku for no key update`;
    const added = await tx<{ sku: string }[]>`
      insert into catalog.skus (sku, in_manifest) select sku, false from unnest(${wanted}::text[]) as w(sku) order by sku
      on conflict do nothing returning sku`;
    const [refreshed] = await tx<[Omit<Refreshed, 'added'>]>`
      select marked::int as due, released::int as released, resumed from catalog_internal.refresh_skus(${wanted}::text[])`;
    const [{ outside, once }] = await tx<[{ outside: number; once: number }]>`
      select (count(*) filter (where reason <> 'scope'))::int as outside, (count(*) filter (where reason = 'scope'))::int as once
      from catalog_internal.due where sku = any(${wanted}) and outside_due_at is not null`;
    await notingUnseenClock(tx);
    if (added.length > 0)
      await writeSkuChanges(
        tx,
        added.map(({ sku }) => absentSku(sku)),
      );
    return {
      ...refreshed,
      added: added.map(({ sku }) => sku),
      due: refreshed.due - outside - once,
      ...(outside > 0 && { outside }),
      ...(once > 0 && { once }),
    };
  });
}

/** How many SKUs one transaction makes due, so that nobody waits long for the rows of the ledger. */
const PIECE = 10_000;

/**
 * Makes every known SKU due now, oldest first and after what is urgent: for its price ('sweep', 'live') or only for
 * its metadata. Leaves out SKUs that were removed and are never due: only a report, the watchlist or a request by
 * name brings them back, and their number grows for as long as the mirror exists. Ends waits after deferrals and
 * errors, and the pause of calls.
 */
export async function refreshAll(sql: Sql, what: 'prices' | 'metadata'): Promise<Refreshed> {
  let [due, released] = [0, 0];
  await inPieces(async (after) => {
    const piece = await refreshPiece(sql, what, after);
    due += piece.due;
    released += piece.released;
    return piece.last;
  });
  const [{ resumed }] = await sql<[{ resumed: boolean }]>`select catalog_internal.resume_calls() as resumed`;
  await notingUnseenClock(sql);
  return { due, added: [], released, resumed };
}

/**
 * Marks the next SKUs after `after`, locked in order of sku, as everyone locks the ledger. `last` is the last of
 * them; null if there were none.
 */
async function refreshPiece(
  sql: Sql,
  what: 'prices' | 'metadata',
  after: string,
): Promise<{ readonly last: string | null; readonly due: number; readonly released: number }> {
  const [piece] = await sql<[{ last: string | null; due: number; released: number }]>`
    with piece as materialized (
      select sku, due_at > now() as is_early, claim is null and coalesce(held_until > now(), false) as waits
      from catalog_internal.due
      where sku > ${after} and due_at < 'infinity' and (due_at > now() or (claim is null and held_until > now()))
      order by sku limit ${PIECE} for update
    ),
    marked as (
      update catalog_internal.due d set
        due_at = least(due_at, now()), generation = generation + 1,
        held_until = case when claim is null then null else held_until end,
        reason = case when ${what} = 'metadata' and is_early and d.reason <> 'scope' then 'metadata' else d.reason end,
        lane = case when ${what} = 'metadata' and is_early and d.reason <> 'scope' then catalog_internal.lane_of('metadata') else d.lane end
      from piece p where d.sku = p.sku
    )
    select max(sku) as last, (count(*) filter (where is_early))::int as due, (count(*) filter (where waits))::int as released
    from piece`;
  return piece;
}

/** Requests a new baseline at once; `acceptShrink` confirms that it may list far fewer SKUs than before. */
export async function refreshManifest(sql: Sql, acceptShrink = false): Promise<void> {
  if (acceptShrink) await sql`update catalog_internal.sync set shrink_confirmed = true`;
  await requestTask(sql, 'manifest');
}

/** Returns why no request leaves now, as a sentence without its full stop; null while requests leave. */
export async function whyNothingLeaves(sql: Queryable): Promise<string | null> {
  const [{ why }] = await sql<[{ why: string | null }]>`select catalog_internal.nothing_leaves() as why`;
  return why;
}
