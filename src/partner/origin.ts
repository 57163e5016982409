import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

export type UrlProblem = 'not-a-url' | 'scheme' | 'credentials' | 'not-public' | 'not-listed' | 'query';

/** Code of the error by which the address guard stops a connection before it is made. */
export const ADDRESS_REFUSED = 'ERR_ADDRESS_REFUSED';

const NOT_PUBLIC_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // carrier-grade NAT; a cloud's metadata service lives in it
  ['127.0.0.0', 8],
  ['168.63.129.16', 32], // a cloud's host agent, at an address that looks public
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3], // multicast, reserved, broadcast
];
/** Inside global unicast, but not a place of its own: protocol assignments and Teredo, documentation, 6to4. */
const NOT_PUBLIC_V6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

function blockList(subnets: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, family);
  return list;
}

/** Private networks, where a files origin may be that PARTNER_FILES_ORIGINS names. Metadata services are not among them. */
const PRIVATE_V4: readonly (readonly [string, number])[] = [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
];

const refusedV4 = blockList(NOT_PUBLIC_V4, 'ipv4');
const refusedV6 = blockList(NOT_PUBLIC_V6, 'ipv6');
const globalUnicastV6 = blockList([['2000::', 3]], 'ipv6');
const privateV4 = blockList(PRIVATE_V4, 'ipv4');
const privateV6 = blockList([['fd00::', 8]], 'ipv6');
const metadataV6 = blockList([['fd00:ec2::', 32]], 'ipv6');
const loopbackV4 = blockList([['127.0.0.0', 8]], 'ipv4');

/** The IPv4 address inside an IPv4-mapped (::ffff:0:0/96) or NAT64 (64:ff9b::/96) address; null for any other. */
function embeddedV4(address: string): string | null {
  const canonical = URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) ?? '';
  const groups = /^(?:::ffff|64:ff9b:):([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (groups === null) return null;
  const [high, low] = [Number.parseInt(groups[1] ?? '0', 16), Number.parseInt(groups[2] ?? '0', 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** Whether an IP address (no brackets, zone allowed) is a public unicast one. Anything unknown is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refusedV4.check(address, 'ipv4');
  if (family !== 6 || address.includes('%')) return false;
  const inner = embeddedV4(address);
  if (inner !== null) return isPublicAddress(inner);
  return globalUnicastV6.check(address, 'ipv6') && !refusedV6.check(address, 'ipv6');
}

function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return privateV4.check(address, 'ipv4');
  if (family !== 6 || address.includes('%')) return false;
  return privateV6.check(address, 'ipv6') && !metadataV6.check(address, 'ipv6');
}

function isLoopbackAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return loopbackV4.check(address, 'ipv4');
  const inner = family === 6 ? embeddedV4(address) : null;
  return inner === null ? address === '::1' : loopbackV4.check(inner, 'ipv4');
}

/** The host of a URL without brackets and without the root's dot. */
function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/** Whether the URL's host is this machine by its very name: 127/8, ::1, localhost or a name under it. */
export function isLoopbackUrl(url: URL): boolean {
  const host = bareHost(url);
  return host === 'localhost' || host.endsWith('.localhost') || isLoopbackAddress(host);
}

/**
 * Checks PARTNER_BASE_URL (partner rule 1.4: only HTTPS is served; http is for a sandbox on loopback).
 * In: the URL, and whether PARTNER_ALLOW_INSECURE lifts the https rule. Out: null where it can be used, else why not.
 */
export function checkBaseUrl(url: URL, allowInsecure: boolean): UrlProblem | null {
  if (url.username !== '' || url.password !== '') return 'credentials';
  if (url.search !== '' || url.hash !== '') return 'query';
  if (url.protocol === 'https:') return null;
  return url.protocol === 'http:' && (allowInsecure || isLoopbackUrl(url)) ? null : 'scheme';
}

/** PARTNER_FILES_ORIGINS: these origins and no other; null: any public https origin, or loopback where the base URL is. */
export type FilesOrigins = readonly string[] | null;

/** Which addresses a connection may be made to. */
export type Reach = 'public' | 'loopback' | 'public-or-private';

const REACHES: Readonly<Record<Reach, (address: string) => boolean>> = {
  public: isPublicAddress,
  loopback: isLoopbackAddress,
  'public-or-private': (address) => isPublicAddress(address) || isPrivateAddress(address),
};

/** The addresses that a files URL may lead to: a loopback one to loopback alone, one that is listed also into private networks. */
export function filesReach(url: URL, origins: FilesOrigins): Reach {
  if (isLoopbackUrl(url)) return 'loopback';
  return origins === null ? 'public' : 'public-or-private';
}

/**
 * Checks where a manifest file is to be fetched from: at one of the listed origins; without a list https at a public host,
 * or, where the base URL is on loopback, http or https on loopback. Names are judged again by
 * the address they resolve to. In: the presigned URL, parsed or as text, the base URL, and the list.
 * Out: null where it can be fetched, else why not.
 */
export function checkFilesUrl(
  url: URL | string,
  baseUrl: URL,
  origins: FilesOrigins = null,
): UrlProblem | null {
  const target = typeof url === 'string' ? URL.parse(url) : url;
  if (target === null) return 'not-a-url';
  if (target.protocol !== 'https:' && target.protocol !== 'http:') return 'scheme';
  if (target.username !== '' || target.password !== '') return 'credentials';
  if (origins !== null && !origins.includes(target.origin)) return 'not-listed';
  if (isLoopbackUrl(target)) return origins !== null || isLoopbackUrl(baseUrl) ? null : 'not-public';
  if (target.protocol !== 'https:') return 'scheme';
  const host = bareHost(target);
  const reached = REACHES[filesReach(target, origins)];
  return host === '' || (isIP(host) !== 0 && !reached(host)) ? 'not-public' : null;
}

/** An origin for PARTNER_FILES_ORIGINS in its one spelling: https, or http on loopback, and nothing behind it; null for any other text. */
export function parseFilesOrigin(text: string): string | null {
  const url = URL.parse(text);
  if (
    url === null ||
    url.username !== '' ||
    url.password !== '' ||
    /[?#\\]/.test(text) ||
    url.pathname !== '/'
  )
    return null;
  return checkFilesUrl(url, url, [url.origin]) === null ? url.origin : null;
}

/** Resolves a name to all its addresses; node:dns's `lookup` with `all: true`. */
export type Resolver = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

const systemResolver: Resolver = (hostname, done) => dnsLookup(hostname, { all: true }, done);

/**
 * A `lookup` for the connector of the files origin: the addresses judged are the ones connected to, so a name cannot
 * be rebound in between. A name with any refused address is refused whole, by an error with code ERR_ADDRESS_REFUSED.
 * In: which addresses pass. Out: the lookup function.
 */
export function guardedLookup(reach: Reach, resolve: Resolver = systemResolver): LookupFunction {
  const allowed = REACHES[reach];
  return (hostname, options, done) => {
    resolve(hostname, (error, addresses) => {
      if (error !== null) return done(error, '');
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => allowed(address))) {
        return done(Object.assign(new Error('address refused'), { code: ADDRESS_REFUSED }), '');
      }
      return options.all === true ? done(null, addresses) : done(null, first.address, first.family);
    });
  };
}
