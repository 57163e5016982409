import { notingUnseenClock } from '../store/clock.ts';
import { allSent, type Queryable, type Sql, transaction, type Tx } from '../store/connection/db.ts';
import { waitForLock } from '../store/connection/locks.ts';
import { type Pause, pauseJson } from '../store/sellers/pause.ts';
import type { PaceState } from './policy.ts';

export interface PaceView {
  /** Null before the first request of this database's first daemon. */
  readonly state: PaceState | null;
  /** Times of the mirror's requests sent in the last `spanMs`, in ascending order. */
  readonly sends: readonly number[];
  /** Requests that the account's other users sent in that time, through catalog.take_request. */
  readonly others: number;
  /** The last requested pause; pace/pause.ts decides whether it still holds. */
  readonly pause: Pause | null;
  readonly now: number;
}

export interface PaceUpdate<T> {
  readonly state?: PaceState;
  /** Lane of a request to log as sent now. */
  readonly send?: string;
  readonly result: T;
}

/**
 * Calls `update` with the pace under a lock that all replicas share, and stores what it returns, in three round
 * trips. A send is committed to the log before the caller learns that it may go, so a crash in between wastes a
 * slot but never loses a send.
 */
export async function withPace<T>(
  sql: Sql,
  spanMs: number,
  update: (view: PaceView) => PaceUpdate<T>,
): Promise<{ readonly result: T; readonly sendId: string | null }> {
  const { result, sendId } = await transaction(sql, async (tx, last) => {
    // The lock and the read are sent together, in this order, but as separate statements: the clock must be read
    // after the wait for the lock.
    const [, view] = await allSent([waitForLock(tx, 'pace'), readPace(tx, spanMs)]);
    const { state, send, result } = update(view);
    const writes = allSent([
      state !== undefined && state !== view.state && writePace(tx, state),
      send === undefined ? null : logSend(tx, view.now, send),
    ]);
    last(writes);
    return { result, sendId: async () => (await writes)[1] };
  });
  return { result, sendId: await sendId() };
}

async function logSend(tx: Tx, at: number, lane: string): Promise<string> {
  const [logged] = await tx<[{ id: string }]>`
    insert into catalog_internal.pace_sends (sent_at, lane) values (${new Date(at)}, ${lane}) returning id`;
  return logged.id;
}

/** Where a process keeps the pace that it shares with others. */
export interface PaceLedger {
  readonly withPace: <T>(
    spanMs: number,
    update: (view: PaceView) => PaceUpdate<T>,
  ) => Promise<{ readonly result: T; readonly sendId: string | null }>;
  readonly unsend: (sendId: string) => Promise<void>;
}

export const ledgerIn = (sql: Sql): PaceLedger => ({
  withPace: async (spanMs, update) => await withPace(sql, spanMs, update),
  unsend: async (sendId) => await unsend(sql, sendId),
});

/** Reads the pace without a lock, for status and metrics. */
export async function readPace(sql: Queryable, spanMs: number): Promise<PaceView> {
  const [row] = await sql`
    select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now,
      (select to_jsonb(p) from (
         select ceiling, extract(epoch from raised_at) * 1000 as "raisedAt",
           extract(epoch from backoff_until) * 1000 as "backoffUntil",
           extract(epoch from half_open_sent_at) * 1000 as "halfOpenSentAt", episodes as refusals, refusal,
           extract(epoch from refused_since) * 1000 as "refusedSince",
           extract(epoch from refused_at) * 1000 as "refusedAt", occupancy, resume_at as "resumeAt"
         from catalog_internal.pace) p) as state,
      (select coalesce(array_agg(extract(epoch from sent_at)::float8 * 1000 order by sent_at), '{}')
       from catalog_internal.pace_sends
       where sent_at > clock_timestamp() - make_interval(secs => ${spanMs / 1000}) and not other_user) as sends,
      (select sent from catalog_internal.others_sent(make_interval(secs => ${spanMs / 1000}))) as others,
      ${pauseJson(sql)} as pause`;
  return row as unknown as PaceView;
}

async function writePace(tx: Tx, s: PaceState): Promise<void> {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms));
  await tx`
    with noted as (${notingUnseenClock(tx)})
    insert into catalog_internal.pace as p
      (ceiling, raised_at, backoff_until, half_open_sent_at, episodes, refusal, refused_since, refused_at, occupancy,
       resume_at)
    values (${s.ceiling}, ${time(s.raisedAt)}, ${time(s.backoffUntil)}, ${time(s.halfOpenSentAt)}, ${s.refusals},
      ${s.refusal}, ${time(s.refusedSince)}, ${time(s.refusedAt)}, ${s.occupancy}, ${s.resumeAt})
    on conflict (id) do update set ceiling = excluded.ceiling, raised_at = excluded.raised_at,
      backoff_until = excluded.backoff_until, half_open_sent_at = excluded.half_open_sent_at, episodes = excluded.episodes,
      refusal = excluded.refusal, refused_since = excluded.refused_since, refused_at = excluded.refused_at, occupancy = excluded.occupancy,
      resume_at = excluded.resume_at`;
}

/** Removes a send from the log whose request was granted but never sent. */
export async function unsend(sql: Sql, sendId: string): Promise<void> {
  await sql`delete from catalog_internal.pace_sends where id = ${sendId}`;
}

/** Deletes sends older than `olderThanMs`, which no window contains any more. Returns how many. */
export async function pruneSends(
  sql: Sql,
  { olderThanMs }: { readonly olderThanMs: number },
): Promise<number> {
  const gone = await sql`
    delete from catalog_internal.pace_sends where sent_at < now() - make_interval(secs => ${olderThanMs / 1000})`;
  return gone.count;
}
