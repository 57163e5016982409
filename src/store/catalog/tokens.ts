import { doubling } from '../../lib/duration.ts';
import { type Sql, type Tx, transaction } from '../connection/db.ts';
import { FORGET_SNAPSHOT_ID } from './learned-names.ts';
import type { NamedSnapshot } from './sync-state.ts';

/*
 * Tokens that deltas have left (catalog_internal.left_tokens). The manifest route may still serve the snapshot of such
 * a token, because it is rebuilt less often than deltas come, or a replica lags. Such a manifest is known to be older
 * than what deltas have reported since. Once a manifest sets the token, reports do not show what came in between, so
 * all left tokens are forgotten (MOVE_TOKEN): from then on only `generated_at` identifies older snapshots.
 *
 * An id may be used again, for example if the partner restores a backup of its snapshots and continues from there: a
 * snapshot that was built after deltas had left its id is another one.
 */

/**
 * SQL: whether the row `l` of left_tokens is about the snapshot of its id that was built at `generated`; `y` is the
 * row of sync. That time is of the partner's clock, which is trusted to be up to an hour ahead of ours (askManifest).
 * While build times change with each answer (`rebuilds`, isRebuilt), the time may be the answer's, so it decides
 * nothing.
 */
export const tellsOf = (generated: string): string =>
  `coalesce(${generated}::timestamptz <= l.left_at + interval '1 hour' or y.rebuilds > 0, true)`;

/** Notes that a delta leaves the present token for another one; `leftAt` is when its first report was written. */
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

/** Returns whether deltas have left this snapshot behind. */
export async function isLeft(sql: Sql, { snapshotId, generatedAt }: NamedSnapshot): Promise<boolean> {
  const [row] = await sql.unsafe<[{ left: boolean }]>(IS_LEFT, [snapshotId, generatedAt]);
  return row.left;
}

/**
 * SQL, with the token locked. `since`: from when on reports of deltas are newer than the snapshot $1, which was asked
 * for at $2, when the token was $3. `lagSeconds`: how far it lags behind them; null if it is not known to lag. If $1
 * is the present token's snapshot, reports of a delta whose last part is yet to come are newer. A delta that has left
 * $3 since may have dated its reports with its start, before $2. `isBuiltAgain`: it was built ($4) after deltas had
 * left another snapshot of its id.
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

/** Deletes all but the newest `keep`, and those that were left more than `olderThanMs` ago. */
export async function pruneLeftTokens(
  sql: Sql,
  { keep, olderThanMs }: { readonly keep: number; readonly olderThanMs: number },
): Promise<void> {
  await sql`
    delete from catalog_internal.left_tokens
    where left_at < clock_timestamp() - make_interval(secs => ${olderThanMs / 1000})
      or left_at <= (select left_at from catalog_internal.left_tokens order by left_at desc offset ${keep} limit 1)`;
}

/* What the delta route says of its token when it does not answer with a delta (partner rule 4.2.delta). */

/** The partner's codes for a fault of the catalog, by kind of error (partner rules 7.3.0012, 7.3.0014). */
const FAULT_CODES = { 'no-snapshot': '0012', 'snapshot-stale': '0014' } as const;

/** Notes a fault of the catalog, which lasts until a delta or a manifest is applied. Ignores other errors. */
export async function noteCatalogFault(sql: Sql, { kind }: { readonly kind: string }): Promise<void> {
  if (kind !== 'no-snapshot' && kind !== 'snapshot-stale') return;
  await sql`update catalog_internal.sync set catalog_fault = ${FAULT_CODES[kind]}`;
}

/** Longest wait for a manifest while the chain is broken, also after failed manifests. */
const MANIFEST_WITHIN_MS = 3_600_000;

/**
 * Notes that the chain behind `token` is broken (0010, 0013, an unusable token), so that a fresh manifest is due: at
 * once the first time; if fresh manifests do not help, after a minute, doubling to an hour. Returns false if that is
 * known already, or the token has changed. `isUnknown`: the partner has no such snapshot. If that happens to a second
 * manifest's token without a delta applied in between, the field that was read may not be the identifier, so it is
 * forgotten.
 */
export async function noteBrokenChain(sql: Sql, token: string, isUnknown = false): Promise<boolean> {
  return await transaction(sql, async (tx) => {
    const broken = await tx<{ breaks: number }[]>`
      update catalog_internal.sync
      set rejected_snapshot_id = ${token}, chain_broken_at = now(), chain_breaks = chain_breaks + 1
      where snapshot_id = ${token} and chain_broken_at is null
      returning chain_breaks as breaks`;
    const breaks = broken[0]?.breaks;
    if (breaks === undefined) {
      await bringManifestForward(tx, token);
      return false;
    }
    if (isUnknown && breaks > 1) await tx.unsafe(FORGET_SNAPSHOT_ID);
    const waitMs = breaks === 1 ? 0 : doubling(60_000, breaks - 1, MANIFEST_WITHIN_MS);
    // A manifest under way repairs the chain when it is merged. A run that has merged its manifest only has to end,
    // which would put the next run off by a whole interval; so this counts as a request that came during it.
    await tx`
      update catalog_internal.tasks t set next_at = least(
        case when t.run is not null and t.next_at <= t.started_at and t.started_at <= s.manifest_applied_at
          then 'infinity' else t.next_at end,
        clock_timestamp() + make_interval(secs => ${waitMs / 1000}))
      from catalog_internal.sync s where t.task = 'manifest'`;
    return true;
  });
}

/** Makes the manifest due within an hour while the chain behind `token` is broken, whatever has put it off. */
async function bringManifestForward(tx: Tx, token: string): Promise<void> {
  await tx`
    update catalog_internal.tasks t set next_at = within.hour
    from catalog_internal.sync s, (select clock_timestamp() + make_interval(secs => ${MANIFEST_WITHIN_MS / 1000}) as hour) within
    where t.task = 'manifest' and t.next_at > within.hour and t.next_at < 'infinity'
      and s.snapshot_id = ${token} and s.chain_broken_at is not null`;
}

/**
 * Notes that the partner accepts the rejected token again. If the manifest was only retried because it offers no other
 * token, its next run follows its schedule again, `manifestMs` after the last applied one; otherwise each stray
 * rejection would cost a download.
 */
export async function noteChainRestored(sql: Sql, manifestMs: number): Promise<void> {
  await sql`
    update catalog_internal.tasks t set failures = 0,
      next_at = greatest(clock_timestamp(), s.manifest_applied_at + make_interval(secs => ${manifestMs / 1000}))
    from catalog_internal.sync s
    where t.task = 'manifest' and t.failures > 0 and t.outcome = 'rejected-token' and t.running_until is null
      -- Else it was requested during that run.
      and t.next_at > t.finished_at and s.chain_broken_at is null`;
}
