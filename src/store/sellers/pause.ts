import { type Queryable, type Sql, transaction } from '../connection/db.ts';

/** The last requested pause of requests; times are epoch milliseconds by the database's clock. */
export interface Pause {
  readonly since: number;
  /** When it was last asked for: its end may have been replaced since it began. */
  readonly setAt: number;
  /** Null if it lasts until somebody resumes. */
  readonly until: number | null;
  readonly by: string;
  /** Null if nobody has ended it. */
  readonly resumedBy: string | null;
}

/** SQL: the last pause as one JSON object; null if there never was one. */
export const pauseJson = (sql: Queryable) => sql`(
  select jsonb_build_object('since', extract(epoch from since) * 1000, 'setAt', extract(epoch from set_at) * 1000,
    'until', case when until < 'infinity' then extract(epoch from until) * 1000 end, 'by', paused_by, 'resumedBy', resumed_by)
  from catalog_internal.pause)`;

/** Reads the last pause, and the time by which to judge it. */
export async function readPause(
  sql: Queryable,
): Promise<{ readonly pause: Pause | null; readonly now: number }> {
  const [row] = await sql<[{ pause: Pause | null; now: number }]>`
    select ${pauseJson(sql)} as pause, (extract(epoch from clock_timestamp()) * 1000)::float8 as now`;
  return row;
}

/**
 * Pauses all requests for `forMs` (null: until somebody resumes). An existing pause keeps its beginning and gets a
 * new end. Returns the pause, and whether there already was one.
 */
export async function pauseRequests(
  sql: Sql,
  { forMs, by }: { readonly forMs: number | null; readonly by: string },
): Promise<{ readonly pause: Pause; readonly wasPaused: boolean }> {
  const end = forMs === null ? sql`'infinity'` : sql`at + make_interval(secs => ${forMs / 1000})`;
  const [{ wasPaused }] = await sql<[{ wasPaused: boolean }]>`
    insert into catalog_internal.pause as p (since, set_at, until, paused_by)
    select at, at, ${end}, ${by} from clock_timestamp() as present(at)
    on conflict (id) do update set
      since = case when p.resumed_by is null and p.until > excluded.set_at then p.since else excluded.since end,
      set_at = excluded.set_at, until = excluded.until, paused_by = excluded.paused_by, resumed_by = null
    returning since < set_at as "wasPaused"`;
  const { pause } = await readPause(sql);
  if (pause === null) throw new Error('the pause that was written is not there');
  return { pause, wasPaused };
}

/** Ends the pause, and the waits of tasks for its end. Returns the ended pause; null if there was none. */
export async function resumeRequests(sql: Sql, by: string): Promise<Pause | null> {
  return await transaction(sql, async (tx) => {
    const ended = await tx`
      update catalog_internal.pause set resumed_by = ${by} where resumed_by is null and until > clock_timestamp() returning 1`;
    if (ended.length === 0) return null;
    await tx`
      update catalog_internal.tasks set next_at = clock_timestamp()
      where outcome = 'paused' and next_at > clock_timestamp() and running_until is null`;
    return (await readPause(tx)).pause;
  });
}
