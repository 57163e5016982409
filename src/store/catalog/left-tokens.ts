import type { Sql, Tx } from '../connection/db.ts';
import type { NamedSnapshot } from './sync-state.ts';

/*
 * Tokens that deltas have left (catalog_internal.left_tokens): the manifest route may still serve the snapshot of one,
 * as it is rebuilt more rarely than deltas come, or a replica lags. Such a manifest is known to be older than what
 * deltas have reported since. Once a manifest sets the token, what came between is not known by reports, and all of
 * them are forgotten (MOVE_TOKEN): from then on `generated_at` alone tells older snapshots.
 *
 * An id may be used again, as where the partner restores a backup of its snapshots and builds on: a snapshot that was
 * built after deltas had left its id is another one.
 */

/**
 * SQL: whether the row `l` of left_tokens tells of the snapshot of its id that was built at `generated`, beside the
 * state `y`. Its time is of the partner's clock, and believed up to an hour ahead of ours (askManifest). While no time
 * stands still, since manifests of snapshots that were built again, it may be that of the answer (isRebuilt).
 */
export const tellsOf = (generated: string): string =>
  `coalesce(${generated}::timestamptz <= l.left_at + interval '1 hour' or y.rebuilds > 0, true)`;

/** Notes that a delta leaves the present token for another one; `leftAt`: when its first report was written. */
export async function noteLeft(tx: Tx, toSnapshot: string, leftAt: Date): Promise<void> {
  await tx`
    insert into catalog_internal.left_tokens (token, left_at)
    select snapshot_id, ${leftAt} from catalog_internal.sync where snapshot_id <> ${toSnapshot}
    on conflict (token) do update set left_at = excluded.left_at`;
}

const IS_LEFT = `
  select exists (
    select from catalog_internal.left_tokens l, catalog_internal.sync y
    where l.token = $1 and y.snapshot_id is distinct from l.token and ${tellsOf('$2')}
  ) as left`;

/** Whether deltas have left this snapshot behind. */
export async function isLeft(sql: Sql, { snapshotId, generatedAt }: NamedSnapshot): Promise<boolean> {
  const [row] = await sql.unsafe<[{ left: boolean }]>(IS_LEFT, [snapshotId, generatedAt]);
  return row.left;
}

/**
 * SQL, with the token locked: from when on (`since`) reports of deltas are newer than the snapshot $1, which was asked
 * for at $2, when the token was $3; and by how many seconds it lags behind them, null where it is not known to. Of the
 * present token's snapshot those are newer that a delta has written whose last part is yet to come. A delta that has
 * left $3 since may have dated its reports before $2, by when it began. It was built at $4: `isBuiltAgain`, after
 * deltas had left another one of its id.
 */
export const REPORTED_SINCE = `
  select least($2::timestamptz, case when y.snapshot_id is not distinct from $1 then y.token_at + interval '1 microsecond'
      else least(l.left_at, r.left_at) end)::text as since,
    case when y.snapshot_id <> $1 and l.left_at is not null then greatest(0, extract(epoch from now() - l.left_at))::int end
      as "lagSeconds",
    y.snapshot_id <> $1 and l.token is null and exists (select from catalog_internal.left_tokens where token = $1)
      as "isBuiltAgain"
  from catalog_internal.sync y left join catalog_internal.left_tokens l on l.token = $1 and ${tellsOf('$4')}
  left join catalog_internal.left_tokens r on r.token = $3 and y.snapshot_id is distinct from $3`;

export interface ReportedSince {
  readonly since: string;
  readonly lagSeconds: number | null;
  readonly isBuiltAgain: boolean;
}

/** Drops all but the newest `keep`, and those that were left before `olderThanMs`. */
export async function pruneLeftTokens(
  sql: Sql,
  { keep, olderThanMs }: { readonly keep: number; readonly olderThanMs: number },
): Promise<void> {
  await sql`
    delete from catalog_internal.left_tokens
    where left_at < clock_timestamp() - make_interval(secs => ${olderThanMs / 1000})
      or left_at <= (select left_at from catalog_internal.left_tokens order by left_at desc offset ${keep} limit 1)`;
}
