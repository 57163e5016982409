import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proxyFor } from '../../src/partner/proxy.ts';
import { both, fixed } from './proxied.ts';

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

  test('each scheme has its own; nothing set is none', () => {
    const https = { https: fixed('https-proxy'), http: null, except: null };
    expect(proxyFor(new URL('https://a'), https)?.read()).toBe('https-proxy');
    expect(proxyFor(new URL('http://a'), https)).toBeNull();
    expect(proxyFor(new URL('https://a'), { ...https, https: null, http: fixed('x') })).toBeNull();
    expect(proxyFor(new URL('https://a'), undefined)).toBeNull();
  });

  test('no entry throws, and an entry that is the host itself is direct', () => {
    fc.assert(
      fc.property(fc.webAuthority({ withPort: true }), fc.string(), (authority, junk) => {
        const url = URL.parse(`https://${authority}`);
        fc.pre(url !== null);
        expect(typeof goes(url.href, junk)).toBe('boolean');
        expect(goes(url.href, junk, url.host)).toBe(false);
      }),
    );
  });
});
