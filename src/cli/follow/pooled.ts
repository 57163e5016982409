import { within } from '../../lib/clock.ts';
import { connect, type Sql } from '../../store/connection/db.ts';
import { type Ask, PoolerError, poolingProblem, readPooling } from '../../store/connection/pooler.ts';

/** Returns whether a pooler answers, which numbers its sessions itself. */
export async function isPooled(sql: Sql): Promise<boolean> {
  const rows = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return rows[0]?.pid !== (rows as unknown as { readonly state: { readonly pid: number } }).state.pid;
}

/** A pooler whose sessions are all taken does not answer. After this time, nothing is known about it. */
const ASK_WITHIN_MS = 5000;

/** Throws PoolerError if a pooler does not keep sessions, because a session holds the name. */
export async function refuseMoving(url: string, withinMs = ASK_WITHIN_MS): Promise<void> {
  const two = [connect(url, { max: 1 }), connect(url, { max: 1 })] as const;
  const asks = two.map(
    (sql): Ask =>
      (statement) =>
        sql.unsafe(statement),
  ) as [Ask, Ask];
  const pooling = await within(readPooling(...asks), withinMs).catch(() => null);
  await Promise.all(two.map((sql) => sql.end({ timeout: 0 })));
  // Settings that the pooler may drop do not matter to a process that only follows.
  const problem = pooling === null ? null : poolingProblem({ ...pooling, dropped: [] });
  if (problem !== null) throw new PoolerError(problem.kind, problem.what, problem.hint);
}
