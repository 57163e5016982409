import { hostname } from 'node:os';

/** As DNS, compose and mDNS have them. ASCII only, because other letters may become ASCII ones in lower case. */
const NAME = /^(?=.{1,254}$)[a-z\d_](?:[a-z\d_-]*[a-z\d_])?(?:\.[a-z\d_](?:[a-z\d_-]*[a-z\d_])?)*\.?$/i;

/** One spelling of a host name: lower case, without the dot of the root. Null for what is no name. */
export function hostName(text: string): string | null {
  return NAME.test(text) ? text.toLowerCase().replace(/\.$/, '') : null;
}

/**
 * The `hostname` of a URL as connections take it: an IPv6 address without its brackets; anything else, the root's dot
 * too, as it is.
 */
export const bareHost = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1');

/** What a mirror is called: the MIRROR_NAME that was given, or else the name of its host. */
export const mirrorName = (given: string | null): string => given ?? hostname();
