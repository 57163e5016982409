import type { Sql } from '../connection/db.ts';

/* How long histories are kept, and the chunks that maintenance (sync/maintenance.ts) creates ahead of them. */

/** Creates the history's next chunk before it is needed. Throws if that fails. */
export async function prepareHistory(sql: Sql): Promise<void> {
  await sql`select catalog_internal.add_history_chunks(ahead => true)`;
}

/** Until when no chunk is tried, in milliseconds of the clock that `pruneHistory` is given. */
export interface HistoryRest {
  untilMs: number;
}

/** Each attempt reads the seller's table again to find what refers to the chunk. */
const REFERRED_REST_MS = 3_600_000;

/**
 * Drops the chunks of price_history whose newest row is older than `olderThanMs`, oldest first, each in its own
 * transaction; returns how many. If a chunk is being read, it and all later ones wait for the next call. If a
 * seller's rows refer to it, they wait for the first call after an hour (`rest`, kept from one call to the next).
 */
export async function pruneHistory(
  sql: Sql,
  { olderThanMs }: { readonly olderThanMs: number },
  { rest, nowMs }: { readonly rest: HistoryRest; readonly nowMs: number } = {
    rest: { untilMs: 0 },
    nowMs: 0,
  },
): Promise<number> {
  if (nowMs < rest.untilMs) return 0;
  for (let dropped = 0; ; dropped += 1) {
    const [{ outcome }] = await sql<[{ outcome: string }]>`
      select catalog_internal.drop_history_chunk(${olderThanMs / 1000}) as outcome`;
    if (outcome === 'referred to') rest.untilMs = nowMs + REFERRED_REST_MS;
    if (outcome !== 'dropped') return dropped;
  }
}

/**
 * Deletes batches of changes that are older than the kept price history: positions behind its last dropped chunk,
 * which catalog.changes already refuses. Deletes at most `limit`; returns how many.
 */
export async function pruneBatches(sql: Sql, { limit }: { readonly limit: number }): Promise<number> {
  const dropped = await sql`
    delete from catalog_internal.change_batches where id in (
      select id from catalog_internal.change_batches
      where last_id <= (select last_value from catalog_internal.dropped_positions) order by last_id limit ${limit}
    )`;
  return dropped.count;
}

/** Up to which position members' history was pruned, and of which columns. Nothing before it is left to prune. */
export interface PrunedMembers {
  readonly upTo: string;
  readonly unsteady: readonly string[];
}

export const NOTHING_PRUNED: PrunedMembers = { upTo: '0', unsteady: [] };

/**
 * Deletes rows of members' history that are older than the kept price history: positions behind its last dropped
 * chunk, which catalog.changes already refuses. These are rows of `product`, and of columns that go back and forth
 * (`unsteady`), except those that say what the size keys of old prices meant. Deletes at most `limit`; returns how
 * many, and up to which position. Rows that it keeps stay for ever and are not read again: `pruned` is the previous
 * return value, which is ignored if other columns are unsteady by now, or the database is a copy at an earlier
 * position.
 */
export async function pruneMemberHistory(
  sql: Sql,
  { unsteady, limit }: { readonly unsteady: readonly string[]; readonly limit: number },
  pruned: PrunedMembers = NOTHING_PRUNED,
): Promise<{ readonly dropped: number; readonly pruned: PrunedMembers }> {
  const after = unsteady.every((column) => pruned.unsteady.includes(column)) ? pruned.upTo : '0';
  const [{ dropped, upTo }] = await sql<[{ dropped: number; upTo: string }]>`
    with span as materialized (
      select case when last_value < ${after}::bigint then 0 else ${after}::bigint end as after, last_value as up_to
      from catalog_internal.dropped_positions
    ),
    gone as (
      delete from catalog.product_history where id in (
        select id from catalog.product_history
        where id > (select after from span) and id <= (select up_to from span) and (
          field = 'product'
          or field = any (${unsteady as string[]}::text[]) and field not in ('size_type', 'size_map_size_type')
        )
        order by id limit ${limit}
      )
      returning id
    )
    select g.dropped, case when g.dropped < ${limit} then up_to else g.last end as "upTo"
    from span, (select count(*)::int as dropped, max(id) as last from gone) g`;
  return { dropped, pruned: { upTo, unsteady } };
}

/**
 * Deletes days of catalog.daily_prices older than `olderThanMs`, at most `limit`; returns how many. Later days are
 * answered as before, because each stores its opening price.
 */
export async function pruneDays(
  sql: Sql,
  { olderThanMs, limit }: { readonly olderThanMs: number; readonly limit: number },
): Promise<number> {
  const dropped = await sql`
    delete from catalog.daily_prices where ctid = any (array(
      select ctid from catalog.daily_prices
      where day < ((now() - make_interval(secs => ${olderThanMs / 1000})) at time zone 'UTC')::date order by day limit ${limit}
    ))`;
  return dropped.count;
}
