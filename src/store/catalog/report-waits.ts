import type { Tx } from '../connection/db.ts';

/**
 * Records how long the moves that a delta reports have waited for it, before it moves the token. They occurred after
 * the snapshot of the old token and before that of the new one, which was built after the last answer without anything
 * newer: on average in the middle of the two. Deltas after a gap in polling are left out, because p_right falls by
 * itself while no delta is read.
 */
export async function noteReportWaits(
  tx: Tx,
  delta: { readonly since: string; readonly toSnapshot: string; readonly changed: readonly string[] },
): Promise<void> {
  const reports = delta.changed.length;
  if (delta.toSnapshot === delta.since || reports === 0) return;
  await tx`
    insert into catalog_internal.report_waits as w (hour, reports, minutes)
    select date_trunc('hour', now()), ${reports}::bigint,
      ${reports}::float8 * extract(epoch from now() - least(y.token_at, c.at) + (now() - greatest(y.token_at, c.at))) / 120
    from catalog_internal.sync y, catalog_internal.settings g,
      lateral (select coalesce(y.delta_checked_at, y.manifest_applied_at) as at) c
    where c.at <= now() and y.token_at <= now() and now() - c.at <= make_interval(secs => 2 * g.delta_interval + 60)
    on conflict (hour) do update set reports = w.reports + excluded.reports, minutes = w.minutes + excluded.minutes`;
}
