import postgres from 'postgres';
import type { Clock } from '../../lib/clock.ts';
import { CONNECT_WITHIN_MS, endingLeftStatements, type Sql, urlOf, wayOf, pinLaterSettings } from './db.ts';
import { startupRefused } from './pooler.ts';
import { remedyOf } from './remedies.ts';
import { sessionConnection } from './session.ts';
import { DatabaseAway, DatabaseRefused, NO_TLS, permanentConnectError, sqlState } from './sql-errors.ts';

/* Waits for Postgres at startup, and tells conditions that pass from those that somebody has to change. */

const TELL_AFTER_MS = 1000;
const LOG_EVERY_MS = 20_000;
/** How often, alternately, a session with settings must be refused and one without accepted to rule out chance. */
const SURE_AFTER = 3;

/** Returns whether a connection succeeds without any settings, the mirror's or those of its URL. */
async function connectsWithoutSettings(sql: Sql): Promise<boolean> {
  const url = urlOf(sql);
  if (url === null) return false;
  const { url: bare, options: _, ...connection } = sessionConnection(url);
  const [withoutParameters] = bare.split('?', 1);
  const plain = postgres(withoutParameters ?? bare, {
    ...connection,
    max: 1,
    connect_timeout: CONNECT_WITHIN_MS / 1000,
    fetch_types: false,
  });
  try {
    await plain.unsafe('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await plain.end({ timeout: 1 });
  }
}

/**
 * Whether the server, or what answers in its place, refuses a connection, and not because it lacks resources, starts
 * or stops. By SQLSTATE alone: some poolers report that as ERROR, not FATAL.
 */
const isTurnedAway = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && !/^(?:53|57P)/.test(error.code);

/** The message if each session was refused for another reason, which may pass: then the server is not away. */
const TURNED_AWAY = {
  what: 'Postgres answers, and lets no session begin',
  hint:
    'see its message, and the log of its server: what is set for the role or the database (`\\drds` in psql), ' +
    'or for the server, can refuse sessions',
};

/**
 * Resolves once Postgres answers a query, with the milliseconds that it took. Rejects when `timeoutMs` has passed or
 * `signal` aborts, with the last reason as its cause; at once if Postgres refuses the role or such a connection, does
 * not have the database, or has a certificate that is not trusted; after a few tries if the session's settings are
 * rejected. `onWait` gets the last reason (undefined: no answer yet) after one second, and then every twenty.
 */
export async function waitForDatabase(
  sql: Sql,
  clock: Clock,
  timeoutMs: number,
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly onWait?: (reason: unknown, waitedMs: number) => void;
  } = {},
): Promise<number> {
  const { signal, onWait } = options;
  const settled = new AbortController();
  const over = AbortSignal.any([settled.signal, ...(signal === undefined ? [] : [signal])]);
  let reason: unknown;
  let settingsRefused = 0;
  const startedAt = clock.monotonic();
  const waited = () => clock.monotonic() - startedAt;
  const telling = async () => {
    await clock.sleep(TELL_AFTER_MS, over);
    while (!over.aborted) {
      onWait?.(reason, waited());
      await clock.sleep(LOG_EVERY_MS, over);
    }
  };
  const inTime = clock.sleep(timeoutMs, over).then(() => {
    const isClosed = sqlState(reason) === 'ECONNRESET' && Boolean(sql.options.ssl);
    const known = isClosed ? NO_TLS : isTurnedAway(reason) ? TURNED_AWAY : null;
    throw new DatabaseAway(reason, remedyOf(reason) ?? known);
  });
  const answered = async () => {
    while (!over.aborted) {
      try {
        await sql`select 1`;
        keepArrayTypes(sql);
        await pinLaterSettings(sql);
        await endingLeftStatements(sql);
        return;
      } catch (error) {
        const refused = permanentConnectError(error, wayOf(sql));
        if (refused !== null) throw new DatabaseRefused(refused, error);
        // Tried alternately, because a passing condition may have ended between two tries.
        const ofSettings = isTurnedAway(error) && (await connectsWithoutSettings(sql));
        settingsRefused = ofSettings ? settingsRefused + 1 : 0;
        if (settingsRefused === SURE_AFTER) throw startupRefused(error);
        reason = error;
      }
      await clock.sleep(250, over);
    }
  };
  const told = telling();
  try {
    await Promise.race([answered(), inTime]);
    return waited();
  } finally {
    settled.abort();
    await told;
  }
}

/**
 * The pool's first connection has read all array types. postgres.js would read them again on each new connection, in a
 * promise that nobody handles: a connection lost at that moment would end the process.
 */
function keepArrayTypes(sql: Sql): void {
  (sql.options as { fetch_types: boolean }).fetch_types = false;
}
