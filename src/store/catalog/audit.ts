import type { Queryable, Tx } from '../connection/db.ts';

/*
 * How well the delta and the mirror's own refreshes agree on snapshot-priced SKUs (partner rules 4.2.5 and 4.2.6; view
 * catalog.delta_audit). Nothing is counted that an honest upstream could be blamed for:
 *
 * - A snapshot is known to be built after a moment (`sync.built_after`) if the delta, asked with the token that came
 *   at that moment, said that there is nothing newer, and moved on to the snapshot only then.
 * - A report is "unchanged" only if the mirror knew the price as of the snapshot the report starts from: no first
 *   price and no move seen since. Otherwise a row with `reported_at` says that its report is not judged.
 * - A move is "never reported" only if the price before it was known in that way, a snapshot built since must have
 *   shown it, and a later refresh finds the same price still: a price that went back was rightly not reported.
 */

/** A refresh's relation to the delta, before its answer is applied. */
export interface Standing {
  /**
   * `report`: it answers a report. `overtaken`: a report came after it was asked. `own`: the SKU was not reported.
   * `masked`: the last manifest may have reported it, or has replaced a report. `other`: not snapshot-priced and
   * listed, or no record to compare with.
   */
  readonly standing: 'report' | 'overtaken' | 'own' | 'masked' | 'other';
  readonly comparable: boolean;
  /** Whether it is listed as snapshot-priced, with or without a record to compare with. */
  readonly listedSnapshot: boolean;
  /**
   * Its row in unreported_moves: waiting for a report, waiting although a snapshot should have shown it, or reported.
   */
  readonly kept: 'waiting' | 'overdue' | 'reported' | null;
  /** Whether its row stands for a single move: no other move that went back is hidden behind it. */
  readonly keptOnce: boolean;
  /** How many of its moves the delta has left out since it last reported one; null if none. */
  readonly missedMoves: number | null;
  readonly listedLive: boolean;
}

export type AuditFinding = 'confirmed' | 'unchanged' | 'seen' | 'overtaken' | 'overdue' | 'left';

/**
 * Returns the columns of a Standing, for a query on catalog.skus s and catalog_internal.due d; `askedAt` is the time
 * of the request.
 */
export function standingColumns(tx: Tx, askedAt: Date) {
  // asked_at has only millisecond precision.
  const reportedAt = tx`date_trunc('milliseconds', s.reported_at)`;
  const snapshot = tx`s.price_source is not distinct from 'snapshot'`;
  const manifestAt = tx`(select manifest_applied_at from catalog_internal.sync)`;
  const listedSnapshot = tx`(${snapshot} and s.in_manifest)`;
  const comparable = tx`(${listedSnapshot} and s.state = 'priced')`;
  return tx`
    case
      when ${reportedAt} > coalesce(s.asked_at, '-infinity') and ${snapshot} and ${askedAt} < ${reportedAt} then 'overtaken'
      when not ${comparable} then 'other'
      when ${reportedAt} > greatest(s.asked_at, ${manifestAt}) then 'report'
      when d.reason in ('sweep', 'missed', 'metadata') then 'own'
      when s.asked_at > ${manifestAt} then 'own'
      else 'masked'
    end as standing, ${comparable} as comparable, ${listedSnapshot} as "listedSnapshot",
    (select case when u.reported_at is not null then 'reported' when u.seen_at <= y.built_after then 'overdue' else 'waiting' end
     from catalog_internal.unreported_moves u, catalog_internal.sync y where u.sku = s.sku) as kept,
    coalesce((select u.moves = 1 from catalog_internal.unreported_moves u where u.sku = s.sku), false) as "keptOnce",
    d.missed_moves as "missedMoves", s.price_source is not distinct from 'live' as "listedLive"`;
}

type AnswerKind = 'record' | 'not_found' | 'deferred' | 'error';

/** Decides what the result of a refresh means for the audit; null if nothing. */
export function findingOf(before: Standing, answer: AnswerKind, moved: boolean): AuditFinding | null {
  const leaves = before.kept === null ? null : 'left';
  if (before.standing === 'overtaken') {
    return answer === 'record' && (moved || !before.comparable) ? 'overtaken' : null;
  }
  if (answer !== 'record' || before.standing === 'other') return leaves;
  if (before.standing === 'report') return moved ? 'confirmed' : 'unchanged';
  if (moved) return before.standing === 'own' ? 'seen' : leaves;
  if (before.kept === 'overdue') return 'overdue';
  return before.kept === 'reported' ? 'left' : null;
}

const MOST_MISSED = 1000;

/**
 * Returns how many moves of a SKU the delta is known to have left out since it last reported one, after this answer;
 * null if none. SKUs listed as live have none, because no delta reports their moves. During an incident, in which
 * every SKU is refreshed as `live`, no further move counts as left out, and the earlier number stays.
 */
export function missedMoves(
  before: Standing & { readonly live: boolean },
  finding: AuditFinding | null,
  moved: boolean,
): number | null {
  if (before.listedLive) return null;
  if (finding === 'overdue' && before.keptOnce && !before.live)
    return Math.min(MOST_MISSED, (before.missedMoves ?? 0) + 1);
  const isReported = before.standing === 'report' && (moved || before.kept === 'reported');
  return isReported ? null : before.missedMoves;
}

/**
 * Stores what the refreshes of one answer found. It locks the last rows of its transaction, and none if nothing was
 * found, because others wait for the single row of counters.
 */
export async function auditRefreshes(
  tx: Tx,
  found: readonly { readonly sku: string; readonly finding: AuditFinding }[],
  askedAt: Date,
): Promise<void> {
  if (found.length === 0) return;
  const moved = found.flatMap(({ sku, finding }) =>
    finding === 'seen' || finding === 'overtaken' ? [sku] : [],
  );
  await tx`
    with found as materialized (
      select * from unnest(${found.map(({ sku }) => sku)}::text[], ${found.map(({ finding }) => finding)}::text[])
        as f(sku, finding)
    ),
    kept as materialized (
      select u.sku, u.moves from catalog_internal.unreported_moves u
      where u.sku in (select sku from found) order by u.sku for update
    ),
    seen as (
      insert into catalog_internal.unreported_moves as u (sku, seen_at, moves, reported_at)
      select s.sku, now(), case when ${priceKnown(tx, moved, askedAt)} then 1 else 2 end,
        case when f.finding = 'overtaken' then now() end
      from found f join catalog.skus s using (sku) cross join catalog_internal.sync y
        cross join (select count(*) from kept) locked
      where f.finding in ('seen', 'overtaken')
      order by s.sku
      on conflict (sku) do update set seen_at = excluded.seen_at, reported_at = excluded.reported_at,
        moves = case when u.reported_at is null then u.moves + 1 else excluded.moves end
    ),
    settled as (
      delete from catalog_internal.unreported_moves u using found f
      where u.sku = f.sku and f.finding not in ('seen', 'overtaken') and u.sku in (select sku from kept)
    ),
    counted as (
      select count(*) filter (where finding = 'confirmed') as confirmed,
        count(*) filter (where finding = 'unchanged' and kept.sku is null) as unchanged,
        count(*) filter (where finding = 'overdue' and kept.moves = 1) as never_reported
      from found left join kept using (sku)
    )
    update catalog_internal.delta_audit a set confirmed = a.confirmed + c.confirmed,
      unchanged = a.unchanged + c.unchanged, never_reported = a.never_reported + c.never_reported
    from counted c where c.confirmed + c.unchanged + c.never_reported > 0`;
}

export interface SeenFirst {
  readonly count: number;
  readonly seconds: number;
}

/**
 * Compares the reports of a delta with the results of refreshes. Call this with the SKUs' rows locked and before
 * anything is written about them. Returns the moves that had been seen before, for countSeenFirst at the end of the
 * transaction.
 */
export async function auditReports(
  tx: Tx,
  delta: {
    readonly changed: readonly string[];
    readonly nowLive: readonly string[];
    readonly removed: readonly string[];
  },
): Promise<SeenFirst> {
  const leaving = [...new Set([...delta.nowLive, ...delta.removed])];
  const gone = new Set(leaving);
  const staying = delta.changed.filter((sku) => !gone.has(sku));
  const [seenFirst] = await tx<[SeenFirst]>`
    with kept as materialized (
      select sku, seen_at, reported_at from catalog_internal.unreported_moves
      where sku = any(${[...staying, ...leaving]}) order by sku for update
    )
    select count(*)::int as count, coalesce(sum(extract(epoch from now() - seen_at)), 0)::float8 as seconds
    from kept where reported_at is null and sku = any(${staying})`;
  if (leaving.length > 0) {
    await tx`delete from catalog_internal.unreported_moves where sku = any(${leaving})`;
  }
  if (staying.length > 0) {
    await tx`
      insert into catalog_internal.unreported_moves as u (sku, seen_at, moves, reported_at)
      select s.sku, now(), 0, now()
      from catalog.skus s cross join catalog_internal.sync y left join catalog_internal.unreported_moves k on k.sku = s.sku
      where s.sku = any(${staying}) and (k.sku is not null or s.state = 'priced'
        and not (s.in_manifest and s.price_source is not distinct from 'snapshot' and ${priceKnown(tx, staying, null)}))
      order by s.sku
      on conflict (sku) do update set reported_at = excluded.reported_at where u.reported_at is null`;
  }
  return seenFirst;
}

/**
 * Marks SKUs for which a refresh saw a move that this delta, the first that must report it, does not: their prices
 * may have gone back in between, which no delta ever reports. Call this after auditReports and before the token
 * moves.
 */
export async function markUnreported(tx: Tx, toSnapshot: string): Promise<void> {
  await tx`
    select catalog_internal.mark_due(array_agg(sku order by sku), 'changed') from (${unreported(tx, toSnapshot)}) u
    having count(*) > 0`;
}

/** SQL: the SKUs that markUnreported marks; before auditReports, also such SKUs that the delta reports. */
export function unreported(tx: Tx, toSnapshot: string) {
  return tx`
    select u.sku from catalog_internal.unreported_moves u cross join catalog_internal.sync y
    where y.caught_up and y.snapshot_id <> ${toSnapshot} and u.reported_at is null
      and u.seen_at <= y.token_at and u.seen_at > coalesce(y.built_after, '-infinity')`;
}

/** Counts moves that refreshes saw before the delta reported them. Locks the last row of its transaction. */
export async function countSeenFirst(tx: Tx, { count, seconds }: SeenFirst): Promise<void> {
  if (count === 0) return;
  await tx`
    update catalog_internal.delta_audit
    set seen_first = seen_first + ${count}, seen_first_seconds = seen_first_seconds + ${Math.max(0, seconds)}`;
}

/** Reads what has been counted so far, and how many moves wait for their reports. */
export async function readDeltaAudit(sql: Queryable): Promise<DeltaAudit> {
  const [row] = await sql<[DeltaAudit]>`
    select since, reports_confirmed::float8 as "reportsConfirmed", reports_unchanged::float8 as "reportsUnchanged",
      moves_seen_first::float8 as "movesSeenFirst",
      coalesce(seen_first_by_seconds * moves_seen_first, 0)::float8 as "seenFirstSeconds",
      moves_never_reported::float8 as "movesNeverReported", moves_waiting::float8 as "movesWaiting"
    from catalog.delta_audit`;
  return row;
}

/**
 * SQL: whether the price of the SKU `s`, one of these, at `y.built_after` is known to be the one the mirror held: it
 * had been priced by then, and no refresh but that of `refreshedAt` has seen a move since. False if `built_after` is
 * null.
 */
const priceKnown = (tx: Tx, skus: readonly string[], refreshedAt: Date | null) => tx`(
  coalesce(s.first_priced_at < date_trunc('milliseconds', y.built_after), false)
  and s.sku not in (select * from catalog_internal.moved_since_built(${skus as string[]}, ${refreshedAt}))
)`;

/*
 * Runs in a baseline's transaction, before its token is stored. A new manifest replaces a chain's reports: moves that
 * wait for a report are dropped unjudged, unless the token stays because deltas are ahead of the manifest or at the
 * same snapshot. Their SKUs are refreshed again, because a price that went back leaves the manifest's hash as it was.
 * $1 the manifest's snapshot, $2 the token when it was asked for (as in MOVE_TOKEN).
 */
export const REBASE_AUDIT = `
  with dropped as materialized (
    select u.sku from catalog_internal.unreported_moves u cross join catalog_internal.sync y
    where u.sku in (select sku from diff where crossed or kind = 'absent')
      or (u.reported_at is null and y.snapshot_id is distinct from $1
        and (y.snapshot_id is not distinct from $2 or y.chain_broken_at is not null))
    order by u.sku for update of u
  ),
  deleted as (
    delete from catalog_internal.unreported_moves u using dropped d where u.sku = d.sku returning u.sku, u.reported_at
  )
  select catalog_internal.mark_due(array_agg(sku order by sku), 'changed') from deleted
  where reported_at is null and sku not in (select sku from diff where kind = 'absent')
  having count(*) > 0`;

/** How well the delta and the mirror's own refreshes agree (view catalog.delta_audit), counted since `since`. */
export interface DeltaAudit {
  readonly since: Date;
  readonly reportsConfirmed: number;
  readonly reportsUnchanged: number;
  readonly movesSeenFirst: number;
  /** The total time by which these were seen before their reports. */
  readonly seenFirstSeconds: number;
  readonly movesNeverReported: number;
  readonly movesWaiting: number;
}

/**
 * The longest time that caches may have kept an answer, by what the partner declares for single prices: 300 seconds in
 * the client (max-age), after 600 (s-maxage) and 120 more (stale-while-revalidate) in a shared cache. Bulk answers are
 * not cached (partner rule 4.1.5), but the prices in them may be.
 */
export const LONGEST_CACHED_SECONDS = 300 + 600 + 120;
