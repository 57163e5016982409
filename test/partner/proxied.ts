import { readFileSync } from 'node:fs';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { inspect } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { PartnerError } from '../../src/partner/errors.ts';
import type { ProxySettings, ProxySource } from '../../src/partner/proxy.ts';
import { certificate } from '../security/tls-proxy.ts';
import { PATIENCE_MS } from '../support/eventually.ts';
import { type HttpProxy, startHttpProxy } from '../support/http-proxy.ts';
import { clientOf as plainClientOf } from './plain-client.ts';
import { answer, type Listener } from './server.ts';

export const LOGIN = 'ann:proxy-canary';
export const PAIR = Buffer.from('key-canary:secret-canary').toString('base64');
export const LEAKS = new RegExp(`canary|${PAIR}|${Buffer.from(LOGIN).toString('base64')}`);
export const GOOD: Listener = (_request, response) =>
  answer(response, 200, { changed: [], removed: [], now_live: [], to_snapshot: 's2' });

export const fixed = (url: string): ProxySource => ({ read: () => url, refresh: () => false });
export const both = (url: string, except: readonly string[] | null = null): ProxySettings => ({
  https: fixed(url),
  http: fixed(url),
  except,
});

export async function proxied(login?: string): Promise<HttpProxy> {
  const proxy = await startHttpProxy(login);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return proxy;
}

export function clientOf(baseUrl: URL, proxy: ProxySettings | undefined, timeoutMs = PATIENCE_MS) {
  const outcomes: string[] = [];
  const client = plainClientOf(baseUrl, {
    credentials: () => ({ apiKey: 'key-canary', secret: 'secret-canary' }),
    timeoutMs,
    allowInsecure: true,
    proxy,
  });
  const permit = { settle: async (outcome: string) => void outcomes.push(outcome) };
  return { delta: () => client.delta(permit, 's1'), client, outcomes };
}

export async function errorOf(promise: Promise<unknown>): Promise<PartnerError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PartnerError)) throw new Error('no PartnerError', { cause: error });
  expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(LEAKS);
  return error;
}

/** Starts an https server with the certificate of `localhost`, whose authority is trusted during the test. */
export async function serveTls(
  listener: Listener,
  shows = 'localhost',
  more: ServerOptions = {},
): Promise<number> {
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, readFileSync(certificate('ca.pem'), 'utf8')]);
  const key = readFileSync(certificate(`${shows}.key`));
  const server = createServer(
    { key, cert: readFileSync(certificate(`${shows}.pem`)), ...more },
    (request, response) => {
      void listener(request, response);
    },
  );
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    setDefaultCACertificates(trusted);
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
