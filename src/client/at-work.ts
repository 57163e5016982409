import type { Sql } from 'postgres';
import { within } from '../lib/clock.ts';
import { asLogin } from '../store/connection/own-session.ts';
import { isByPooler } from './pooler.ts';

/** Longest time for the question, including connecting. */
const ASK_WITHIN_MS = 10_000;

/*
 * Finds the session by its pid, unless another session has that pid by now. If track_activities is off, Postgres
 * does not show what a session does; then a session in a transaction counts as at work.
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
 * Creates the driver's `isworking`: asks, on a new connection, whether Postgres is at work for a session that has
 * sent nothing for `silentMs`. Behind a pooler that session is unknown: it counts as at work, and the pooler has
 * limits of its own. Rejects if Postgres cannot be asked, or not in time.
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
