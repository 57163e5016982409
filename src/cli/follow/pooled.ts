import { within } from '../../lib/clock.ts';
import { connect, type Sql } from '../../store/connection/db.ts';
import { type Ask, PoolerError, poolingProblem, readPooling } from '../../store/connection/pooler.ts';

/** Whether a pooler answers, which has numbers of its own for sessions. */
export async function isPooled(sql: Sql): Promise<boolean> {
  const rows = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return rows[0]?.pid !== (rows as unknown as { readonly state: { readonly pid: number } }).state.pid;
}

/** A pooler whose sessions are all taken keeps it waiting: then nothing is known. */
const ASK_WITHIN_MS = 5000;

/** Throws PoolerError where the sessions of a pooler are not kept: a name is held by a session. */
export async function refuseMoving(url: string, withinMs = ASK_WITHIN_MS): Promise<void> {
  const two = [connect(url, { max: 1 }), connect(url, { max: 1 })] as const;
  const asks = two.map(
    (sql): Ask =>
      (statement) =>
        sql.unsafe(statement),
  ) as [Ask, Ask];
  const pooling = await within(readPooling(...asks), withinMs).catch(() => null);
  await Promise.all(two.map((sql) => sql.end({ timeout: 0 })));
  // The settings that it may drop are no matter to who only follows.
  const problem = pooling === null ? null : poolingProblem({ ...pooling, dropped: [] });
  if (problem !== null) throw new PoolerError(problem.kind, problem.what, problem.hint);
}
