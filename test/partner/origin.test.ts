import type { LookupAddress } from 'node:dns';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  ADDRESS_REFUSED,
  checkBaseUrl,
  checkFilesUrl,
  guardedLookup,
  isPublicAddress,
  type Resolver,
  type UrlProblem,
} from '../../src/partner/origin.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';

const PUBLIC = new URL('https://api.example.com/v1');
const LOOPBACK = new URL('http://127.0.0.1:8080');

const fromPublicBase: [string, UrlProblem | null][] = [
  ['https://files.example.com/m.gz?X-Amz-Signature=1', null],
  ['https://bucket.s3.amazonaws.com/m.gz', null],
  ['https://files.example.com:8443/m.gz', null],
  ['https://93.184.216.34/m.gz', null],
  ['https://[2606:4700::1111]/m.gz', null],
  ['https://[64:ff9b::808:808]/', null],
  ['http://files.example.com/m.gz', 'scheme'],
  ['ftp://files.example.com/m.gz', 'scheme'],
  ['file:///etc/passwd', 'scheme'],
  ['data:text/plain,x', 'scheme'],
  ['not a url', 'not-a-url'],
  ['//files.example.com/m.gz', 'not-a-url'],
  ['https://user@files.example.com/', 'credentials'],
  ['https://:pass@files.example.com/', 'credentials'],
  ['https://127.0.0.1/', 'not-public'],
  ['https://127.1/', 'not-public'],
  ['https://2130706433/', 'not-public'],
  ['https://0x7f000001/', 'not-public'],
  ['https://0177.0.0.1/', 'not-public'],
  ['https://127.0.0.1./', 'not-public'],
  ['https://１２７.0.0.1/', 'not-public'],
  ['https://localhost/', 'not-public'],
  ['https://LOCALHOST./', 'not-public'],
  ['https://files.localhost/', 'not-public'],
  ['https://0.0.0.0/', 'not-public'],
  ['https://0/', 'not-public'],
  ['https://10.1.2.3/', 'not-public'],
  ['https://100.100.100.200/', 'not-public'],
  ['https://169.254.169.254/latest/meta-data', 'not-public'],
  ['https://0xa9fea9fe/', 'not-public'],
  ['https://168.63.129.16/', 'not-public'],
  ['https://172.16.0.1/', 'not-public'],
  ['https://172.31.255.255/', 'not-public'],
  ['https://172.32.0.1/', null],
  ['https://192.168.1.1/', 'not-public'],
  ['https://192.0.2.1/', 'not-public'],
  ['https://198.18.0.1/', 'not-public'],
  ['https://224.0.0.1/', 'not-public'],
  ['https://240.0.0.1/', 'not-public'],
  ['https://255.255.255.255/', 'not-public'],
  ['https://[::1]/', 'not-public'],
  ['https://[::]/', 'not-public'],
  ['https://[0:0:0:0:0:0:0:1]/', 'not-public'],
  ['https://[::ffff:127.0.0.1]/', 'not-public'],
  ['https://[::ffff:a9fe:a9fe]/', 'not-public'],
  ['https://[::127.0.0.1]/', 'not-public'],
  ['https://[64:ff9b::169.254.169.254]/', 'not-public'],
  ['https://[fe80::1]/', 'not-public'],
  ['https://[fec0::1]/', 'not-public'],
  ['https://[fc00::1]/', 'not-public'],
  ['https://[fd00:ec2::254]/', 'not-public'],
  ['https://[ff02::1]/', 'not-public'],
  ['https://[2002:7f00:1::]/', 'not-public'],
  ['https://[2001:0:1::1]/', 'not-public'],
  ['https://[2001:db8::1]/', 'not-public'],
];

test.each(fromPublicBase)('files at %s: %s', (url, problem) => {
  expect(checkFilesUrl(url, PUBLIC)).toBe(problem);
});

test.each<[string, UrlProblem | null]>([
  ['http://127.0.0.1:9000/m.gz', null],
  ['https://localhost/m.gz', null],
  ['http://[::1]:9000/m.gz', null],
  ['https://files.example.com/m.gz', null],
  ['http://files.example.com/m.gz', 'scheme'],
  ['https://10.0.0.1/m.gz', 'not-public'],
  ['http://10.0.0.1/m.gz', 'scheme'],
  ['http://user@127.0.0.1/m.gz', 'credentials'],
])('if the API is on loopback, files at %s: %s', (url, problem) => {
  expect(checkFilesUrl(new URL(url), LOOPBACK)).toBe(problem);
});

test.each<[string, boolean, UrlProblem | null]>([
  ['https://api.example.com', false, null],
  ['https://10.0.0.1/prefix', false, null],
  ['http://localhost:8080', false, null],
  ['http://[::1]:8080', false, null],
  ['http://127.0.0.53', false, null],
  ['http://api.example.com', false, 'scheme'],
  ['http://localhost.example.com', false, 'scheme'],
  ['http://api.example.com', true, null],
  ['ftp://api.example.com', true, 'scheme'],
  ['https://key:secret@api.example.com', true, 'credentials'],
  ['https://api.example.com/?a=1', false, 'query'],
  ['https://api.example.com/#a', false, 'query'],
])('base URL %s, insecure allowed %s: %s', (url, insecure, problem) => {
  expect(checkBaseUrl(new URL(url), { allowInsecure: insecure })).toBe(problem);
});

test.each([
  ['2606:4700::1%eth0', false], // a zone
  ['::1%lo', false],
  ['files.example.com', false],
  ['8.8', false],
  ['0x08080808', false],
  ['8.8.8.8', true],
  ['::ffff:8.8.8.8', true],
  ['64:ff9b::8.8.8.8', true],
  ['64:ff9b:1::8.8.8.8', false], // NAT64 within a private network
  ['::8.8.8.8', false], // IPv4-compatible: deprecated, and routed nowhere
  ['::ffff:0:8.8.8.8', false],
  ['2002:808:808::1', false], // 6to4
  ['2001:0:808:808::1', false], // Teredo
  ['192.31.196.1', false], // anycast sinks of AS112
  ['4000::1', false], // not allocated
])('%s is public: %s', (address, expected) => {
  expect(isPublicAddress(address)).toBe(expected);
});

describe('the guarded lookup', () => {
  const resolver = (...addresses: string[]): Resolver => {
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    return (_name, done) => done(null, found);
  };
  const ask = (loopback: boolean, all: boolean, resolve: Resolver) =>
    new Promise<{ code: string | undefined; address: string | LookupAddress[] }>((resolved) => {
      guardedLookup(loopback ? 'loopback' : 'public', resolve)(
        'files.example.com',
        { all },
        (error, address) => {
          resolved({ code: error?.code, address });
        },
      );
    });

  test('returns exactly the addresses that it checked', async () => {
    const resolve = resolver('93.184.216.34', '2606:4700::1');
    expect(await ask(false, false, resolve)).toEqual({ code: undefined, address: '93.184.216.34' });
    expect((await ask(false, true, resolve)).address).toHaveLength(2);
  });

  test.each(['169.254.169.254', '::ffff:10.0.0.1', 'fd00::1', '127.0.0.1'])(
    'rejects a public name that resolves to %s',
    async (address) => {
      expect((await ask(false, true, resolver('93.184.216.34', address))).code).toBe(ADDRESS_REFUSED);
      expect((await ask(false, false, resolver(address))).code).toBe(ADDRESS_REFUSED);
    },
  );

  test('rejects a loopback name that resolves elsewhere, and a name without addresses', async () => {
    expect((await ask(true, true, resolver('127.0.0.1', '::1'))).code).toBeUndefined();
    expect((await ask(true, true, resolver('93.184.216.34'))).code).toBe(ADDRESS_REFUSED);
    expect((await ask(false, true, resolver())).code).toBe(ADDRESS_REFUSED);
  });

  test('passes on the resolver’s error', async () => {
    const missing: Resolver = (_name, done) => done(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), []);
    expect((await ask(false, true, missing)).code).toBe('ENOTFOUND');
  });
});

test('a presigned URL prints as its host only', () => {
  const secret = new SecretUrl(new URL('https://files.example.com/path-canary?X-Amz-Signature=canary'));
  const texts = [
    String(secret),
    JSON.stringify({ secret }),
    inspect({ secret }, { depth: 10, showHidden: true }),
    `to ${secret.toString()}`,
  ];
  for (const text of texts) {
    expect(text).toContain('[presigned url of files.example.com]');
    expect(text).not.toContain('canary');
  }
  expect(secret.reveal().search).toBe('?X-Amz-Signature=canary');
});
