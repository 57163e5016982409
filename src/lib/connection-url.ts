import { bareHost } from './host-name.ts';

/* How connection URLs of Postgres and Redis are written. Their TLS parameters are read in tls.ts. */

/**
 * Splits a connection URL into what precedes its query, the query, and the fragment. Host and port, or a Unix socket's
 * directory (`%2Frun%2Fpostgresql`), end up in the authority, whichever of libpq's spellings is used. Pure.
 */
export function partsOf(url: string): {
  readonly head: string;
  readonly query: string;
  readonly fragment: string;
} {
  const [, head = url, query = '', fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  return { ...asAuthority(head, query), fragment };
}

/** A Postgres URL in parts: scheme, login, host, port, path. */
const POSTGRES = /^(postgres(?:ql)?:\/\/)([^/]*@)?([^/@]*?)(:\d+)?(\/.*)?$/is;

/** Postgres's own port. One of the drivers takes an IPv6 address and its port separately from the URL. */
const USUAL_PORT = 5432;

/**
 * Rewrites libpq's first spelling of a host, `//login@/database?host=/directory&port=5432`, as its second,
 * `//login@%2Fdirectory:5432/database`; parameters take precedence. The first is not a valid URL if a login precedes an
 * empty host, and each driver reads it differently.
 */
function asAuthority(head: string, query: string): { readonly head: string; readonly query: string } {
  const parameters = new URLSearchParams(query);
  const [, scheme, login = '', written = '', writtenPort = '', path = ''] = POSTGRES.exec(head) ?? [];
  if (scheme === undefined) return { head, query };
  const named = parameters.get('host') ?? '';
  const host = named === '' ? written : hostOfParameter(named);
  // A URL cannot contain a port without a host.
  if (host === '') return { head, query };
  const givenPort = parameters.get('port') ?? '';
  const port = givenPort === '' ? writtenPort : `:${givenPort}`;
  const isAddress = host.startsWith('[');
  const rest = query.split('&').filter((pair) => !['host', 'port'].includes(nameOf(pair)));
  return {
    head: `${scheme}${login}${host}${port === '' && isAddress ? `:${USUAL_PORT}` : port}${path}`,
    query: rest.join('&'),
  };
}

/** Encodes a host for a URL. Only an IPv6 address contains colons, and every directory begins with a slash. */
const hostOfParameter = (host: string): string =>
  host.includes(':') && !host.startsWith('/') ? `[${bareHost(host)}]` : encodeURIComponent(host);

/** Returns the name of one pair of a query. Pure. */
export const nameOf = (pair: string): string => [...new URLSearchParams(pair).keys()][0] ?? '';

/** Options of postgres.js itself, which it does not pass on to Postgres; `pg` would use another `database`. */
const OF_DRIVER: ReadonlySet<string> = new Set([
  'answer_timeout',
  'backoff',
  'database',
  'debug',
  'fetch_types',
  'idle_timeout',
  'keep_alive',
  'max',
  'max_lifetime',
  'max_pipeline',
  'prepare',
  'publications',
]);

const TARGET = 'target_session_attrs';
/** Values that every writable server satisfies. The mirror itself reports a server that takes no writes. */
const WRITABLE: ReadonlySet<string> = new Set(['', 'any', 'read-write', 'primary', 'prefer-standby']);
const TARGETS: readonly string[] = [...WRITABLE, 'read-only', 'standby'];

/** Returns what is expected instead of an invalid parameter of a Postgres URL, or null if all are valid. Pure. */
export function parameterProblem(url: string): string | null {
  if (!POSTGRES.test(partsOf(url).head)) return null;
  const parameters = new URLSearchParams(partsOf(url).query);
  const ofDriver = [...parameters.keys()].find((name) => OF_DRIVER.has(name));
  if (ofDriver !== undefined)
    return `a URL without the parameter ${ofDriver}, which is no setting of Postgres`;
  const wrong = parameters.getAll(TARGET).some((value) => !TARGETS.includes(value));
  return wrong ? `a ${TARGET} that is one of ${TARGETS.filter((target) => target !== '').join(', ')}` : null;
}

/** Returns whether a pair chooses nothing if the URL has one host. The driver would refuse the pair, or that host. */
export const choosesNothing = (pair: string): boolean =>
  nameOf(pair) === TARGET && WRITABLE.has(new URLSearchParams(pair).get(TARGET) ?? '');

/**
 * Splits a connection URL into its scheme, its user and password (as written, undefined if absent), and the rest. All
 * are empty if it is not a URL. Pure.
 */
export function loginOf(url: string): {
  readonly scheme: string;
  readonly login: string | undefined;
  readonly place: string;
} {
  const [, scheme = '', login, place = ''] = /^([^:]+:\/\/)(?:([^/?#]*)@)?(.*)$/s.exec(url) ?? [];
  return { scheme, login, place };
}

/** Returns the directory of the Unix socket in a Postgres URL, or null if it connects by TCP. Pure. */
export function socketDirectory(url: string): string | null {
  const host = URL.parse(partsOf(url).head)?.hostname ?? '';
  return /^%2f/i.test(host) ? decoded(host) : null;
}

/** Returns the IPv6 address (without brackets) and the port of a Postgres URL, or null for any other host. Pure. */
export function ipv6Place(url: string): { readonly host: string; readonly port: number } | null {
  const parsed = URL.parse(partsOf(url).head);
  if (parsed?.hostname.startsWith('[') !== true) return null;
  return { host: bareHost(parsed.hostname), port: Number(parsed.port || USUAL_PORT) };
}

/** Returns the database that a URL names, decoded if possible, or '' if it names none. Pure. */
export function databaseOf(url: string): string {
  return decoded(URL.parse(partsOf(url).head)?.pathname.slice(1) ?? '');
}

/** Decodes a percent-encoded text, or returns it unchanged if it is invalid. Pure. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
