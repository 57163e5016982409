import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { failureCode, type PartnerErrorFacts, type PartnerErrorKind } from './errors.ts';
import { currentProxy, parseProxy, type HttpProxy, type ProxySource } from './proxy.ts';

/**
 * What the proxy did instead of connecting; none of it is the partner's doing. The message names the proxy without
 * its login. `code` decides the kind of the PartnerError.
 */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: 'ERR_PROXY' | 'ERR_PROXY_TIMEOUT';
  readonly hint: string;

  constructor(text: string, hint: string, code: ProxyError['code'] = 'ERR_PROXY') {
    super(text);
    this.code = code;
    this.hint = hint;
  }
}

export interface TunnelOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks a proxy for a connection to `authority` (host:port); the proxy receives only that and its own login.
 * Resolves to a socket with the target at its other end. Throws ProxyError, or the reason of `signal`.
 */
export async function openTunnel(
  proxy: HttpProxy,
  authority: string,
  options: TunnelOptions,
): Promise<Socket> {
  const { timeoutMs, signal } = options;
  const headers: Record<string, string> = { host: authority, connection: 'keep-alive' };
  headers['proxy-connection'] = 'keep-alive';
  if (proxy.authorization !== null) headers['proxy-authorization'] = proxy.authorization;
  const { host, port } = proxy;
  const common = { host, port, method: 'CONNECT', path: authority, headers, agent: false, signal } as const;
  const sent = proxy.isTls
    ? requestHttps({ ...common, ...(isIP(host) === 0 && { servername: host }) })
    : requestHttp(common);
  const timer = setTimeout(() => sent.destroy(silent(proxy, timeoutMs)), timeoutMs);
  try {
    return await new Promise<Socket>((resolve, reject) => {
      sent.once('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
        if (statusCode >= 200 && statusCode < 300) {
          if (head.length > 0) socket.unshift(head);
          socket.setKeepAlive(true, 60_000).setNoDelay(true);
          resolve(socket);
          return;
        }
        socket.on('error', () => {});
        socket.destroy();
        reject(refused(proxy, authority, statusCode));
      });
      sent.on('error', (error) => {
        reject(signal?.aborted === true || error instanceof ProxyError ? error : unreachable(proxy, error));
      });
      sent.end();
    });
  } finally {
    clearTimeout(timer);
  }
}

const LOGIN =
  'check user and password in the URL of the proxy (HTTPS_PROXY, HTTP_PROXY); it can be sent Basic alone';

function refused({ shown }: HttpProxy, authority: string, status: number): ProxyError {
  const hint =
    status === 407
      ? LOGIN
      : status === 403
        ? `the proxy does not allow ${authority}: have it allowed there, or name the host in NO_PROXY`
        : 'the proxy is there but opened no connection: see its log, or name the host in NO_PROXY';
  return new ProxyError(`the proxy ${shown} answered ${status} to CONNECT ${authority}`, hint);
}

function unreachable({ shown }: HttpProxy, error: Error): ProxyError {
  const code = failureCode(error);
  const what = code?.startsWith('HPE_') ? 'does not answer as an HTTP proxy' : 'cannot be used';
  const hint = 'check HTTPS_PROXY and HTTP_PROXY, and whether the proxy is up and reached from here';
  return new ProxyError(`the proxy ${shown} ${what}${code === undefined ? '' : ` (${code})`}`, hint);
}

function silent({ shown }: HttpProxy, ms: number): ProxyError {
  const hint =
    'the proxy or what is behind it does not answer: check HTTPS_PROXY and HTTP_PROXY, and the log of the proxy';
  return new ProxyError(`the proxy ${shown} opened no connection within ${ms} ms`, hint, 'ERR_PROXY_TIMEOUT');
}

/** Returns the target of CONNECT for a URL or for what undici takes from one. */
export function authorityOf({
  hostname,
  port,
  protocol,
}: {
  hostname: string;
  port: string;
  protocol: string;
}): string {
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  return `${host}:${port || (protocol === 'https:' ? '443' : '80')}`;
}

export interface ConnectorOptions extends TunnelOptions {
  readonly proxy: ProxySource;
  /** Rejects if the proxy must not be asked for this host. */
  readonly check?: (hostname: string) => Promise<void>;
}

/**
 * Connects undici through a proxy, with CONNECT for http as well, so that the partner's requests and answers cannot
 * be confused with the proxy's own. TLS is with the target, by its name, as without a proxy.
 */
export function tunnelConnector(options: ConnectorOptions): buildConnector.connector {
  const connectTls = buildConnector({ allowH2: false, timeout: options.timeoutMs });
  const connect: (...given: Parameters<buildConnector.connector>) => Promise<void> = async (
    target,
    callback,
  ) => {
    let httpSocket: Socket;
    try {
      await options.check?.(target.hostname);
      httpSocket = await openTunnel(currentProxy(options.proxy), authorityOf(target), options);
    } catch (error) {
      callback(error instanceof Error ? error : new Error('no connection'), null);
      return;
    }
    if (target.protocol === 'https:') connectTls({ ...target, httpSocket }, callback);
    else callback(null, httpSocket);
  };
  return (target, callback) => void connect(target, callback);
}

const ERROR_CODE = /^[A-Z][\w/]{2,60}$/;

const BASE_URL = 'PARTNER_BASE_URL';

/** Hints for a connection that failed, by the code of its error; other codes have the hint of their kind. */
const WAYS: readonly (readonly [codes: RegExp, hint: string])[] = [
  [/^(?:ENOTFOUND|EAI_)/, `its host has no address here: check ${BASE_URL} and DNS`],
  [
    /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/,
    `nothing answers at its address: check ${BASE_URL} and the network`,
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/,
    'its certificate is not valid at this time: check the clock of this host; if that is right, ' +
      'whoever runs what answers has to renew it',
  ],
  [
    /ALTNAME|HOSTNAME/,
    `its certificate is of another host: check ${BASE_URL}, and whether a gateway answers in its place`,
  ],
  [
    /^ERR_SSL.*_ALERT_/,
    `what answers has refused TLS, as for its version or because it asks clients for a certificate: check ${BASE_URL}; ` +
      'tell whoever runs it the code',
  ],
  [
    /CERT|SIGNATURE|ISSUER|SIGNED/,
    `its certificate is not trusted: check ${BASE_URL}, or add the certificate authority to NODE_EXTRA_CA_CERTS`,
  ],
  [
    /^(?:HPE_|HTTPParserError|UND_ERR_HEADERS_OVERFLOW|ERR_ASSERTION|UND_ERR_RES_|UND_ERR_INFO|EPROTO|ERR_SSL)/,
    `what was answered is not HTTP as it has to be: a proxy or gateway in between, or another service at ${BASE_URL}; ` +
      'tell whoever runs it the code',
  ],
  [
    /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE)$/,
    'the connection was cut before the answer was complete: it is retried',
  ],
];

/** Returns the hint for an error's code; undefined for other codes. `named` is where the address came from. */
export const hintOfCode = (code: string, named = BASE_URL): string | undefined =>
  WAYS.find(([codes]) => codes.test(code))?.[1].replace(BASE_URL, named);

/**
 * Returns what to report about a failed request besides its kind: the code of the error, what the proxy did, or
 * which proxy it went through. `proxy` is null for a direct connection; `named` is where the address came from.
 */
export function factsOfWay(
  error: unknown,
  kind: PartnerErrorKind,
  proxy: ProxySource | null,
  named = BASE_URL,
): Pick<PartnerErrorFacts, 'detail' | 'hint'> {
  if (error instanceof ProxyError) return { detail: error.message, hint: error.hint };
  if (kind !== 'network' && kind !== 'timeout') return {};
  const shown = proxy === null ? undefined : parseProxy(proxy.read())?.shown;
  const code = failureCode(error);
  const said = [
    code !== undefined && ERROR_CODE.test(code) ? code : '',
    shown === undefined ? '' : `through the proxy ${shown}`,
  ].filter((part) => part !== '');
  const hint = kind === 'network' ? hintOfCode(code ?? '', named) : undefined;
  return { ...(said.length > 0 && { detail: said.join(' ') }), ...(hint !== undefined && { hint }) };
}
