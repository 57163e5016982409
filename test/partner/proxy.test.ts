import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { createServer as createTls, setDefaultCACertificates } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AUTH_CLASS } from '../../src/partner/errors.ts';
import type { ProxySource } from '../../src/partner/proxy.ts';
import { certificate } from '../security/tls-proxy.ts';
import { eventually, PATIENCE_MS } from '../support/eventually.ts';
import type { Mood } from '../support/http-proxy.ts';
import { freePort } from '../support/net.ts';
import { all, failure, fileAt, fileOf } from './manifest-reading.ts';
import { both, clientOf, errorOf, fixed, GOOD, LOGIN, PAIR, proxied, serveTls } from './proxied.ts';
import { answer, serve } from './server.ts';

describe('a request through a proxy', () => {
  test('uses one tunnel for many requests, and sends the login to the proxy only', async () => {
    const seen: unknown[] = [];
    const base = await serve((request, response) => {
      seen.push(request.rawHeaders);
      void GOOD(request, response);
    });
    const proxy = await proxied(LOGIN);
    const { delta, outcomes } = clientOf(base, both(proxy.url));
    for (let index = 0; index < 6; index += 1) await delta();
    expect(outcomes).toEqual(Array.from({ length: 6 }, () => 'ok'));
    const login = `Basic ${Buffer.from(LOGIN).toString('base64')}`;
    expect(new Set(proxy.asked.map((asked) => JSON.stringify(asked)))).toEqual(
      new Set([JSON.stringify({ authority: base.host, login })]),
    );
    expect(proxy.asked.length).toBeLessThan(3);
    expect(proxy.forwarded).toEqual([]);
    expect(proxy.heads).not.toMatch(/"authorization"/i);
    expect(JSON.stringify(seen)).toContain(PAIR);
    expect(JSON.stringify(seen)).not.toMatch(/proxy/i);
  });

  test('encrypts https end to end and verifies the target’s name, even if only the proxy can resolve it', async () => {
    const port = await serveTls(GOOD);
    const proxy = await proxied();
    proxy.names.set('localhost:443', port).set('partner.example:443', port);
    const { delta } = clientOf(new URL('https://localhost'), both(proxy.url));
    await delta();
    expect(proxy.asked).toEqual([{ authority: 'localhost:443', login: undefined }]);
    expect(proxy.heads + proxy.carried).not.toMatch(/authorization|partner\/catalog/i);
    const other = clientOf(new URL('https://partner.example'), both(proxy.url));
    const error = await errorOf(other.delta());
    expect(error.kind).toBe('network');
    expect(error.message).toContain(`through the proxy http://127.0.0.1:${proxy.port}`);
    expect((error.cause as Error).message).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
    // The same with a certificate that nobody trusts.
    setDefaultCACertificates([readFileSync(certificate('other-ca.pem'), 'utf8')]);
    const untrusted = await errorOf(clientOf(new URL('https://localhost'), both(proxy.url)).delta());
    expect(untrusted.kind).toBe('network');
  });

  test('also works through a proxy that itself speaks https', async () => {
    const base = await serve(GOOD);
    const port = await serveTls(() => undefined);
    const proxy = await proxied(LOGIN);
    // Terminates TLS in front of the proxy and passes the contents on to it.
    const front = createTls(
      { key: readFileSync(certificate('localhost.key')), cert: readFileSync(certificate('localhost.pem')) },
      (socket) => {
        const inner = connect(proxy.port, '127.0.0.1');
        socket.on('error', () => inner.destroy()).pipe(inner);
        inner.on('error', () => socket.destroy()).pipe(socket);
      },
    );
    await new Promise<void>((resolve) => {
      front.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void front.close());
    const at = (host: string) => both(`https://${LOGIN}@${host}:${(front.address() as AddressInfo).port}`);
    await clientOf(base, at('localhost')).delta();
    proxy.names.set('localhost:443', port);
    expect((await errorOf(clientOf(base, at('127.0.0.1')).delta())).message).toContain(
      'cannot be used (ERR_TLS',
    );
  });

  test('goes directly for NO_PROXY, for a scheme without a proxy, and without any proxy settings', async () => {
    const base = await serve(GOOD);
    const proxy = await proxied();
    await clientOf(base, both(proxy.url, ['127.0.0.1'])).delta();
    await clientOf(base, { https: fixed(proxy.url), http: null, except: null }).delta();
    await clientOf(base, undefined).delta();
    await all(
      fileAt(await serve((_request, response) => response.end(fileOf(3))), { proxy: both(proxy.url, ['*']) }),
    );
    expect(proxy.asked).toEqual([]);
  });

  test('reads the proxy URL anew for each connection', async () => {
    const base = await serve((request, response) => {
      response.setHeader('connection', 'close');
      void GOOD(request, response);
    });
    const [one, two] = [await proxied(), await proxied()];
    const now = { url: one.url, inFile: one.url };
    const source: ProxySource = {
      read: () => now.url,
      refresh() {
        now.url = now.inFile;
        return true;
      },
    };
    const { delta } = clientOf(base, { https: null, http: source, except: null });
    await delta();
    now.inFile = two.url;
    await delta();
    expect([one.asked.length, two.asked.length]).toEqual([1, 1]);
  });

  test('is ended by closing the client, even if a silent proxy keeps the connection open', async () => {
    const proxy = await proxied();
    proxy.mood = () => 'silent';
    const { delta, client } = clientOf(await serve(GOOD), both(proxy.url), 60_000);
    const failed = errorOf(delta());
    await eventually(() => proxy.asked.length === 1);
    await client.close();
    expect((await failed).kind).toBe('network');
    await eventually(() => proxy.open === 0, { what: 'the end of its connection', within: 5000 });
  });
});

/** What each proxy behaviour is reported as. */
const MOODS: readonly (readonly [mood: Mood, kind: string, says: RegExp, hint: RegExp])[] = [
  [403, 'network', /answered 403 to CONNECT 127/, /does not allow 127\.0\.0\.1:\d+.*NO_PROXY/],
  [407, 'network', /answered 407 to CONNECT/, /user and password in the URL of the proxy/],
  [401, 'network', /answered 401 to CONNECT/, /see its log/],
  [429, 'network', /answered 429 to CONNECT/, /see its log/],
  [500, 'network', /answered 500 to CONNECT/, /see its log/],
  [502, 'network', /answered 502 to CONNECT/, /see its log/],
  [302, 'network', /answered 302 to CONNECT/, /see its log/],
  ['garbage', 'network', /does not answer as an HTTP proxy \(HPE_/, /check HTTPS_PROXY and HTTP_PROXY/],
  ['cut', 'network', /cannot be used \(ECONNRESET\)/, /is up and reached/],
  ['silent', 'timeout', /opened no connection within 1500 ms/, /log of the proxy/],
  [{ cutAfter: 20 }, 'network', /through the proxy/, /the connection was cut/],
  [{ stallAfter: 20 }, 'timeout', /through the proxy/, /PARTNER_TIMEOUT/],
];

describe('a failure of the proxy is not mistaken for an answer of the partner:', () => {
  test.each(MOODS)('%j', async (mood, kind, says, hint) => {
    const base = await serve(GOOD);
    const proxy = await proxied();
    proxy.mood = () => mood;
    // For the other moods the timeout does not matter.
    const timeoutMs = kind === 'timeout' ? 2000 : PATIENCE_MS;
    const { delta, outcomes } = clientOf(base, both(`http://${LOGIN}@127.0.0.1:${proxy.port}`), timeoutMs);
    const error = await errorOf(delta());
    expect(error).toMatchObject({ kind, status: undefined, code: undefined });
    expect(error.message).toMatch(says);
    expect(error.message).toContain(`proxy http://127.0.0.1:${proxy.port}`);
    expect(error.hint).toMatch(hint);
    expect(AUTH_CLASS.has(error.kind)).toBe(false);
    expect(outcomes).toEqual([kind]);
    // It recovers without a new client.
    proxy.mood = () => 'pass';
    await delta();
  });

  test('no proxy at its address', async () => {
    const error = await errorOf(
      clientOf(await serve(GOOD), both(`http://${LOGIN}@localhost:${await freePort()}`)).delta(),
    );
    expect(error.message).toMatch(/the proxy http:\/\/localhost:\d+ cannot be used \(ECONNREFUSED\)/);
    expect(error.kind).toBe('network');
  });

  test("the partner's own 403 is still reported as the partner's through a proxy", async () => {
    const base = await serve((_request, response) => answer(response, 403, { message: 'Forbidden' }));
    const proxy = await proxied();
    expect((await errorOf(clientOf(base, both(proxy.url)).delta())).kind).toBe('throttled-or-forbidden');
  });

  test('a refusal of the manifest file by the proxy is not reported as an expired URL', async () => {
    const base = await serve((_request, response) => response.end(fileOf(100)));
    const proxy = await proxied();
    for (const [mood, kind, says] of MOODS.slice(0, 9)) {
      proxy.mood = () => mood;
      const error = await failure(fileAt(base, { proxy: both(proxy.url) }));
      expect([error.kind, error.status]).toEqual([kind, undefined]);
      expect(error.message).toMatch(says);
    }
    proxy.mood = () => 'silent';
    const silent = await failure(fileAt(base, { proxy: both(proxy.url), idleTimeoutMs: 200 }));
    expect([silent.kind, silent.message]).toEqual(['timeout', expect.stringContaining('within 200 ms')]);
    proxy.mood = () => ({ cutAfter: 2000 });
    expect((await failure(fileAt(base, { proxy: both(proxy.url) }))).kind).toBe('file-corrupt');
    proxy.mood = () => 'pass';
    expect((await all(fileAt(base, { proxy: both(proxy.url) }))).lines).toHaveLength(100);
    expect(
      (await failure(fileAt(base, { proxy: both(proxy.url), caps: { compressedBytes: 500 } }))).kind,
    ).toBe('file-too-large');
  });

  test('redirects of the manifest file are not followed through the proxy', async () => {
    const trap = await serve(GOOD);
    const base = await serve((_request, response) => response.writeHead(302, { location: trap.href }).end());
    const proxy = await proxied();
    expect((await failure(fileAt(base, { proxy: both(proxy.url) }))).status).toBe(302);
    expect(proxy.asked.map(({ authority }) => authority)).toEqual([base.host]);
  });
});
