import { scanning, type Sql, transaction } from '../connection/db.ts';
import { inTurn } from '../connection/locks.ts';

/** SQL: whether there are changes of the list that were not read yet, or that the ledger was not told yet. */
export const WATCHLIST_MOVED = `
  exists (select from catalog_internal.watch_changes)
  or exists (select from catalog_internal.watched where pending is not null)`;

/** SKUs that are marked or weighed in one transaction: answers for these wait until it ends. */
const PIECE = 2000;

export interface WatchlistOptions {
  /** WATCHLIST_MAX_SKUS. */
  readonly most: number;
  /** Compares the whole list, instead of what its triggers recorded. */
  readonly everything: boolean;
}

/**
 * Brings what sellers have committed to catalog.watchlist into the mirror's own copy of it and into the ledger. Never
 * waits for long: false where somebody holds what is needed (the list itself, perhaps), or another process is at it;
 * what is left is then read by the next.
 */
export async function readWatchlist(sql: Sql, { most, everything }: WatchlistOptions): Promise<boolean> {
  const read = await inTurn(sql, 'watching', (tx) =>
    scanning(tx`select catalog_internal.read_watchlist(${everything}::boolean, ${most}::int)`),
  );
  if (read === null) return false;
  for (;;) {
    const told = await inTurn(
      sql,
      'watching',
      (tx) => tx<[{ more: boolean }]>`select catalog_internal.watched_to_ledger(${PIECE}::int) as more`,
    );
    if (told === null) return false;
    if (!told[0].more) return true;
  }
}

/** SKUs of the list that are not watched, because so many are; as of the last time that all of it was read. */
export async function readLeftOut(sql: Sql): Promise<number> {
  const [row] = await sql<{ leftOut: number }[]>`select left_out as "leftOut" from catalog_internal.watching`;
  return row?.leftOut ?? 0;
}

/** How long a SKU that was never found is kept, so that whoever named it can see that. */
const KEPT_UNFOUND_HOURS = 1;

/**
 * Forgets SKUs that nobody lists or watches and that never had a price: at most `limit` of them. What was watched and
 * never asked for is forgotten at once, what was asked for in vain after an hour. Returns how many.
 */
export async function forgetUnknown(sql: Sql, limit: number): Promise<number> {
  return await transaction(sql, async (tx) => {
    // A connection keeps the plan that was good while there were few: with many, it compares each with each.
    await tx`set local plan_cache_mode = force_custom_plan`;
    const gone = await scanning(tx<{ sku: string }[]>`
      select s.sku from catalog.skus s join catalog_internal.due d using (sku)
      where not s.in_manifest and s.first_priced_at is null and s.state in ('pending', 'not_found') and d.claim is null
        and not exists (select from catalog_internal.watched w where w.sku = s.sku)
        and (s.state = 'not_found' and s.asked_at < now() - make_interval(hours => ${KEPT_UNFOUND_HOURS}) or s.state = 'pending' and (d.reason in ('watched', 'scope') or d.failures > 0))
      order by s.sku limit ${limit} for update of s skip locked`);
    if (gone.length === 0) return 0;
    const skus = gone.map(({ sku }) => sku);
    // One that was claimed meanwhile, or marked by somebody, is left for the next time. Joined, because an array that
    // is not known when the statement is planned would be searched for each row.
    const free = await tx<{ sku: string }[]>`
      with locked as materialized (
        select d.sku from unnest(${skus}::text[]) as g(sku) join catalog_internal.due d on d.sku = g.sku
        where d.claim is null and not (d.reason = 'refresh' and d.due_at <= now())
        order by d.sku for update of d skip locked
      )
      delete from catalog_internal.due d using locked l where d.sku = l.sku returning d.sku`;
    const forgotten = free.map(({ sku }) => sku);
    // All else that there is of them goes with them, by a trigger.
    await tx`delete from catalog.skus s using unnest(${forgotten}::text[]) as g(sku) where s.sku = g.sku`;
    return forgotten.length;
  });
}
