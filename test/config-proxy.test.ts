import { describe, expect, test } from 'vitest';
import { loadConfig } from '../src/config/config.ts';
import { shownSettings } from '../src/config/effective.ts';
import { addedByFiles } from '../src/config/environment.ts';
import { createScrubber } from '../src/telemetry/log/scrub.ts';

const CREDENTIAL = { PARTNER_BASE_URL: 'https://partner.example', PARTNER_API_KEY: 'k', PARTNER_SECRET: 's' };
const FILES: Record<string, string> = {};
const load = (env: Readonly<Record<string, string>>) =>
  loadConfig({ ...CREDENTIAL, ...env }, (path) => FILES[path] ?? '');

test.each(['http://p:3128', 'https://p', 'http://u:p%40@p:1/', 'http://token@[::1]:8', 'HTTP://P'])(
  '%s is accepted as a proxy',
  (url) => {
    expect(load({ HTTPS_PROXY: url, HTTP_PROXY: url }).partner.proxy.https?.read()).toBe(url);
  },
);

test.each([
  'p:3128',
  'p',
  'socks5://p:1',
  'http://',
  'http://p/x',
  'http://p?x',
  'http://p:99999',
  'http://p:1 ',

  'http://u:canary%zz@p',
  'http://u%0a:canary@p',
  'http://u:can/ary@p',
  'http://a b',
  'http://can%3Aary@p',
])('%s is a configuration problem that does not show the value', (url) => {
  for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy']) {
    const expected = new RegExp(`\n${name}: expected an http:// or https:// URL such as .*, without path`);
    expect(() => load({ [name]: url })).toThrow(expected);
    expect(() => load({ [name]: url })).not.toThrow(/can.?ary/);
  }
});

test('a problem names the spelling that was used, and its example is not masked as a login', () => {
  const told = (env: Readonly<Record<string, string>>) => {
    try {
      load(env);
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
    return '';
  };
  expect(told({ https_proxy: 'p', HTTPS_PROXY: 'http://right' })).toMatch(/^https_proxy: /m);
  expect(told({ https_proxy: '', HTTPS_PROXY: 'p' })).toMatch(/^HTTPS_PROXY: /m);
  expect(told({ https_proxy: 'http://p', HTTPS_PROXY_FILE: '/f' })).toContain(
    'https_proxy: expected either https_proxy or HTTPS_PROXY_FILE, not both',
  );
  const example = told({ https_proxy: 'p' });
  expect(example).toContain('http://proxy.example:3128');
  expect(createScrubber(() => []).text(example)).toBe(example);
});

test('lower case takes precedence unless it is empty, without a warning', () => {
  const env = {
    HTTPS_PROXY: 'http://upper',
    https_proxy: 'http://lower',
    HTTP_PROXY: 'http://upper',
    http_proxy: '',
  };
  const { partner, warnings } = load({ ...env, NO_PROXY: 'a', no_proxy: 'b, .c\td' });
  expect([partner.proxy.https?.read(), partner.proxy.http?.read()]).toEqual(['http://lower', 'http://upper']);
  expect(partner.proxy.except).toEqual(['b', '.c', 'd']);
  expect(warnings).toEqual([]);
  expect(load({}).partner.proxy).toEqual({ https: null, http: null, except: null });
});

test.each('FTP_PROXY ftp_proxy ALL_PROXY all_proxy no_proxy NO_PROXY RSYNC_PROXY'.split(' '))(
  '%s is not reported as a misspelt variable',
  (name) => {
    expect(load({ [name]: 'x' }).warnings).toEqual([]);
  },
);

test('a misspelt proxy variable is reported', () => {
  expect(load({ HTTPS_PROXI: 'http://p' }).warnings).toEqual([
    expect.stringContaining('did you mean HTTPS_PROXY?'),
  ]);
});

describe('the credentials of a proxy', () => {
  const login = Buffer.from('ann:can@ry').toString('base64');

  test('are hidden in each spelling, but its address is not', () => {
    const { secrets } = load({
      https_proxy: 'http://ann:can%40ry@proxy:3128',
      HTTP_PROXY: 'http://token%2F1@proxy',
    });
    expect(secrets()).toEqual(expect.arrayContaining(['token/1', 'token%2F1', 'can@ry', 'can%40ry', login]));
    const clean = (text: string) => createScrubber(secrets).text(text);
    const text = clean(`http://ann:can%40ry@proxy:3128 can@ry can%40ry ${login} token/1 token%2F1`);
    expect(text).not.toMatch(/can.{1,3}ry|token|YW5u/);
    expect(clean('the proxy http://proxy:3128')).toBe('the proxy http://proxy:3128');
    const open = load({ HTTPS_PROXY: 'http://proxy:3128' }).secrets;
    expect(createScrubber(open).text('the proxy http://proxy:3128 is away')).toContain('http://proxy:3128');
  });

  test('are masked when settings are shown', () => {
    const env = {
      https_proxy: 'http://ann:canary@proxy:3128',
      HTTP_PROXY: 'http://canary@proxy',
      NO_PROXY: '*',
    };
    const rows = shownSettings(
      env,
      () => '',
      () => null,
    );
    const shown = Object.fromEntries(rows.map(({ name, value, source }) => [name, [value, source]]));
    expect(shown).toMatchObject({
      HTTPS_PROXY: ['http://ann:********@proxy:3128', 'environment'],
      HTTP_PROXY: ['http://********@proxy', 'environment'],
      NO_PROXY: ['*', 'environment'],
    });
    expect(JSON.stringify(rows)).not.toContain('canary');
  });

  test('may come from a file', () => {
    FILES['/run/proxy'] = 'http://ann:one@proxy\n';
    const { partner, secrets } = load({ HTTPS_PROXY_FILE: '/run/proxy' });
    FILES['/run/proxy'] = 'http://ann:two@proxy\n';
    expect(partner.proxy.https?.refresh()).toBe(true);
    expect(partner.proxy.https?.read()).toBe('http://ann:two@proxy');
    expect(secrets()).toEqual(expect.arrayContaining(['one', 'two']));
  });
});

describe('proxy variables in an environment file', () => {
  const added = (env: Readonly<Record<string, string>>, ...files: Readonly<Record<string, string>>[]) =>
    Object.fromEntries(
      [
        ...addedByFiles(
          env,
          files.map((values) => ({ path: 'f', values: new Map(Object.entries(values)) })),
          ['HTTPS_PROXY', 'HTTP_PROXY'],
        ),
      ].map(([name, { value }]) => [name, value]),
    );

  test('are one variable in both spellings, and the environment takes precedence', () => {
    expect(added({}, { https_proxy: 'b', HTTPS_PROXY: 'a', A: '1' })).toEqual({ HTTPS_PROXY: 'b', A: '1' });
    expect(added({}, { https_proxy: '', HTTPS_PROXY: 'a' })).toEqual({ HTTPS_PROXY: 'a' });
    expect(added({}, { https_proxy: 'a' }, { HTTPS_PROXY: 'b' })).toEqual({ HTTPS_PROXY: 'b' });
    expect(added({ HTTPS_PROXY: 'x', no_proxy: '' }, { https_proxy: 'a', NO_PROXY: 'b' })).toEqual({});
    expect(added({ https_proxy: 'x' }, { HTTPS_PROXY: 'a', HTTP_PROXY: 'b' })).toEqual({ HTTP_PROXY: 'b' });
    expect(added({ https_proxy: 'x' }, { HTTPS_PROXY_FILE: '/f' })).toEqual({});
  });
});
