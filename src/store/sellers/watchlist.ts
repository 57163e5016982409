import { type Queryable, scanning, type Sql, transaction } from '../connection/db.ts';
import { whenFree } from '../connection/locks.ts';
import { rejection } from '../connection/sql-errors.ts';

/** SQL: whether there are changes of the list that were not read yet, or that the ledger has not been told yet. */
export const WATCHLIST_MOVED = `
  exists (select from catalog_internal.watch_changes)
  or exists (select from catalog_internal.watched where pending is not null)`;

/** How many SKUs one transaction marks or ranks. Answers for these wait until it ends. */
const PIECE = 2000;

export interface WatchlistOptions {
  /** WATCHLIST_MAX_SKUS. */
  readonly most: number;
  /** Compares the whole list, instead of what the triggers recorded. */
  readonly everything: boolean;
}

/**
 * Brings what sellers have committed to catalog.watchlist into the mirror's own copy of it and into the ledger.
 * Never waits long: returns false if somebody locks what is needed (perhaps the list itself), or if another process
 * is doing this. The next call then reads what is left.
 */
export async function readWatchlist(sql: Sql, { most, everything }: WatchlistOptions): Promise<boolean> {
  const read = await whenFree(sql, 'watching', (tx) =>
    scanning(tx`select catalog_internal.read_watchlist(${everything}::boolean, ${most}::int)`),
  );
  if (read === null) return false;
  for (;;) {
    const told = await whenFree(
      sql,
      'watching',
      (tx) => tx<[{ more: boolean }]>`select catalog_internal.watched_to_ledger(${PIECE}::int) as more`,
    );
    if (told === null) return false;
    if (!told[0].more) return true;
  }
}

/** Returns how many SKUs of the list are not watched because it is too long, as of the last full read. */
export async function readLeftOut(sql: Sql): Promise<number> {
  const [row] = await sql<{ leftOut: number }[]>`select left_out as "leftOut" from catalog_internal.watching`;
  return row?.leftOut ?? 0;
}

/** How long a SKU that was never found is kept, so that whoever named it can see the result. */
const KEPT_UNFOUND_HOURS = 1;
/** How long a SKU in `errors` is kept after it was first seen: a rejected manifest line may have named it. */
const KEPT_FAILING_HOURS = 24;

export interface Forgotten {
  readonly forgotten: number;
  /** Why Postgres refused to delete one of the kept SKUs, as for a seller's foreign key; null if none was kept. */
  readonly rejected: unknown;
}

/** After Postgres has refused to delete this many SKUs, the rest waits for the next call. */
const MAX_KEPT = 100;

/**
 * Forgets at most `limit` SKUs that nobody lists or watches and that never had a price:
 * - at once, if it was watched and never asked for;
 * - after an hour, if it was asked for and not found;
 * - after a day, if it is in `errors`.
 *
 * If Postgres rejects a deletion, the batch is halved, down to the SKUs that must be kept.
 */
export async function forgetUnknown(sql: Sql, limit: number): Promise<Forgotten> {
  const found = await scanning(sql<{ sku: string }[]>`
    select s.sku from catalog.skus s join catalog_internal.due d using (sku) where ${isUnknown(sql)}
    -- Drawn, so that those which are kept each time keep back no others.
    order by random() limit ${limit}`);
  const pieces = found.length === 0 ? [] : [found.map(({ sku }) => sku)];
  let [forgotten, kept, rejected]: [number, number, unknown] = [0, 0, null];
  for (let piece = pieces.pop(); piece !== undefined && kept < MAX_KEPT; piece = pieces.pop()) {
    try {
      forgotten += await forget(sql, piece);
    } catch (error) {
      if (rejection(error) === null) throw error;
      rejected = error;
      const half = piece.length >> 1;
      if (half === 0) kept += 1;
      else pieces.push(piece.slice(half), piece.slice(0, half));
    }
  }
  return { forgotten, rejected };
}

/** SQL: whether a SKU `s` with its row `d` of the ledger may be forgotten. */
const isUnknown = (sql: Queryable) => sql`
  not s.in_manifest and s.first_priced_at is null and s.state in ('pending', 'not_found') and d.claim is null
  and not exists (select from catalog_internal.watched w where w.sku = s.sku)
  and (
    s.state = 'not_found' and s.asked_at < now() - make_interval(hours => ${KEPT_UNFOUND_HOURS})
    or s.state = 'pending' and (
      d.reason = 'watched'
      or d.failures > 0 and s.first_seen_at < now() - make_interval(hours => ${KEPT_FAILING_HOURS})
    )
  )`;

/** Forgets those of `skus` that may still be forgotten. Returns how many. */
async function forget(sql: Sql, skus: readonly string[]): Promise<number> {
  return await transaction(sql, async (tx) => {
    // A connection would reuse a plan that was good for few SKUs: for many, it compares each with each.
    await tx`set local plan_cache_mode = force_custom_plan`;
    // Joined, here and below: an array that is unknown at planning time would be searched for each row.
    const gone = await scanning(tx<{ sku: string }[]>`
      select s.sku from unnest(${skus as string[]}::text[]) as g(sku)
      join catalog.skus s on s.sku = g.sku join catalog_internal.due d on d.sku = g.sku
      where ${isUnknown(tx)} order by s.sku for update of s skip locked`);
    if (gone.length === 0) return 0;
    // SKUs that were claimed or marked meanwhile are left for the next call.
    const free = await tx<{ sku: string }[]>`
      with locked as materialized (
        select d.sku from unnest(${gone.map(({ sku }) => sku)}::text[]) as g(sku)
        join catalog_internal.due d on d.sku = g.sku
        where d.claim is null and not (d.reason = 'refresh' and d.due_at <= now())
        order by d.sku for update of d skip locked
      )
      delete from catalog_internal.due d using locked l where d.sku = l.sku returning d.sku`;
    const forgotten = free.map(({ sku }) => sku);
    // A trigger deletes everything else about them.
    await tx`delete from catalog.skus s using unnest(${forgotten}::text[]) as g(sku) where s.sku = g.sku`;
    return forgotten.length;
  });
}
