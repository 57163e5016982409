import { hostname } from 'node:os';

/** A name as in DNS, compose and mDNS. ASCII only, because other letters may become ASCII ones in lower case. */
const NAME = /^(?=.{1,254}$)[a-z\d_](?:[a-z\d_-]*[a-z\d_])?(?:\.[a-z\d_](?:[a-z\d_-]*[a-z\d_])?)*\.?$/i;

/** Normalizes a host name: lower case, without the root's dot. Returns null if the text is not a host name. */
export function hostName(text: string): string | null {
  return NAME.test(text) ? text.toLowerCase().replace(/\.$/, '') : null;
}

/**
 * Returns the `hostname` of a URL as connections take it: an IPv6 address without its brackets, anything else
 * unchanged, including the root's dot.
 */
export const bareHost = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1');

/** Returns the name of a mirror: the given MIRROR_NAME, else the name of its host. */
export const mirrorName = (given: string | null): string => given ?? hostname();
