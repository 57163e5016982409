import postgres from 'postgres';
import type { Sql } from 'postgres';
import { postgresConnection } from '../lib/tls.ts';
import { endingDropped } from '../store/connection/dropped-sessions.ts';
import { askingAtWork } from './at-work.ts';
import { FollowError } from './errors.ts';

/**
 * Where the mirror is. `sql`: a client of yours (`postgres` 3.4), which stays open. `url`: a client of the package's
 * own is opened, with libpq's meaning of `sslmode`, and closed at the end.
 */
export type Source =
  | { readonly sql: Sql; readonly url?: undefined }
  | { readonly url: string; readonly sql?: undefined };

/**
 * A connection that is silent for so long while an answer is due counts as lost, whatever the network says, unless
 * Postgres says on another one that it is at work on it: a batch may take any time to apply, and wait for any lock.
 */
const ANSWER_WITHIN_MS = 60_000;
const KEEP_ALIVE_SECONDS = 10;
const CONNECT_WITHIN_SECONDS = 10;
/** For what is under way when the end comes. */
const END_WITHIN_SECONDS = 5;

/** A client, and what closes it where it is our own. */
export interface OpenSource {
  readonly sql: Sql;
  readonly close: () => Promise<void>;
}

/**
 * Opens a source; connects with the first statement. A session whose connection was silent is ended, for it would keep
 * the position's lock. Throws TlsParameterError, FollowError of kind `invalid`.
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
/** Without notifications. */
const POLL_UNHEARD_MS = 5000;
/** At most so many polls, as a power of two, until it tries to listen again where that was refused. */
const RAREST_TRY = 10;
/** A server that is away does not keep anybody from ending. */
const UNLISTEN_WITHIN_MS = 1000;

/** Waits for news: a notification, the next poll, or the end. */
export interface News {
  /**
   * Resolves as soon as something may be new, or `signal` aborts. `hasFound`: there was something new since the last
   * wait.
   */
  wait(hasFound?: boolean): Promise<void>;
  close(): Promise<void>;
}

/**
 * A standby refuses LISTEN, and the driver remembers a refusal, and each listener, for as long as its connection
 * lives: also beyond a promotion.
 */
async function takesListeners(sql: Sql): Promise<boolean> {
  const rows = await sql
    .unsafe('select pg_is_in_recovery()::text')
    .values()
    .catch(() => []);
  return (rows as unknown[][])[0]?.[0] === 'false';
}

/**
 * Listens where that can be done, and anew each time that it is told to: ever more rarely where it is refused, because
 * the driver remembers a refusal, which it may have had from a standby that was promoted since, and keeps each
 * listener. On a standby it does not try.
 */
function listenerOf(sql: Sql, hear: () => void, tell: () => void) {
  let listening: { unlisten(): Promise<void> } | null = null;
  let isClosed = false;
  let refusals = 0;
  let pollsLeft = 0;
  /** Once it listens there may be what nobody has told of. */
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
 * Listens for notifications of changes. Where that cannot be done, or no longer, it polls more often, and tries to
 * listen again now and then. Where a poll finds what no notification has told of, as behind a pooler or on a connection
 * that has fallen silent, it polls more often, too, until one comes. `sleep` ends early, without an error, when its
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
  /** It takes a connection more, for which a pooler may keep it waiting any time: no poll waits for that. */
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
