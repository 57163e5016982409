import type { Sql } from 'postgres';
import { within } from '../lib/clock.ts';
import { asLogin } from '../store/connection/own-session.ts';
import { isByPooler } from './pooler.ts';

/** Longest time that the question may take, connecting included. */
const ASK_WITHIN_MS = 10_000;

/*
 * By the session's number, unless another has it by now. What a session does is not shown where track_activities is
 * off: then one in a transaction counts as at work.
 */
const AT_WORK = `
  select pg_backend_pid() as asking, exists (
    select from pg_stat_activity a
    where a.pid = $1::text::bigint and a.datname = current_database()
      and a.backend_start < clock_timestamp() - make_interval(secs => $2::text::float8)
      and case when coalesce(a.state, 'disabled') = 'disabled'
        then exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'virtualxid')
        else a.state = 'active' and a.wait_event_type is distinct from 'Client' end
  ) as works`;

/**
 * For the driver's `isworking`: asks, on a connection that is made for it, whether Postgres is at work for a session of
 * which nothing was heard for so long. Behind a pooler nobody knows which session that is: it counts as at work, and
 * the pooler has limits of its own. Rejects where it cannot be asked, or not in time.
 */
export function askingAtWork(open: () => Sql): (pid: number, silentMs: number) => Promise<boolean> {
  return async (pid, silentMs) => {
    const sql = open();
    const asking = asLogin(sql, async (tx) => {
      const rows = await tx.unsafe<{ asking: number; works: boolean }[]>(AT_WORK, [
        String(pid),
        String((silentMs * 0.9) / 1000),
      ]);
      return isByPooler(rows, rows[0]?.asking) || rows[0]?.works === true;
    });
    try {
      return await within(asking, ASK_WITHIN_MS);
    } finally {
      void sql.end({ timeout: 0 });
    }
  };
}
