import postgres from 'postgres';
import { choosesNothing, databaseOf, loginOf, nameOf } from '../../lib/connection-url.ts';
import { type PostgresConnection, postgresConnection, withoutTls } from '../../lib/tls.ts';

/**
 * If a process freezes in the middle of a transaction (a paused container), Postgres ends the transaction after this
 * time, so that its locks block no other process.
 */
const IDLE_TRANSACTION_MS = 10_000;

/**
 * Settings of every session of every driver, sent as it starts, so that settings of the role, the database or the
 * server do not change them. All exist since PostgreSQL 14. Not included, because the administrator decides them:
 * `default_transaction_read_only` (the mirror reports that it cannot write), `synchronous_commit`, tablespaces,
 * `role`, memory and the planner's costs.
 */
export const SESSION = {
  // Anyone who may create in a schema of the path can have objects called instead of Postgres's functions and
  // operators.
  search_path: 'pg_catalog',
  default_transaction_isolation: 'read committed',
  // How values are formatted and parsed, by the drivers and in casts.
  client_encoding: 'UTF8',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  xmloption: 'content',
  // What a statement means.
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  backslash_quote: 'safe_encoding',
  transform_null_equals: 'off',
  row_security: 'on',
  quote_all_identifiers: 'off',
  check_function_bodies: 'on',
  'plpgsql.extra_errors': 'none',
  exit_on_error: 'off',
  // Migrations report what they do by notices.
  client_min_messages: 'notice',
  // The mirror never holds a lock for this long. A statement that waits longer fails, releases the locks of its
  // transaction, and is tried again.
  lock_timeout: '20s',
  // A baseline takes minutes, and pooled connections may idle for hours. The daemon ends what it no longer waits for.
  statement_timeout: '0',
  idle_session_timeout: '0',
  idle_in_transaction_session_timeout: String(IDLE_TRANSACTION_MS),
  // A server that cannot reach the daemon keeps the session, its locks and its connection slot for a minute, not
  // hours.
  tcp_keepalives_idle: '30',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '3',
  // A statement that plans a call is large and takes milliseconds; compiling it would take seconds each time.
  jit: 'off',
} as const;

/**
 * More such settings, which not every release since 14 knows: there, naming one at the start of a session is an error.
 * The first would end long transactions, the second forbid all views, including the mirror's.
 */
const LATER = { transaction_timeout: '0', restrict_nonsystem_relation_kind: '' } as const;

/** Sets those of LATER that exist, and returns them as startup options for later sessions of the same server. */
export const LATER_SETTINGS = `
  select ' -c ' || name || '=' || pg_catalog.set_config(name, value, false) as pin
  from (values ${Object.entries(LATER)
    .map(([name, value]) => `('${name}', '${value}')`)
    .join(', ')}) as later(name, value)
  where pg_catalog.current_setting(name, true) is not null`;

/**
 * How soon a statement ends after its client's connection is gone, for example by Ctrl-C; otherwise it would run to
 * its end. Servers on some systems refuse the setting, so no session starts with it before one has accepted it.
 */
const CLIENT_CHECK_MS = 5000;
export const CLIENT_CHECK = `select pg_catalog.set_config('client_connection_check_interval', '${CLIENT_CHECK_MS}', false)`;
export const CLIENT_CHECK_PIN = ` -c client_connection_check_interval=${CLIENT_CHECK_MS}`;

const PINNED: ReadonlySet<string> = new Set(Object.keys(SESSION).map((name) => name.toLowerCase()));

/**
 * `url` has no TLS parameters, `options`, `application_name`, settings of SESSION, or parameters that choose nothing.
 */
export interface SessionConnection extends PostgresConnection {
  /** For a driver that takes settings as `options`: those of the URL, and then SESSION, which overrides them. */
  readonly options: string;
}

/** Returns what a driver needs to connect to DATABASE_URL. Throws TlsParameterError. */
export function sessionConnection(databaseUrl: string): SessionConnection {
  const { url, ...connection } = postgresConnection(databaseUrl);
  const given = pairsOf(url).filter(isOptions);
  return {
    ...connection,
    url: sessionUrl(databaseUrl),
    options: [
      ...given.map((pair) => new URLSearchParams(pair).values().next().value ?? ''),
      ...Object.entries(SESSION).map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\ ]/g, '\\$&')}`),
    ].join(' '),
  };
}

/** Returns only its `url`, for which no file is read. */
export function sessionUrl(databaseUrl: string): string {
  const url = withoutTls(databaseUrl);
  const [written = url] = url.split('?', 1);
  // In a database's name, `pg` decodes only what encodeURI encodes.
  const head = written.replace(
    /^([^/]*\/\/[^/]*\/).*%.*$/s,
    (_, login: string) => login + encodeURI(databaseOf(url)),
  );
  const kept = pairsOf(url).filter(
    (pair) =>
      !PINNED.has(nameOf(pair).toLowerCase()) &&
      !isOptions(pair) &&
      !isApplication(pair) &&
      !choosesNothing(pair),
  );
  return kept.length === 0 ? head : `${head}?${kept.join('&')}`;
}

/**
 * Returns `sessionUrl` for `pg`. If the URL names no user, `pg` finds one in another way than postgres.js: one
 * daemon's sessions would belong to two roles, or half of them to none.
 */
export function loneUrl(databaseUrl: string): string {
  const url = sessionUrl(databaseUrl);
  const { scheme, login = '', place } = loginOf(url);
  if (!/^(?::|$)/.test(login)) return url;
  // From this machine's user and environment; if there is none, the server's answer says so.
  const user = postgres(url, { max: 1 }).options.user as string | undefined;
  return user === undefined ? url : `${scheme}${encodeURIComponent(user)}${login}@${place}`;
}

function pairsOf(url: string): string[] {
  const [, query = ''] = /^[^?]*\?(.*)$/s.exec(url) ?? [];
  return query.split('&').filter((pair) => pair !== '');
}

const isNamed = (pair: string, name: string): boolean => nameOf(pair).toLowerCase() === name;
const isOptions = (pair: string): boolean => isNamed(pair, 'options');
const isApplication = (pair: string): boolean => isNamed(pair, 'application_name');

/** The name of sessions that migrate. One of them excludes others from migrating, and is idle meanwhile. */
export const MIGRATING_NAME = 'catalog-mirror migrate';

/** Returns a session's application_name: `own`, by which the mirror knows it, then the name in DATABASE_URL. */
export function applicationName(own: string, databaseUrl: string): string {
  const given = pairsOf(databaseUrl).filter(isApplication).at(-1);
  const name = given === undefined ? '' : (new URLSearchParams(given).values().next().value ?? '');
  return name === '' ? own : `${own} (${name})`;
}
