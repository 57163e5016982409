import postgres from 'postgres';
import type { Sql } from 'postgres';
import { postgresConnection } from '../lib/tls.ts';
import { endingDropped } from '../store/connection/dropped-sessions.ts';
import { askingAtWork } from './at-work.ts';
import { FollowError } from './errors.ts';

/**
 * Where the mirror is. `sql`: a client of yours (`postgres` 3.4), which stays open. `url`: the package opens a
 * client of its own, with libpq's meaning of `sslmode`, and closes it at the end.
 */
export type Source =
  | { readonly sql: Sql; readonly url?: undefined }
  | { readonly url: string; readonly sql?: undefined };

/**
 * A connection that brings nothing for this long while an answer is due counts as lost, unless Postgres says on
 * another one that it is still at work: a batch may take any time to apply, and wait for any lock.
 */
const ANSWER_WITHIN_MS = 60_000;
const KEEP_ALIVE_SECONDS = 10;
const CONNECT_WITHIN_SECONDS = 10;
/** Time for what is under way when following ends. */
const END_WITHIN_SECONDS = 5;

/** A client, and the function that closes it if it is our own. */
export interface OpenSource {
  readonly sql: Sql;
  readonly close: () => Promise<void>;
}

/**
 * Opens a source, which connects with its first statement. A session whose connection was lost is terminated,
 * because it would keep the position's lock. Throws TlsParameterError, and FollowError of kind `invalid`.
 */
export function openSource(source: Source, answerWithinMs = ANSWER_WITHIN_MS): OpenSource {
  if (source.sql !== undefined) return { sql: source.sql, close: () => Promise.resolve() };
  if (typeof source.url !== 'string')
    throw new FollowError('invalid', 'neither sql nor url is given', 'give one of them');
  const { url, ...tls } = postgresConnection(source.url);
  const connection = {
    ...tls,
    onnotice: () => {},
    keep_alive: KEEP_ALIVE_SECONDS,
    connect_timeout: CONNECT_WITHIN_SECONDS,
    connection: { application_name: 'catalog-mirror-follow' },
  };
  const limits = {
    answer_timeout: answerWithinMs / 1000,
    isworking: askingAtWork(() => postgres(url, { ...connection, max: 1 })),
    ondropped: endingDropped(() => sql, answerWithinMs),
  };
  const sql: Sql = postgres(url, { ...connection, max: 2, ...limits });
  return { sql, close: () => sql.end({ timeout: END_WITHIN_SECONDS }) };
}

const CHANNEL = 'catalog_changes';
/** Polling interval while no notifications come. */
const POLL_UNHEARD_MS = 5000;
/** After refusals, at most this power of two in polls passes before it tries to listen again. */
const RAREST_TRY = 10;
/** A server that is away must not delay the end. */
const UNLISTEN_WITHIN_MS = 1000;

/** Waits for news: a notification, the next poll, or the end. */
export interface News {
  /** Resolves once something may be new, or `signal` aborts. `hasFound`: something was new since the last wait. */
  wait(hasFound?: boolean): Promise<void>;
  close(): Promise<void>;
}

/**
 * Returns whether the server takes LISTEN. A standby refuses it, and the driver remembers a refusal, and each
 * listener, for the life of its connection, even after a promotion.
 */
async function takesListeners(sql: Sql): Promise<boolean> {
  const rows = await sql
    .unsafe('select pg_is_in_recovery()::text')
    .values()
    .catch(() => []);
  return (rows as unknown[][])[0]?.[0] === 'false';
}

/**
 * Listens if that is possible, and again each time that it is asked to. After refusals it tries ever more rarely,
 * because the driver keeps each listener, and remembers a refusal, which may come from a standby that was promoted
 * since. On a standby it does not try.
 */
function listenerOf(sql: Sql, hear: () => void, tell: () => void) {
  let listening: { unlisten(): Promise<void> } | null = null;
  let isClosed = false;
  let refusals = 0;
  let pollsLeft = 0;
  /** Once it listens, there may be changes of which no notification came. */
  const tryToListen = async () => {
    if (pollsLeft > 0) {
      pollsLeft -= 1;
      return null;
    }
    const made = await sql.listen(CHANNEL, hear, tell).catch(() => null);
    refusals = made === null ? Math.min(RAREST_TRY, refusals + 1) : 0;
    pollsLeft = 2 ** refusals - 1;
    return made;
  };
  return {
    isListening: () => listening !== null,
    async listen() {
      const before = listening;
      listening = (await takesListeners(sql)) ? await tryToListen() : null;
      if (isClosed) void listening?.unlisten().catch(() => {});
      // Not sooner, or the driver would stop listening in between.
      await before?.unlisten().catch(() => {});
    },
    async close() {
      isClosed = true;
      await listening?.unlisten().catch(() => {});
    },
  };
}

/**
 * Listens for notifications of changes. If that is impossible, or no longer works, it polls more often and tries to
 * listen again now and then. It also polls more often if a poll finds what no notification announced, as happens
 * behind a pooler or on a dead connection, until one comes. `sleep` must end early, without an error, when its
 * signal aborts.
 */
export function listenForNews(
  sql: Sql,
  {
    pollMs,
    sleep,
    signal,
  }: {
    readonly pollMs: number;
    readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
    readonly signal: AbortSignal | undefined;
  },
): News {
  let isNews = false;
  let isPolled = false;
  let isDeaf = false;
  let wake = () => {};
  const tell = () => {
    isNews = true;
    wake();
  };
  const hear = () => {
    isDeaf = false;
    tell();
  };
  const listener = listenerOf(sql, hear, tell);
  let trying: Promise<void> | null = null;
  const unheardMs = Math.min(pollMs, POLL_UNHEARD_MS);
  /** Listening takes another connection, for which a pooler may make it wait indefinitely: no poll waits for it. */
  const listenUntilPoll = async (over: AbortSignal) => {
    trying ??= listener.listen().finally(() => {
      trying = null;
    });
    const listens = new AbortController();
    await Promise.race([trying, sleep(unheardMs, AbortSignal.any([over, listens.signal]))]);
    listens.abort();
  };
  return {
    async wait(hasFound = false) {
      isDeaf ||= isPolled && hasFound;
      const over = new AbortController();
      const stop = () => over.abort();
      wake = stop;
      signal?.addEventListener('abort', stop, { once: true });
      if (signal?.aborted === true) stop();
      if (!listener.isListening() || isPolled) await listenUntilPoll(over.signal);
      const ms = !listener.isListening() || isDeaf ? unheardMs : pollMs;
      if (!isNews && !over.signal.aborted && trying === null) await sleep(ms, over.signal);
      signal?.removeEventListener('abort', stop);
      isPolled = !over.signal.aborted && !isNews;
      isNews = false;
    },
    async close() {
      const over = new AbortController();
      await Promise.race([listener.close(), sleep(UNLISTEN_WITHIN_MS, over.signal)]);
      over.abort();
    },
  };
}
