import postgres, { type Sql } from 'postgres';
import { postgresConnection } from '../lib/tls.ts';
import { FollowError } from './errors.ts';

/**
 * Where the mirror is. `sql`: a client of yours (`postgres` 3.4), which stays open. `url`: a client of the package's
 * own is opened, with libpq's meaning of `sslmode`, and closed at the end.
 */
export type Source =
  | { readonly sql: Sql; readonly url?: undefined }
  | { readonly url: string; readonly sql?: undefined };

/** A connection that is silent for so long while an answer is due counts as lost, whatever the network says. */
const ANSWER_WITHIN_SECONDS = 60;
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
 * Opens a source; connects with the first statement. `isBounded`: no statement takes long. Throws TlsParameterError,
 * FollowError of kind `invalid`.
 */
export function openSource(source: Source, isBounded: boolean): OpenSource {
  if (source.sql !== undefined) return { sql: source.sql, close: () => Promise.resolve() };
  if (typeof source.url !== 'string')
    throw new FollowError('invalid', 'neither sql nor url is given', 'give one of them');
  const { url, ...connection } = postgresConnection(source.url);
  const sql = postgres(url, {
    ...connection,
    max: 2,
    onnotice: () => {},
    keep_alive: KEEP_ALIVE_SECONDS,
    connect_timeout: CONNECT_WITHIN_SECONDS,
    connection: { application_name: 'catalog-mirror-follow' },
    ...(isBounded && { answer_timeout: ANSWER_WITHIN_SECONDS }),
  });
  return { sql, close: () => sql.end({ timeout: END_WITHIN_SECONDS }) };
}
