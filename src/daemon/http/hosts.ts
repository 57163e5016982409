import { isIP, isIPv4, isIPv6 } from 'node:net';
import { hostName } from '../../lib/host-name.ts';

/** What the Host of a request says: a host of ours (or none at all), another one, or two at once. */
export type HostJudgement = 'known' | 'unknown' | 'ambiguous';

const AUTHORITY = /^(\[[^\]]*\]|[^:[\]]*)(?::\d{0,5})?$/;

/**
 * Returns the judge of Host headers. In: the host that is listened on, and further names that lead here. A web page
 * under a name that somebody has pointed at this machine (DNS rebinding) sends that name, so only these are known:
 * addresses, which nobody can point elsewhere, `localhost`, and the given names, each with any port. The machine's
 * own name is not among them: networks hand it out. No Host is known too, because every browser sends one (Node.js
 * refuses HTTP/1.1 without).
 */
export function hostJudge(
  listensOn: string,
  names: readonly string[],
): (hosts: readonly string[] | undefined) => HostJudgement {
  const known = new Set(['localhost', listensOn, ...names].filter((name) => isIP(name) === 0).map(hostName));
  return (hosts = []) => {
    if (hosts.length > 1) return 'ambiguous';
    const [host] = hosts;
    return host === undefined || isKnown(host) ? 'known' : 'unknown';
  };

  function isKnown(host: string): boolean {
    const name = AUTHORITY.exec(host)?.[1] ?? '';
    if (name.startsWith('[')) return isIPv6(name.slice(1, -1));
    const canonical = hostName(name);
    return canonical !== null && (isIPv4(canonical) || known.has(canonical));
  }
}
