import { bareHost } from './host-name.ts';

/* How connection URLs of Postgres and Redis are written: what TLS is asked for is in tls.ts. */

/**
 * A connection URL up to its query, the query, and the fragment. Host and port are in their place, the directory of a
 * Unix socket too (`%2Frun%2Fpostgresql`), whichever of libpq's spellings they have. Pure.
 */
export function partsOf(url: string): {
  readonly head: string;
  readonly query: string;
  readonly fragment: string;
} {
  const [, head = url, query = '', fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  return { ...asAuthority(head, query), fragment };
}

/** A URL of Postgres up to its path: scheme, login, host, port, path. */
const POSTGRES = /^(postgres(?:ql)?:\/\/)([^/]*@)?([^/@]*?)(:\d+)?(\/.*)?$/is;

/** Postgres's own port: an IPv6 address and its port are given to one of the drivers apart from the URL. */
const USUAL_PORT = 5432;

/**
 * libpq has two spellings of a host, `//login@/database?host=/directory&port=5432` and
 * `//login@%2Fdirectory:5432/database`; what a parameter says counts. Of the first, the second is made: the other is
 * no URL where a login comes before no host, and each driver reads it in another way.
 */
function asAuthority(head: string, query: string): { readonly head: string; readonly query: string } {
  const parameters = new URLSearchParams(query);
  const [, scheme, login = '', written = '', writtenPort = '', path = ''] = POSTGRES.exec(head) ?? [];
  if (scheme === undefined) return { head, query };
  const named = parameters.get('host') ?? '';
  const host = named === '' ? written : hostOfParameter(named);
  // A port beside no host is none of a URL.
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

/** A host as a URL has it. Only an IPv6 address has colons, and no directory begins otherwise than with a slash. */
const hostOfParameter = (host: string): string =>
  host.includes(':') && !host.startsWith('/') ? `[${bareHost(host)}]` : encodeURIComponent(host);

/** The name of one pair of a query. Pure. */
export const nameOf = (pair: string): string => [...new URLSearchParams(pair).keys()][0] ?? '';

/** What postgres.js takes for an option of its own, and so no Postgres is told of; `pg` has another database. */
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
/** Of libpq's, those that any server will do for that takes writes, which the mirror tells of by itself. */
const WRITABLE: ReadonlySet<string> = new Set(['', 'any', 'read-write', 'primary', 'prefer-standby']);
const TARGETS: readonly string[] = [...WRITABLE, 'read-only', 'standby'];

/** What is wrong with a parameter of a URL of Postgres, as what is expected instead; null: nothing. Pure. */
export function parameterProblem(url: string): string | null {
  if (!POSTGRES.test(partsOf(url).head)) return null;
  const parameters = new URLSearchParams(partsOf(url).query);
  const ofDriver = [...parameters.keys()].find((name) => OF_DRIVER.has(name));
  if (ofDriver !== undefined)
    return `a URL without the parameter ${ofDriver}, which is no setting of Postgres`;
  const wrong = parameters.getAll(TARGET).some((value) => !TARGETS.includes(value));
  return wrong ? `a ${TARGET} that is one of ${TARGETS.filter((target) => target !== '').join(', ')}` : null;
}

/** Whether a pair of a query chooses nothing where a URL has one host, and the driver would refuse it or that host. */
export const choosesNothing = (pair: string): boolean =>
  nameOf(pair) === TARGET && WRITABLE.has(new URLSearchParams(pair).get(TARGET) ?? '');

/**
 * A connection URL's scheme, its user and password (as they are written, undefined without any), and all the rest.
 * Empty where it is no URL. Pure.
 */
export function loginOf(url: string): {
  readonly scheme: string;
  readonly login: string | undefined;
  readonly place: string;
} {
  const [, scheme = '', login, place = ''] = /^([^:]+:\/\/)(?:([^/?#]*)@)?(.*)$/s.exec(url) ?? [];
  return { scheme, login, place };
}

/** The directory of the Unix socket by which a URL reaches Postgres; null: by TCP. Pure. */
export function socketDirectory(url: string): string | null {
  const host = URL.parse(partsOf(url).head)?.hostname ?? '';
  return /^%2f/i.test(host) ? decoded(host) : null;
}

/** The IPv6 address, without brackets, by which a URL reaches Postgres, and its port; null: by something else. Pure. */
export function ipv6Place(url: string): { readonly host: string; readonly port: number } | null {
  const parsed = URL.parse(partsOf(url).head);
  if (parsed?.hostname.startsWith('[') !== true) return null;
  return { host: bareHost(parsed.hostname), port: Number(parsed.port || USUAL_PORT) };
}

/** The database that a URL names, decoded where that can be; '' where it names none. Pure. */
export function databaseOf(url: string): string {
  return decoded(URL.parse(partsOf(url).head)?.pathname.slice(1) ?? '');
}

/** A percent-encoded text; as it is written where it is none. Pure. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
