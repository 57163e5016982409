import { setImmediate, setTimeout } from 'node:timers/promises';
import type postgres from 'postgres';
import { asLogin } from './own-session.ts';
import { isAnswer, sqlState } from './sql-errors.ts';

/** If no connection lives for long, each attempt drops one more; the server has to end the oldest by itself. */
const MAX_DROPPED = 100;
/** Error codes of a closed pool, after which nothing is left to do. */
const CLOSED = new Set(['CONNECTION_ENDED', 'CONNECTION_DESTROYED']);

/**
 * Returns a function that ends the session of a pool's connection that was dropped because Postgres did not answer for
 * `quietMs`. Its arguments are the session's pid and a time (performance.now) by which it had begun. The session is
 * ended as soon as its server can be reached, because it would keep its locks, for hours if it waits for the rest of a
 * message. The connection used for this may be dead, too, so this is repeated until Postgres answers. A session that
 * has the pid by now but began later is left alone.
 */
export function endingDropped(
  sql: () => postgres.Sql,
  quietMs: number,
): (pid: number, begunAt: number) => void {
  const dropped = new Map<number, number>();
  let isAsking = false;

  const ask = async () => {
    // The driver is about to drop other connections, which must not be used for this.
    await setImmediate();
    for (;;) {
      const asked = [...dropped];
      const isOver = await endBegunBy(sql(), asked).then(
        () => true,
        // Any other answer, such as a missing privilege, would be the same the next time.
        (error: unknown) => isAnswer(error) || CLOSED.has(sqlState(error) ?? ''),
      );
      if (isOver) for (const [pid, begunAt] of asked) if (dropped.get(pid) === begunAt) dropped.delete(pid);
      if (dropped.size === 0) break;
      await setTimeout(quietMs, undefined, { ref: false });
    }
    isAsking = false;
  };

  return (pid, begunAt) => {
    dropped.delete(pid);
    dropped.set(pid, begunAt);
    for (const oldest of dropped.keys()) if (dropped.size > MAX_DROPPED) dropped.delete(oldest);
    if (isAsking) return;
    isAsking = true;
    void ask();
  };
}

/** Ends those of the given sessions (pid, time by which it had begun) that still exist. */
async function endBegunBy(
  sql: postgres.Sql,
  dropped: readonly (readonly [pid: number, begunAt: number])[],
): Promise<void> {
  const now = performance.now();
  const pids = dropped.map(([pid]) => pid);
  const ages = dropped.map(([, begunAt]) => (now - begunAt) / 1000);
  await asLogin(
    sql,
    (tx) => tx`
      select pg_terminate_backend(pid)
      from unnest(${pids}::int[], ${ages}::float8[]) as dropped(pid, age) join pg_stat_activity using (pid)
      where usename = session_user and datname = current_database()
        and application_name = current_setting('application_name')
        and backend_start < clock_timestamp() - make_interval(secs => age)`,
  );
}
