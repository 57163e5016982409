import { BlockList, isIP } from 'node:net';
import { bareHost } from '../lib/host-name.ts';

/** The URL of a proxy. It may come from a file that changes; `refresh` reads the file again. */
export interface ProxySource {
  read(): string;
  refresh(): boolean;
}

/** HTTPS_PROXY, HTTP_PROXY and NO_PROXY; null if not set. */
export interface ProxySettings {
  readonly https: ProxySource | null;
  readonly http: ProxySource | null;
  readonly except: readonly string[] | null;
}

/** The parts of a proxy's URL. `shown` contains no credential. */
export interface HttpProxy {
  readonly isTls: boolean;
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization; null if the URL has no login. */
  readonly authorization: string | null;
  readonly shown: string;
}

function decodedOrNull(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Parses a proxy's URL: http or https, host, port (default 80 or 443), optional login. Null for any other text. */
export function parseProxy(text: string): HttpProxy | null {
  const url = /^https?:\/\/[^\s/?#\\]+\/?$/i.test(text) ? URL.parse(text) : null;
  if (url === null || url.hostname === '') return null;
  const [user, password] = [decodedOrNull(url.username), decodedOrNull(url.password)];
  if (user === null || password === null || /\p{Cc}/u.test(user + password) || user.includes(':'))
    return null;
  const isTls = url.protocol === 'https:';
  const port = Number(url.port || (isTls ? 443 : 80));
  const login = Buffer.from(`${user}:${password}`, 'utf8').toString('base64');
  return {
    isTls,
    host: bare(url.hostname),
    port,
    authorization: user === '' && password === '' ? null : `Basic ${login}`,
    shown: `${url.protocol}//${url.hostname}:${port}`,
  };
}

/**
 * Returns the proxy for a URL, by its scheme; null for a direct connection: none is set or NO_PROXY names the host.
 */
export function proxyFor(url: URL, settings: ProxySettings | undefined): ProxySource | null {
  const source = (url.protocol === 'https:' ? settings?.https : settings?.http) ?? null;
  return source === null || isExempt(url, settings?.except ?? []) ? null : source;
}

/** Returns the proxy now in force, rereading its file if it has one. Throws TypeError if its URL is unusable. */
export function currentProxy(source: ProxySource): HttpProxy {
  source.refresh();
  const proxy = parseProxy(source.read());
  if (proxy === null) throw new TypeError('the URL of the proxy cannot be used');
  return proxy;
}

const bare = (host: string): string => bareHost(host).replace(/(?<=.)\.$/, '');

/**
 * Returns whether an entry of NO_PROXY names the URL's host: `*`, a host and all names under it (with or without a
 * leading dot), `*.host` for only the names under it, an address, or a network such as `10.0.0.0/8`; each may end
 * with `:port` to apply to that port only.
 */
function isExempt(url: URL, entries: readonly string[]): boolean {
  const host = bare(url.hostname).toLowerCase();
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return entries.some((entry) => {
    const [, bracketed, named, at] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
    if (at !== undefined && at !== port) return false;
    const name = bare(bracketed ?? named ?? entry).toLowerCase();
    if (name === '*') return true;
    if (name.includes('/')) return isWithin(host, name);
    if (isIP(name) !== 0) return isWithin(host, name);
    if (isIP(host) !== 0) return false;
    const suffix = name.replace(/^\*?\./, '');
    return suffix !== '' && ((host === suffix && !name.startsWith('*')) || host.endsWith(`.${suffix}`));
  });
}

/** Returns whether a host is this address or an address of this network; false for names. */
function isWithin(host: string, network: string): boolean {
  const [address = '', bits] = network.split('/');
  const family = isIP(address);
  const most = family === 6 ? 128 : 32;
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : most + 1;
  if (family === 0 || prefix > most || isIP(host) !== family) return false;
  const list = new BlockList();
  list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4');
  return list.check(host, family === 6 ? 'ipv6' : 'ipv4');
}
