import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proxyFor } from '../../src/partner/proxy.ts';
import { both, fixed } from './proxied.ts';

interface Place {
  readonly host: string;
  readonly port: number;
}

/** A drawn entry, and whether it matches a place, computed from its parts instead of its text. */
interface Entry {
  readonly text: string;
  readonly names: (place: Place) => boolean;
}

const ADDRESSES: Readonly<Record<string, readonly [bits: number, number: bigint]>> = {
  '10.0.0.1': [32, 0x0a_00_00_01n],
  '10.0.0.200': [32, 0x0a_00_00_c8n],
  '10.1.2.3': [32, 0x0a_01_02_03n],
  '203.0.113.9': [32, 0xcb_00_71_09n],
  'fd00::1': [128, 0xfd00_0000_0000_0000_0000_0000_0000_0001n],
  'fd00::8:1': [128, 0xfd00_0000_0000_0000_0000_0000_0008_0001n],
  'fe80::1': [128, 0xfe80_0000_0000_0000_0000_0000_0000_0001n],
};
const address = fc.constantFrom(...Object.keys(ADDRESSES));
const name = fc.constantFrom('shop.example', 'api.shop.example', 'xshop.example', 'example', 'localhost');
const port = fc.constantFrom(443, 80, 8443);
const place: fc.Arbitrary<Place> = fc.record({ host: fc.oneof(address, name), port });

const atPort = (one: number | null) => (one === null ? '' : `:${one}`);
const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc
    .record({
      before: fc.constantFrom('', '.', '*.'),
      named: name,
      after: fc.constantFrom('', '.'),
      isUpper: fc.boolean(),
      only: fc.option(port),
    })
    .map(({ before, named, after, isUpper, only }): Entry => ({
      text: `${before}${isUpper ? named.toUpperCase() : named}${after}${atPort(only)}`,
      names: (at) =>
        (only ?? at.port) === at.port &&
        (at.host.endsWith(`.${named}`) || (at.host === named && before !== '*.')),
    })),
  fc
    .record({ first: address, bits: fc.option(fc.nat(140)), only: fc.option(port) })
    .map(({ first, bits, only }): Entry => {
      const written = `${first}${bits === null ? '' : `/${bits}`}`;
      const [most = 0, number = 0n] = ADDRESSES[first] ?? [];
      const left = BigInt(most - (bits ?? most));
      return {
        text: `${only !== null && first.includes(':') ? `[${written}]` : written}${atPort(only)}`,
        names: ({ host, port }) => {
          const [width, other = 0n] = ADDRESSES[host] ?? [];
          return (only ?? port) === port && width === most && left >= 0n && number >> left === other >> left;
        },
      };
    }),
  fc
    .option(port)
    .map((only): Entry => ({ text: `*${atPort(only)}`, names: (at) => (only ?? at.port) === at.port })),
  fc
    .oneof(
      port.map((only) => atPort(only)),
      fc.string().filter((text) => !/^[*[]/.test(text)),
    )
    .map((text) => ({ text, names: () => false })),
);

describe('which URLs go through a proxy', () => {
  const goes = (url: string, ...except: string[]) =>
    proxyFor(new URL(url), both('http://p', except)) !== null;

  test.each<[entry: string, direct: string[], through: string[]]>([
    ['*', ['https://a', 'https://10.0.0.1', 'https://[::1]'], []],
    ['*:443', ['https://a'], ['https://a:444', 'http://a']],
    [
      'a.example',
      ['https://a.example', 'https://A.example.', 'https://x.a.example:8'],
      ['https://xa.example', 'https://a.example.net'],
    ],
    ['.a.example', ['https://a.example', 'https://x.a.example'], ['https://xa.example', 'https://example']],
    ['*.a.example', ['https://x.a.example'], ['https://a.example', 'https://xa.example']],
    ['A.Example.:8443', ['https://a.example:8443', 'https://x.a.example:8443'], ['https://a.example']],
    ['a:443', ['https://a'], ['http://a', 'https://a:80']],
    ['a:80', ['http://a'], ['https://a']],
    ['10.0.0.7', ['https://10.0.0.7'], ['https://10.0.0.70', 'https://x.10.0.0.7.example']],
    ['10.0.0.0/8', ['https://10.1.2.3:8443'], ['https://11.0.0.1', 'https://a']],
    ['10.0.0.0/0', ['https://11.0.0.1'], ['https://[::1]', 'https://a']],
    ['::1', ['https://[::1]', 'https://[::1]:8'], ['https://[::2]', 'https://127.0.0.1']],
    ['[::1]:8', ['https://[::1]:8'], ['https://[::1]']],
    ['fd00::/8', ['https://[fd12::1]'], ['https://[fe80::1]']],
    ['10.0.0.0/33', [], ['https://10.0.0.1']],
    ['10.0.0.0/', [], ['https://10.0.0.1']],
    ['.', [], ['https://a', 'https://a.']],
    ['localhost', ['http://localhost:1'], ['http://127.0.0.1:1']],
  ])('NO_PROXY=%s', (entry, direct, through) => {
    expect(direct.filter((url) => goes(url, 'other', entry))).toEqual([]);
    expect(through.filter((url) => !goes(url, 'other', entry))).toEqual([]);
  });

  test('each scheme uses its own proxy, and nothing set means no proxy', () => {
    const https = { https: fixed('https-proxy'), http: null, except: null };
    expect(proxyFor(new URL('https://a'), https)?.read()).toBe('https-proxy');
    expect(proxyFor(new URL('http://a'), https)).toBeNull();
    expect(proxyFor(new URL('https://a'), { ...https, https: null, http: fixed('x') })).toBeNull();
    expect(proxyFor(new URL('https://a'), undefined)).toBeNull();
  });

  test('drawn entries match exactly the places that they should', () => {
    fc.assert(
      fc.property(place, fc.array(entry, { minLength: 1, maxLength: 3 }), (at, entries) => {
        const { host, port } = at;
        const url = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
        const except = entries.map(({ text }) => text);
        expect({ url, except, goes: goes(url, ...except) }).toEqual({
          url,
          except,
          goes: !entries.some(({ names }) => names(at)),
        });
      }),
      { numRuns: 2000 },
    );
  });

  test('no entry throws, and an entry equal to the host itself means direct', () => {
    fc.assert(
      fc.property(fc.webAuthority({ withPort: true }), fc.string(), (authority, junk) => {
        const url = URL.parse(`https://${authority}`);
        fc.pre(url !== null);
        expect(goes(url.href, junk, url.host)).toBe(false);
      }),
    );
  });
});
