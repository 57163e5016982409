import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { checkPartnerReachable } from '../../src/cli/doctor/connection.ts';
import { refuseResolved } from '../../src/partner/origin.ts';
import type { ProxySettings } from '../../src/partner/proxy.ts';
import type { HttpProxy } from '../support/http-proxy.ts';
import { deafPort } from '../support/net.ts';
import { failure, fileAt } from './manifest-reading.ts';
import { both, clientOf, errorOf, GOOD, LEAKS, LOGIN, proxied, serveTls } from './proxied.ts';
import { serve } from './server.ts';

describe('through a proxy, private addresses are not requested:', () => {
  const BASE = new URL('https://partner.example');
  const download = async (url: string, addresses: readonly string[] | null, proxy: HttpProxy, more = {}) =>
    failure(
      fileAt(new URL(url), {
        baseUrl: BASE,
        proxy: both(proxy.url),
        resolve: (_name, done) => {
          if (addresses === null) done(Object.assign(new Error('none'), { code: 'ENOTFOUND' }), []);
          else
            done(
              null,
              addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
            );
        },
        ...more,
      }),
    );

  test.each<[url: string, addresses: string[] | null]>([
    ['https://10.0.0.1', null],
    ['https://[::1]', null],
    ['https://169.254.169.254', null],
    ['https://2130706433', null],
    ['http://files.example', ['8.8.8.8']],
    ['https://localhost', ['127.0.0.1']],
    ['https://files.example', ['10.0.0.1']],
    ['https://files.example', ['8.8.8.8', '192.168.1.1']],
    ['https://files.example', ['::ffff:127.0.0.1']],
    ['https://files.example', []],
  ])('%s at %j', async (url, addresses) => {
    const proxy = await proxied();
    proxy.mood = () => 502;
    expect((await download(url, addresses, proxy)).kind).toBe('url-refused');
    expect(proxy.asked).toEqual([]);
  });

  test('public ones are requested, by name, and so are names that do not resolve here', async () => {
    const proxy = await proxied();
    proxy.mood = () => 502;
    for (const addresses of [['8.8.8.8'], null]) {
      const error = await download('https://files.example:8443', addresses, proxy);
      expect([error.kind, error.message]).toEqual(['network', expect.stringContaining('answered 502')]);
    }
    expect(proxy.asked.map(({ authority }) => authority)).toEqual([
      'files.example:8443',
      'files.example:8443',
    ]);
  });

  test('a resolver that does not answer counts as one that does not know the name', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let left = false;
    const asked = refuseResolved('files.example', 'public', () => undefined).then(() => (left = true));
    await vi.advanceTimersByTimeAsync(4999);
    expect(left).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await asked;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('listed origins may be private, and NO_PROXY restores the checks of a direct connection', async () => {
    const proxy = await proxied();
    proxy.mood = () => 502;
    const origins = ['https://files.example'];
    expect((await download('https://files.example', ['10.0.0.1'], proxy, { origins })).kind).toBe('network');
    expect(proxy.asked).toHaveLength(1);
    const direct = { proxy: both(proxy.url, ['files.example']) };
    expect((await download('https://files.example', ['10.0.0.1'], proxy, direct)).kind).toBe('url-refused');
    expect(proxy.asked).toHaveLength(1);
  });
});

describe('doctor', () => {
  const found = async (baseUrl: string, settings: ProxySettings) =>
    checkPartnerReachable({ baseUrl, proxy: settings }, Date.now);

  test('names the proxy and what failed there', async () => {
    const base = (await serve(GOOD)).origin;
    const proxy = await proxied(LOGIN);
    const through = `through proxy http://127.0.0.1:${proxy.port}`;
    expect(await found(base, both(proxy.url))).toMatchObject([
      { level: 'OK', text: `${base} ${through}: plain http, on this host` },
    ]);
    const [wrong] = await found(base, both(proxy.url.replace('ann', 'bob')));
    expect(wrong).toMatchObject({
      level: 'FAIL',
      text: expect.stringMatching(`${through} cannot be reached: the proxy .* answered 407 to CONNECT`),
      remedy: expect.stringContaining('user and password'),
    });
    expect(JSON.stringify(wrong)).not.toMatch(LEAKS);
    expect(await found(base, both(proxy.url, ['*']))).toMatchObject([
      { text: `${base}: plain http, on this host` },
    ]);
  });

  test("checks the partner's certificate through the proxy", async () => {
    const port = await serveTls(GOOD);
    const proxy = await proxied();
    proxy.names.set('localhost:443', port).set('partner.example:443', port);
    expect(await found('https://localhost', both(proxy.url))).toMatchObject([
      { level: 'OK', text: `https://localhost through proxy http://127.0.0.1:${proxy.port}` },
      { check: 'tls' },
    ]);
    expect(await found('https://partner.example', both(proxy.url))).toMatchObject([
      { level: 'FAIL', text: expect.stringContaining('is not trusted (ERR_TLS_CERT_ALTNAME_INVALID)') },
    ]);
  });

  test('does not wait forever for a deaf proxy', async () => {
    await using deaf = await deafPort();
    const { delta } = clientOf(await serve(GOOD), both(`http://127.0.0.1:${deaf.port}`), 200);
    expect((await errorOf(delta())).message).toContain('opened no connection within 150 ms');
  });
});
