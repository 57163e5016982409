import { readFileSync } from 'node:fs';
import {
  checkServerIdentity,
  type ConnectionOptions,
  createSecureContext,
  type SecureContext,
} from 'node:tls';
import { databaseOf, ipv6Place, nameOf, partsOf, socketDirectory } from './connection-url.ts';
import { errorCode } from './errors.ts';
import { bareHost } from './host-name.ts';

/**
 * A connection URL for the drivers, with its TLS parameters separated, because each driver interprets them differently.
 */
export interface Connection {
  /** Without TLS parameters; redis:// in place of rediss://. */
  readonly url: string;
  /** Options for `tls.connect`; null: no TLS. */
  readonly tls: ConnectionOptions | null;
}

/** An invalid TLS parameter of a connection URL. The message contains no part of the URL except its sslmode. */
export class TlsParameterError extends Error {
  override readonly name = 'TlsParameterError';
  readonly kind = 'config';
}

const MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type Mode = (typeof MODES)[number];

/** Parameters that are read here and removed from the URL. The last three would make a driver decide by itself. */
const PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'ssl', 'uselibpqcompat', 'sslnegotiation'];
const FILES = ['sslrootcert', 'sslcert', 'sslkey'];
const SPELLINGS: ReadonlyMap<string, Mode> = new Map([
  ['true', 'verify-full'],
  ['1', 'verify-full'],
  ['false', 'disable'],
  ['0', 'disable'],
]);

/** `sslrootcert=system`: the certificate authorities that Node.js trusts, including NODE_EXTRA_CA_CERTS. */
const SYSTEM = 'system';

/**
 * Reads the TLS parameters of a postgres:// or redis:// URL, with the names and meanings of libpq: `sslmode` (disable,
 * require, verify-ca, verify-full), `sslrootcert`, `sslcert`, `sslkey`. Without them Postgres is used unencrypted, and
 * rediss:// means verify-full. `readFile` reads the named files. Throws TlsParameterError.
 */
export function connectionOf(
  url: string,
  readFile: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): Connection {
  const { head, query } = partsOf(url);
  const bare = withoutTls(url);
  const parameters = new URLSearchParams(query);
  const mode = modeOf(parameters, isRedis(head), /^rediss:/i.test(head));
  // A Unix socket uses no TLS, as in libpq.
  if (mode === 'disable' || socketDirectory(url) !== null) return { url: bare, tls: null };
  const host = bareHost(URL.parse(head)?.hostname ?? '');
  return { url: bare, tls: tlsOptions(mode, host, parameters, readFile) };
}

/**
 * Does the same for any number of connections. The drivers read these options, and so the files, anew for each. Files
 * that cannot be read then, or that do not match, count as they were. Throws TlsParameterError.
 */
export function rereadingConnection(url: string): Connection {
  const { url: bare, tls } = connectionOf(url);
  const { ca, cert, key, ...settings } = tls ?? {};
  if (tls === null || (ca === undefined && cert === undefined)) return { url: bare, tls };
  let context: SecureContext;
  try {
    context = createSecureContext({ ca, cert, key });
  } catch {
    throw new TlsParameterError(
      'sslrootcert, sslcert and sslkey in PEM, and the key to be that of the certificate',
    );
  }
  return {
    url: bare,
    tls: {
      ...settings,
      get secureContext() {
        try {
          const { tls: present } = connectionOf(url);
          context = createSecureContext({ ca: present?.ca, cert: present?.cert, key: present?.key });
        } catch {
          // The files are in the middle of a rotation.
        }
        return context;
      },
    },
  };
}

/** A connection for Postgres's drivers, which call TLS `ssl`. */
export interface PostgresConnection {
  readonly url: string;
  readonly ssl: ConnectionOptions | false;
  /** The database's name, decoded, because postgres.js takes it as the URL has it. */
  readonly database?: string;
  /** The directory of a Unix socket, which postgres.js does not find in a URL, or an IPv6 address (`asList`). */
  readonly host?: string;
  readonly port?: number;
}

/** Puts a value into a list: outside of one, postgres.js cuts an IPv6 address at a colon. Its types know no lists. */
const asList = <T>(value: T): T => [value] as unknown as T;

/** Reads a Postgres URL for the drivers. Throws TlsParameterError. */
export function postgresConnection(url: string): PostgresConnection {
  const { url: bare, tls } = rereadingConnection(url);
  const name = databaseOf(url);
  const directory = socketDirectory(url);
  const address = ipv6Place(url);
  return {
    url: bare,
    ssl: tls ?? false,
    ...(name !== '' && { database: name }),
    ...(directory !== null && { host: directory }),
    ...(address !== null && { host: asList(address.host), port: asList(address.port) }),
  };
}

/**
 * Removes the TLS parameters from a connection URL, writes redis:// in place of rediss://, and puts the directory of a
 * Unix socket into the host's place (`%2Frun%2Fpostgresql`). Reads no file.
 */
export function withoutTls(url: string): string {
  const { head, query, fragment } = partsOf(url);
  const rest = query
    .split('&')
    .filter((pair) => !PARAMETERS.includes(nameOf(pair)))
    .join('&');
  const bare = isRedis(head) ? head.replace(/^rediss?:/i, 'redis:') : head;
  // The `?` before a fragment also ends the host.
  const isEnded = fragment !== '' && /^[^#]*\?/.test(url);
  return `${bare}${rest === '' && !isEnded ? '' : `?${rest}`}${fragment}`;
}

const isRedis = (head: string): boolean => /^rediss?:/i.test(head);

function modeOf(parameters: URLSearchParams, ofRedis: boolean, isRediss: boolean): Mode {
  const twice = PARAMETERS.find((name) => parameters.getAll(name).length > 1);
  if (twice !== undefined) throw new TlsParameterError(`${twice} once`);
  const given = parameters.get('sslmode') ?? parameters.get('ssl');
  const named = given === null ? null : (SPELLINGS.get(given) ?? MODES.find((mode) => mode === given));
  if (named === undefined) {
    // `prefer` and `allow` continue unencrypted with any server that says it has no TLS.
    throw new TlsParameterError(`an sslmode that is one of ${MODES.join(', ')}`);
  }
  const hasFiles = FILES.some((name) => parameters.has(name));
  const mode = named ?? (hasFiles || isRediss ? 'verify-full' : 'disable');
  if (ofRedis && isRediss !== (mode !== 'disable')) {
    throw new TlsParameterError('rediss:// where TLS is asked for, and redis:// where it is not');
  }
  return mode;
}

function tlsOptions(
  mode: Exclude<Mode, 'disable'>,
  host: string,
  parameters: URLSearchParams,
  readFile: (path: string) => string,
): ConnectionOptions {
  const file = (name: string): string | undefined => {
    const path = parameters.get(name);
    if (path === null || (name === 'sslrootcert' && path === SYSTEM)) return undefined;
    try {
      return readFile(path);
    } catch (error) {
      const code = errorCode(error);
      throw new TlsParameterError(
        `${name} to be the path of a readable file${code === null ? '' : ` (${code})`}`,
      );
    }
  };
  const [ca, cert, key] = [file('sslrootcert'), file('sslcert'), file('sslkey')];
  if ((cert === undefined) !== (key === undefined))
    throw new TlsParameterError('sslcert and sslkey together');
  if (mode === 'verify-ca' && ca === undefined) {
    throw new TlsParameterError(
      'sslrootcert beside sslmode=verify-ca: any public certificate would do otherwise',
    );
  }
  const verified = mode === 'verify-full' || ca !== undefined;
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert, key }),
    // SNI allows no IP address.
    ...(!/^[\d.]+$|:/.test(host) && { servername: host }),
    rejectUnauthorized: verified,
    // Checks the host of the URL: if the driver hands over a connected socket, Node.js does not know the host and
    // assumes localhost.
    checkServerIdentity: (_, certificate) =>
      mode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
  };
}
