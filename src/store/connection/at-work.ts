import postgres from 'postgres';
import { type Neighbour, neighbourText, readNeighbours } from './neighbours.ts';
import { asLogin } from './own-session.ts';

/*
 * A statement without an answer is lost, or Postgres is at work on it: a seller's trigger or foreign key may take any
 * time. Before its connection counts as dead, Postgres is asked on another connection.
 */

/** A statement of the mirror that Postgres was at work on when asked. */
export interface StatementAtWork {
  readonly pid: number;
  readonly seconds: number;
  /** What it waited for: type and event as Postgres names them; null if nothing, or if that is not shown. */
  readonly waitsFor: string | null;
  /** Sessions that it waited for. */
  readonly blockers: readonly string[];
  /** Other owners' tables that it was reading or writing. */
  readonly tables: readonly string[];
  /** What others have attached to the tables that it wrote, if that may take long. */
  readonly attached: readonly string[];
}

type Found = Omit<StatementAtWork, 'attached'> & {
  /** The mirror's tables. */
  readonly written: readonly string[];
};

/**
 * Reads what sessions of pg_stat_activity are doing; `which` is a condition on `a`. Acts as the role that logged in.
 */
async function readWork(
  tx: postgres.TransactionSql,
  which: postgres.Fragment,
): Promise<(StatementAtWork & { readonly writes: boolean })[]> {
  const found = await tx<Found[]>`
    select a.pid, coalesce(extract(epoch from clock_timestamp() - a.query_start), 0)::float8 as seconds,
      nullif(concat_ws(': ', a.wait_event_type, a.wait_event), '') as "waitsFor",
      array(
        select concat('process ', b.pid, ' of Postgres (role ', coalesce(b.usename, 'unknown'),
          case when b.application_name <> '' then concat(', application ', b.application_name) end, ')')
        from pg_stat_activity b where b.pid = any (pg_blocking_pids(a.pid)) order by b.pid) as blockers,
      array(
        select distinct l.relation::regclass::text
        from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
        where l.pid = a.pid and l.granted and c.relkind in ('r', 'p')
          and n.nspname not in ('catalog', 'catalog_internal') and n.nspname !~ '^pg_') as tables,
      array(
        select distinct l.relation::regclass::text
        from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
        where l.pid = a.pid and l.granted and l.mode = 'RowExclusiveLock' and c.relkind in ('r', 'p')
          and n.nspname in ('catalog', 'catalog_internal')) as written
    from pg_stat_activity a where ${which} order by seconds desc, a.pid`;
  if (found.length === 0) return [];
  const slow = (await readNeighbours(tx)).filter(isSlow);
  return found.map(({ written, ...statement }) => ({
    ...statement,
    attached: slow.filter(({ table }) => written.includes(table)).map(neighbourText),
    writes: written.length > 0,
  }));
}

/**
 * Returns the statement that the session `pid`, which has not answered for `silentMs`, is at work on; null if the
 * session is idle, waits for its client, or is gone. Postgres does not show the activity of another login's session
 * (after a rotation), or of any with track_activities off: then being in a transaction counts as being at work.
 */
async function readAtWork(sql: postgres.Sql, pid: number, silentMs: number): Promise<StatementAtWork | null> {
  return await asLogin(sql, async (tx) => {
    const [statement] = await readWork(
      tx,
      tx`
        a.pid = ${pid} and a.datname = current_database()
        -- Another session that has its number by now.
        and coalesce(a.backend_start < clock_timestamp() - make_interval(secs => ${(silentMs * 0.9) / 1000}), true)
        and case when coalesce(a.state, 'disabled') = 'disabled'
          then exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'virtualxid')
          else a.state = 'active' and a.wait_event_type is distinct from 'Client' end`,
    );
    if (statement === undefined) return null;
    const { writes: _, ...known } = statement;
    return { ...known, seconds: silentMs / 1000 };
  });
}

/** Whether a statement may take long because of this neighbour. */
const isSlow = ({ kind, indexed }: Neighbour): boolean => kind === 'trigger' || indexed === false;

/**
 * Decides whether a statement unanswered for `silentMs` may have `withinMs` more if Postgres is at work on it;
 * `workWithinMs` limits the total. Pure.
 */
export const mayWaitOn = (silentMs: number, withinMs: number, workWithinMs: number): boolean =>
  silentMs + withinMs <= workWithinMs;

export interface WorkWatch {
  /** Returns whether Postgres is at work on the session's statement. Rejects if it cannot be asked in time. */
  readonly isWorking: (pid: number, silentMs: number, withinMs: number) => Promise<boolean>;
  /** The statements recently found at work. */
  readonly present: () => readonly StatementAtWork[];
}

interface WatchOptions {
  /** Opens a pool of one connection: those of the pool itself may be just as unresponsive, or busy. */
  readonly open: () => postgres.Sql;
  /** Asked if Postgres has no connection left. */
  readonly pool: () => postgres.Sql;
  readonly workWithinMs: number;
}

/**
 * Longest time that such a question may take: asked after two thirds of `ANSWER_WITHIN_MS`, it ends with that limit.
 */
const ASK_WITHIN_MS = 10_000;

/** Asks after a pool's unanswered statements. Without any, nothing is asked and no connection is open. */
export function watchWork({ open, pool, workWithinMs }: WatchOptions): WorkWatch {
  const found = new Map<number, { readonly statement: StatementAtWork; readonly until: number }>();

  let own: { readonly sql: postgres.Sql; users: number } | null = null;

  async function ask(pid: number, silentMs: number): Promise<StatementAtWork | null> {
    // Statements that become overdue together are asked after on one connection.
    own ??= { sql: open(), users: 0 };
    const mine = own;
    mine.users += 1;
    try {
      return await readAtWork(mine.sql, pid, silentMs);
    } catch (error) {
      if (!(error instanceof postgres.PostgresError)) throw error;
      return await readAtWork(pool(), pid, silentMs);
    } finally {
      mine.users -= 1;
      if (mine.users === 0) {
        if (own === mine) own = null;
        void mine.sql.end({ timeout: 0 });
      }
    }
  }

  return {
    async isWorking(pid, silentMs, withinMs) {
      found.delete(pid);
      if (!mayWaitOn(silentMs, withinMs, workWithinMs)) return false;
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        // The next question must not wait for the same connection.
        own = null;
        late.reject(new Error('not in time'));
      }, ASK_WITHIN_MS);
      try {
        const statement = await Promise.race([ask(pid, silentMs), late.promise]);
        if (statement !== null) found.set(pid, { statement, until: performance.now() + withinMs });
        return statement !== null;
      } finally {
        clearTimeout(timer);
      }
    },
    present() {
      const now = performance.now();
      for (const [pid, { until }] of found) if (until < now) found.delete(pid);
      return [...found.values()].map(({ statement }) => statement);
    },
  };
}

/** The wait of a COMMIT whose synchronous standby (synchronous_standby_names) is away. */
const STANDBY = 'IPC: SyncRep';

/** Whether it has done all its work, and waits for a synchronous standby to receive it. */
export const waitsForStandby = ({ waitsFor }: Pick<StatementAtWork, 'waitsFor'>): boolean =>
  waitsFor === STANDBY;

/** Describes what the statement is doing, as far as Postgres says; empty if Postgres says nothing. */
export function atWorkText(statement: StatementAtWork): string {
  const { blockers, tables, attached } = statement;
  if (waitsForStandby(statement))
    return 'its COMMIT waits for a synchronous standby of synchronous_standby_names that does not answer';
  return [
    blockers.length > 0 && `it waits for ${blockers.join(', ')}`,
    tables.length > 0 && `it is at ${tables.join(', ')}`,
    attached.length > 0 && `what it writes has ${attached.join('; ')}`,
  ]
    .filter((part) => part !== false)
    .join('; ');
}

/** Statements count as slow after this time, which is the ANSWER_WITHIN_MS of a daemon's pool. */
const SLOW_SECONDS = 30;

/**
 * Reads the mirror's statements that write its tables and have taken long because of something that is not the
 * mirror's: a trigger, a foreign key, tables that these read, or a synchronous standby. Statements that take long by
 * themselves, such as those of a large manifest, are left out.
 */
export async function readSlowStatements(
  sql: postgres.Sql,
  slowSeconds = SLOW_SECONDS,
): Promise<StatementAtWork[]> {
  const found = await asLogin(sql, (tx) =>
    readWork(
      tx,
      tx`
        a.datname = current_database() and a.application_name like 'catalog-mirror%' and a.pid <> pg_backend_pid()
        and a.state = 'active' and a.wait_event_type is distinct from 'Client'
        and a.query_start < clock_timestamp() - make_interval(secs => ${slowSeconds})`,
    ),
  );
  return found.flatMap(({ writes, ...statement }) =>
    writes && (waitsForStandby(statement) || statement.tables.length > 0 || statement.attached.length > 0)
      ? [statement]
      : [],
  );
}
