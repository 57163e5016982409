import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { refusalOf, baseOf, isLoopbackHost } from '../../src/sandbox/control/guard.ts';
import { start } from './support.ts';

const TOKEN = 'a-token-of-thirty-two-characters';
const HERE = { host: '127.0.0.1:8080' };
const statusOf = (
  headers: Record<string, string>,
  {
    token = null,
    from = '127.0.0.1',
    method = 'POST',
  }: { token?: string | null; from?: string; method?: string } = {},
) => refusalOf({ method, headers, remoteAddress: from }, token)?.status ?? 'ok';

describe('who may control the sandbox', () => {
  it.each<[string, Record<string, string>, { token?: string; from?: string }, number | 'ok']>([
    ['curl on this machine', HERE, {}, 'ok'],
    ['the same by name', { host: 'localhost:8080' }, {}, 'ok'],
    ['the same over IPv6', { host: '[::1]:8080' }, { from: '::1' }, 'ok'],
    ['an IPv4 client of an IPv6 server', HERE, { from: '::ffff:127.0.0.1' }, 'ok'],
    ['a neighbour', { host: '192.0.2.7:8080' }, { from: '192.0.2.9' }, 403],
    ['a neighbour that says it is here', HERE, { from: '192.0.2.9' }, 403],
    ['a neighbour behind a proxy on this machine', { ...HERE, 'x-forwarded-for': '192.0.2.9' }, {}, 403],
    ['the same with the standard header', { ...HERE, forwarded: 'for=192.0.2.9' }, {}, 403],
    ['a name that was bound to this address', { host: 'evil.example:8080' }, {}, 403],
    ['the same with our own words in it', { host: 'localhost.evil.example:8080' }, {}, 403],
    ['no Host header', {}, {}, 403],
    ['a form of another site', { ...HERE, origin: 'https://evil.example' }, {}, 403],
    ['a form of a sandboxed frame', { ...HERE, origin: 'null' }, {}, 403],
    ['another port of this machine', { ...HERE, origin: 'http://127.0.0.1:3000' }, {}, 403],
    ['the same as browsers say it', { ...HERE, 'sec-fetch-site': 'same-site' }, {}, 403],
    ['a link on another site', { ...HERE, 'sec-fetch-site': 'cross-site' }, {}, 403],
    ['the own page', { ...HERE, origin: 'http://127.0.0.1:8080', 'sec-fetch-site': 'same-origin' }, {}, 'ok'],
    ['the address bar', { ...HERE, 'sec-fetch-site': 'none' }, {}, 'ok'],
    [
      'the token, from elsewhere',
      { host: 'x:1', authorization: `Bearer ${TOKEN}` },
      { token: TOKEN, from: '192.0.2.9' },
      'ok',
    ],
    ['the token in other letters', { ...HERE, authorization: `bearer ${TOKEN}` }, { token: TOKEN }, 'ok'],
    ['no token where there is one', HERE, { token: TOKEN }, 401],
    ['another token', { ...HERE, authorization: `Bearer ${TOKEN}x` }, { token: TOKEN }, 401],
    ['the partner credential', { ...HERE, authorization: 'Basic c2FuZGJveA==' }, { token: TOKEN }, 401],
  ])('%s', (_, headers, options, expected) => {
    expect(statusOf(headers, options)).toBe(expected);
  });

  it.each<[Record<string, string>, string, number | 'ok']>([
    [{ 'content-length': '9', 'content-type': 'application/json' }, 'POST', 'ok'],
    [{ 'content-length': '9', 'content-type': 'application/json; charset=utf-8' }, 'PUT', 'ok'],
    [{ 'content-length': '9', 'content-type': 'text/plain' }, 'POST', 415],
    [{ 'content-length': '9', 'content-type': 'application/x-www-form-urlencoded' }, 'POST', 415],
    [{ 'transfer-encoding': 'chunked', 'content-type': 'multipart/form-data' }, 'POST', 415],
    [{ 'content-length': '9' }, 'DELETE', 415],
    [{ 'content-length': '0', 'content-type': 'text/plain' }, 'POST', 'ok'],
    [{}, 'POST', 'ok'],
  ])('a body must be JSON and say so: %j %s', (headers, method, expected) => {
    expect(statusOf({ ...HERE, ...headers }, { method })).toBe(expected);
  });

  it('is checked on every control route before anything is done', async () => {
    const caller = await start();
    await using _ = caller.sandbox;
    const before = caller.sandbox.world.newestSnapshot();
    const send = (path: string, method: string, headers: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        request(caller.sandbox.url + path, { method, headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        })
          .on('error', reject)
          .end();
      });
    const evil = { host: 'evil.example' };
    for (const [method, path] of [
      ['POST', '/sandbox/reset'],
      ['POST', '/sandbox/step'],
      ['DELETE', '/sandbox/snapshots'],
      ['GET', '/sandbox/state'],
      ['GET', '/sandbox/no/such'],
      ['OPTIONS', '/sandbox/reset'],
      ['POST', '/sandbox?x'],
    ] as const)
      expect([method, path, await send(path, method, evil)]).toEqual([method, path, 403]);
    expect(caller.sandbox.world.newestSnapshot()).toBe(before);
    expect(await send('/sandboxes', 'GET', {})).toBe(401);
  });

  it('a token appears in no answer', async () => {
    const caller = await start({ controlToken: TOKEN });
    await using _ = caller.sandbox;
    const authorization = { authorization: `Bearer ${TOKEN}` };
    const texts = await Promise.all([
      fetch(caller.sandbox.url),
      fetch(`${caller.sandbox.url}/sandbox/state`, { headers: authorization }),
      fetch(`${caller.sandbox.url}/sandbox/requests`, { headers: authorization }),
      fetch(`${caller.sandbox.url}/sandbox/state`),
    ]);
    expect(texts.map(({ status }) => status)).toEqual([200, 200, 200, 401]);
    for (const answer of texts) expect(await answer.text()).not.toContain(TOKEN);
  });
});

describe('the Host header', () => {
  it.each([
    ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['sandbox:8080', 'http://sandbox:8080'],
    ['my_sandbox', 'http://my_sandbox'],
    ['[2001:db8::1]:80', 'http://[2001:db8::1]:80'],
    ['localhost.', 'http://localhost.'],
    ['', null],
    [undefined, null],
    ['a b', null],
    ['a:99999', null],
    ['a:8080:1', null],
    ['user@host', null],
    ['host/path', null],
    ['host?x', null],
    ['[::1', null],
    ['[evil]', null],
    ['-a', null],
    ['a"b', null],
  ])('%j gives the base URL %j', (header, base) => {
    expect(baseOf(header)).toBe(base);
  });

  it.each([
    ['LOCALHOST:1', true],
    ['127.8.9.1', true],
    ['[::1]', true],
    ['127.0.0.1.nip.io', false],
    ['2130706433', false],
    ['0.0.0.0', false],
    ['sandbox', false],
  ])('%j means this machine: %j', (header, expected) => {
    expect(isLoopbackHost(header)).toBe(expected);
  });
});
