/* How connection URLs of Postgres and Redis are written: what TLS is asked for is in tls.ts. */

/**
 * A connection URL up to its query, the query, and the fragment. The directory of a Unix socket is in the host's place
 * (`%2Frun%2Fpostgresql`), whichever of libpq's spellings it has. Pure.
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
const POSTGRES = /^(postgres(?:ql)?:\/\/)([^/@]*@)?([^/@]*?)(:\d+)?(\/.*)?$/is;

/**
 * libpq has two spellings of a Unix socket, `//login@/database?host=/directory&port=5432` and
 * `//login@%2Fdirectory:5432/database`. Of the first, the second is made: the other is no URL where a login comes
 * before no host.
 */
function asAuthority(head: string, query: string): { readonly head: string; readonly query: string } {
  const parameters = new URLSearchParams(query);
  const directory = parameters.get('host') ?? '';
  const [, scheme, login = '', , port = '', path = ''] = POSTGRES.exec(head) ?? [];
  if (scheme === undefined || !directory.startsWith('/')) return { head, query };
  const given = parameters.get('port');
  const rest = query.split('&').filter((pair) => !['host', 'port'].includes(nameOf(pair)));
  return {
    head: `${scheme}${login}${encodeURIComponent(directory)}${given === null ? port : `:${given}`}${path}`,
    query: rest.join('&'),
  };
}

/** The name of one pair of a query. Pure. */
export const nameOf = (pair: string): string => [...new URLSearchParams(pair).keys()][0] ?? '';

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
