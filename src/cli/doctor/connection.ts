import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import type { Config } from '../../config/config.ts';
import { partsOf, socketDirectory } from '../../lib/connection-url.ts';
import { DAY_MS } from '../../lib/duration.ts';
import { plural } from '../../lib/format.ts';
import { bareHost } from '../../lib/host-name.ts';
import { connectionOf } from '../../lib/tls.ts';
import { failureCode } from '../../partner/errors.ts';
import { isLoopbackUrl } from '../../partner/origin.ts';
import { currentProxy, type HttpProxy, proxyFor } from '../../partner/proxy.ts';
import { authorityOf, hintOfCode, openTunnel, ProxyError } from '../../partner/tunnel.ts';
import { fail, type CheckResult, ok, warn } from './check.ts';

const RENEW_WITHIN_MS = 14 * DAY_MS;
const CONNECT_MS = 10_000;

/** Judges when a certificate expires; `validTo` and `now` in epoch milliseconds. */
export function judgeCertificate(validTo: number, now: number): CheckResult {
  const until = new Date(validTo).toISOString().slice(0, 10);
  const days = Math.floor((validTo - now) / DAY_MS);
  return validTo - now < RENEW_WITHIN_MS
    ? warn(
        'tls',
        `the partner's certificate expires in ${days} ${plural(days, 'day')} (${until})`,
        'ask the partner to renew it: after that day no request is sent',
      )
    : ok('tls', `the partner's certificate is trusted and valid until ${until}`);
}

/**
 * Checks whether the partner's host can be reached and, for https, whether its certificate is trusted; through the
 * proxy, if there is one. Sends no request.
 */
export async function checkPartnerReachable(
  { baseUrl, proxy }: Pick<Config['partner'], 'baseUrl' | 'proxy'>,
  now: () => number,
): Promise<CheckResult[]> {
  const url = new URL(baseUrl);
  const source = proxyFor(url, proxy);
  const through = source === null ? null : currentProxy(source);
  const way = through === null ? '' : ` through proxy ${through.shown}`;
  const shown = `${url.origin}${url.pathname === '/' ? '' : url.pathname}${way}`;
  try {
    const validTo = await reach(url, through);
    if (validTo !== null) return [ok('base url', shown), judgeCertificate(validTo, now())];
  } catch (error) {
    return [unusable(error, shown)];
  }
  return isLoopbackUrl(url)
    ? [ok('base url', `${shown}: plain http, on this host`)]
    : [warn('base url', `${shown}: plain http, the credential is sent in clear text`, 'use https')];
}

function unusable(error: unknown, shown: string): CheckResult {
  if (error instanceof ProxyError)
    return fail('base url', `${shown} cannot be reached: ${error.message}`, error.hint);
  const code = failureCode(error) ?? 'no answer';
  const isRefusal = code.startsWith('ERR_SSL');
  return !isRefusal && /CERT|SIGNATURE|ISSUER|SIGNED/.test(code)
    ? fail(
        'base url',
        `${shown} presents a certificate that is not trusted (${code})`,
        hintOfCode(code) ?? REACHED,
      )
    : fail('base url', `${shown} cannot be reached (${code})`, (isRefusal && hintOfCode(code)) || REACHED);
}

const REACHED = 'check PARTNER_BASE_URL, DNS, firewall and proxy';

/** Returns when the certificate expires (epoch ms), or null for http. Rejects if there is no connection or no trust. */
async function reach(url: URL, proxy: HttpProxy | null): Promise<number | null> {
  const isHttps = url.protocol === 'https:';
  const host = bareHost(url.hostname);
  const port = Number(url.port || (isHttps ? 443 : 80));
  const tunnel =
    proxy === null ? undefined : await openTunnel(proxy, authorityOf(url), { timeoutMs: CONNECT_MS });
  if (tunnel !== undefined && !isHttps) {
    tunnel.destroy();
    return null;
  }
  const isName = !/^[\d.]+$|:/.test(host);
  const socket: Socket = isHttps
    ? connectTls({
        host,
        port,
        socket: tunnel,
        ALPNProtocols: ['http/1.1'],
        ...(isName && { servername: host }),
      })
    : connectTcp({ host, port });
  try {
    return await new Promise<number | null>((resolve, reject) => {
      socket.setTimeout(CONNECT_MS, () => reject(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })));
      socket.once('error', reject);
      socket.once(isHttps ? 'secureConnect' : 'connect', () =>
        resolve(socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : null),
      );
    });
  } finally {
    socket.on('error', () => {});
    socket.destroy();
  }
}

/** Judges what a connection URL reveals to those on the way; null: nothing to say. `check` names the line. */
export function judgeEncryption(check: string, variable: string, text: string): CheckResult | null {
  const url = URL.parse(partsOf(text).head);
  if (url === null || url.hostname === '' || socketDirectory(text) !== null || isLoopbackUrl(url))
    return null;
  const host = url.hostname;
  const isRedis = /^rediss?:/i.test(text);
  const { tls } = connectionOf(text);
  if (tls === null) {
    const remedy = isRedis ? `use rediss:// in ${variable}` : `add sslmode=verify-full to ${variable}`;
    return warn(check, `the connection to ${host} is not encrypted, the password included`, remedy);
  }
  if (tls.rejectUnauthorized === false)
    return warn(
      check,
      `encrypted, but the certificate of ${host} is not verified, so another server could impersonate it`,
      `add sslmode=verify-full to ${variable}, and sslrootcert if the authority is your own`,
    );
  return ok(check, `encrypted, and the certificate of ${host} is verified`);
}
