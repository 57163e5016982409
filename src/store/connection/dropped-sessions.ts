import { setImmediate, setTimeout } from 'node:timers/promises';
import type postgres from 'postgres';
import { asLogin } from './own-session.ts';
import { isAnswer, sqlState } from './sql-errors.ts';

/** Of a line on which no connection lives for long each attempt drops one more; the oldest are the server's to end. */
const MAX_DROPPED = 100;
/** Codes of a driver whose pool is closed: nobody asks any more. */
const CLOSED = new Set(['CONNECTION_ENDED', 'CONNECTION_DESTROYED']);

/**
 * Returns a function that ends the session of a pool's connection that was dropped because it said nothing for
 * `quietMs`. Its arguments are the session's pid and a time (performance.now) by which it had begun. The session is
 * ended as soon as its server can be reached, because it would keep its locks, for hours if it waits for the rest of a
 * message. The connection used for this may have fallen silent, too, so this is tried until Postgres has heard it.
 * Another session that has that pid by now began later, and is left.
 */
export function endingDropped(
  sql: () => postgres.Sql,
  quietMs: number,
): (pid: number, begunAt: number) => void {
  const dropped = new Map<number, number>();
  let isAsking = false;

  const ask = async () => {
    // The driver is about to drop others, which this is not to be sent on.
    await setImmediate();
    for (;;) {
      const asked = [...dropped];
      const isOver = await endBegunBy(sql(), asked).then(
        () => true,
        // An answer of another kind, such as that this role may not, is the same the next time.
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

/** Ends those of the sessions (pid, by when it had begun) that are still the same ones. */
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
