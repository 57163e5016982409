import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { bareHost } from '../lib/host-name.ts';

export type UrlProblem = 'not-a-url' | 'scheme' | 'credentials' | 'not-public' | 'not-listed' | 'query';

/** Code of the error with which the address guard stops a connection before it is made. */
export const ADDRESS_REFUSED = 'ERR_ADDRESS_REFUSED';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

const MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR('2000::/3');
const PRIVATE_V6 = ipaddr.IPv6.parseCIDR('fd00::/8');
/** Metadata services and host agents of clouds, outside of special ranges or within otherwise private ones. */
const METADATA_V6 = ipaddr.IPv6.parseCIDR('fd00:ec2::/32');
const HOST_AGENT = '168.63.129.16';
const METADATA_V4 = '100.100.100.200';

/**
 * Parses an IP address (no brackets); returns null for other text, and for an address with a zone. ipaddr.js
 * accepts more spellings than resolvers and URLs produce (127.1, 0x7f000001), and reads ::8.8.8.8 as
 * ::ffff:8.8.8.8, so it is given only one spelling.
 */
function parseAddress(text: string): Address | null {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) return null;
  return ipaddr.parse(family === 4 ? text : new URL(`http://[${text}]/`).hostname.slice(1, -1));
}

/** Returns where packets end: at the IPv4 address inside an IPv4-mapped or NAT64 one, else at the address itself. */
function endOf(address: Address): Address {
  if (address instanceof ipaddr.IPv4 || !(address.match(MAPPED) || address.match(NAT64))) return address;
  return ipaddr.fromByteArray(address.toByteArray().slice(12));
}

/** Returns whether an IP address (no brackets, zone allowed) is a public unicast address. Anything unknown is not. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address === null) return false;
  const end = endOf(address);
  if (end.range() !== 'unicast') return false;
  return end instanceof ipaddr.IPv6 ? end.match(GLOBAL_UNICAST_V6) : end.toString() !== HOST_AGENT;
}

/** Returns whether it is in a private network, where a files origin listed in PARTNER_FILES_ORIGINS may be. */
function isPrivateAddress(text: string): boolean {
  const address = parseAddress(text);
  if (!(address instanceof ipaddr.IPv6)) return address?.range() === 'private';
  return address.match(PRIVATE_V6) && !address.match(METADATA_V6);
}

function isLoopbackAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && endOf(address).range() === 'loopback';
}

/** Returns the host of a URL without brackets and without the root's dot. */
export const hostOf = (url: URL): string => bareHost(url.hostname).replace(/\.$/, '');

/** Returns whether the URL's host itself denotes this machine: 127/8, ::1, localhost or a name under it. */
export function isLoopbackUrl(url: URL): boolean {
  const host = hostOf(url);
  return host === 'localhost' || host.endsWith('.localhost') || isLoopbackAddress(host);
}

/**
 * Checks PARTNER_BASE_URL (partner rule 1.4: only HTTPS is served; http is for a sandbox on loopback).
 * `allowInsecure`, from PARTNER_ALLOW_INSECURE, lifts the https rule. Returns null if the URL can be used, else the
 * reason why not.
 */
export function checkBaseUrl(
  url: URL,
  { allowInsecure }: { readonly allowInsecure: boolean },
): UrlProblem | null {
  if (url.username !== '' || url.password !== '') return 'credentials';
  if (url.search !== '' || url.hash !== '') return 'query';
  if (url.protocol === 'https:') return null;
  return url.protocol === 'http:' && (allowInsecure || isLoopbackUrl(url)) ? null : 'scheme';
}

/** PARTNER_FILES_ORIGINS: only these. Null: any public https origin, or loopback if the base URL is on loopback. */
export type FilesOrigins = readonly string[] | null;

export type Reach = 'public' | 'loopback' | 'public-or-private' | 'own' | 'public-or-own';

/** Returns whether it is in 100.64.0.0/10, which providers and overlay networks share out among their customers. */
function isSharedAddress(text: string): boolean {
  const address = parseAddress(text);
  return address?.range() === 'carrierGradeNat' && address.toString() !== METADATA_V4;
}

const isOwnAddress = (address: string) =>
  isPrivateAddress(address) || isSharedAddress(address) || isLoopbackAddress(address);

const REACHES: Readonly<Record<Reach, (address: string) => boolean>> = {
  public: isPublicAddress,
  loopback: isLoopbackAddress,
  'public-or-private': (address) => isPublicAddress(address) || isPrivateAddress(address),
  own: isOwnAddress,
  'public-or-own': (address) => isPublicAddress(address) || isOwnAddress(address),
};

/** Returns whether an IP address (no brackets) is within reach. */
export const isReached = (address: string, reach: Reach): boolean => REACHES[reach](address);

/**
 * Returns the addresses that a files URL may lead to: loopback to loopback only, a listed one also to private ones.
 */
export function filesReach(url: URL, origins: FilesOrigins): Reach {
  if (isLoopbackUrl(url)) return 'loopback';
  return origins === null ? 'public' : 'public-or-private';
}

/**
 * Checks where a manifest file would be fetched from: one of the listed origins; without a list, https at a public
 * host or, if the base URL is on loopback, http or https on loopback. A name is checked again by the address it
 * resolves to. Takes the presigned URL, parsed or as text. Returns null if the file can be fetched, else the reason
 * why not.
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
  const host = hostOf(target);
  const reached = REACHES[filesReach(target, origins)];
  return host === '' || (isIP(host) !== 0 && !reached(host)) ? 'not-public' : null;
}

/**
 * Parses an origin of PARTNER_FILES_ORIGINS into its one spelling: https, or http on loopback, with nothing after
 * it. Returns null for any other text.
 */
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

/** Resolves a name to all its addresses, like node:dns's `lookup` with `all: true`. */
export type Resolver = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A resolver that is slower counts as not knowing the name: behind many proxies there is no resolver. */
const RESOLVED_WITHIN_MS = 5000;

const systemResolver: Resolver = (hostname, done) => dnsLookup(hostname, { all: true }, done);

/**
 * Creates a `lookup` for the connector of the files origin. It checks the very addresses that are connected to, so
 * a name cannot be rebound in between. If any address is refused, the whole name is, with code ERR_ADDRESS_REFUSED.
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

/**
 * Checks a host that a proxy will resolve itself: rejects with code ERR_ADDRESS_REFUSED if any of the addresses
 * that it resolves to here is refused. A host that does not resolve here is left to the proxy.
 */
export async function refuseResolved(
  hostname: string,
  reach: Reach,
  resolve: Resolver = systemResolver,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((pass, refuse) => {
      timer = setTimeout(pass, RESOLVED_WITHIN_MS);
      guardedLookup(reach, resolve)(hostname, { all: true }, (error) => {
        if (error?.code === ADDRESS_REFUSED) refuse(error);
        else pass();
      });
    });
  } finally {
    clearTimeout(timer);
  }
}
