import { assert, constantFrom, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig, VARIABLES } from '../src/config/config.ts';
import { MASK, maskConnection, maskUrls, shownSettings } from '../src/config/effective.ts';

const REQUIRED = {
  PARTNER_BASE_URL: 'https://partner.example/v1',
  PARTNER_API_KEY: 'canary-key',
  PARTNER_SECRET: 'canary-secret',
};
const shown = (
  env: Record<string, string>,
  files: Readonly<Record<string, string>> = {},
  from: Readonly<Record<string, string>> = {},
) => {
  const readFile = (path: string) => {
    const text = files[path];
    if (text === undefined) throw new Error('no such file');
    return text;
  };
  const rows = shownSettings({ ...REQUIRED, ...env }, readFile, (name) => from[name] ?? null);
  return Object.fromEntries(rows.map((row) => [row.name, row]));
};

test('every setting is shown, in the order of the table', () => {
  expect(Object.keys(shown({}))).toEqual(VARIABLES.map(({ name }) => name));
});

describe('a setting', () => {
  test('is shown as a person would write it, with its source', () => {
    const rows = shown({ DELTA_INTERVAL: ' 90s ', BULK_MAX_SKUS: '' }, {}, { DELTA_INTERVAL: 'mirror.env' });
    expect(rows['DELTA_INTERVAL']).toEqual({
      name: 'DELTA_INTERVAL',
      value: '90s',
      source: 'env-file',
      file: 'mirror.env',
      unset: null,
    });
    expect(rows['BULK_MAX_SKUS']).toMatchObject({ value: '100', source: 'default', file: null });
    expect(rows['PARTNER_BASE_URL']).toMatchObject({ source: 'environment', file: null });
    expect(rows['DATABASE_URL']).toMatchObject({
      value: null,
      source: 'default',
      unset: 'embedded Postgres',
    });
  });

  test('is shown at its effective value if another setting lowers its default', () => {
    const budget = (env: Record<string, string>) => shown(env)['BULK_LIVE_BUDGET'];
    expect(budget({ BULK_MAX_SKUS: '3' })).toMatchObject({ value: '3', source: 'default' });
    expect(budget({ BULK_MAX_SKUS: ' 7 ' })?.value).toBe('5');
    expect(budget({ BULK_MAX_SKUS: 'many' })?.value).toBe('5');
    expect(budget({ BULK_MAX_SKUS: '3', BULK_LIVE_BUDGET: '2' })).toMatchObject({
      value: '2',
      source: 'environment',
    });
    // Set to nothing, as by a line of a Windows file that ends in CR LF.
    const blank = loadConfig({ ...REQUIRED, BULK_MAX_SKUS: '3', BULK_LIVE_BUDGET: '\r' }, () => '');
    expect(blank.bulk.liveBudget).toBe(3);
  });

  test('is masked if it is a secret, whatever its source', () => {
    const { PARTNER_API_KEY: _, ...rest } = REQUIRED;
    const rows = shown(
      { ...rest, PARTNER_API_KEY: '', PARTNER_API_KEY_FILE: '/run/key', DATABASE_URL_FILE: '/run/url' },
      { '/run/key': 'canary-in-file\n', '/run/url': 'postgres://mirror:canary@db/mirror\n' },
    );
    expect(rows['PARTNER_API_KEY']).toMatchObject({ value: MASK, source: 'secret-file', file: '/run/key' });
    expect(rows['PARTNER_SECRET']).toMatchObject({ value: MASK, source: 'environment' });
    expect(rows['DATABASE_URL']).toMatchObject({
      value: `postgres://mirror:${MASK}@db/mirror`,
      source: 'secret-file',
    });
    expect(JSON.stringify(rows)).not.toContain('canary');
  });

  test('is not shown if it is invalid and may be a secret', () => {
    const rows = shown({
      PARTNER_BASE_URL: 'https://key:canary@partner.example',
      DATABASE_URL: 'canary',
      DELTA_INTERVAL: 'often',
      MANIFEST_INTERVAL: 'canary@',
      PARTNER_SECRET_FILE: '/run/gone',
      RUNBOOK_URL_BASE: 'https://wiki.example/?key=canary',
    });
    expect(JSON.stringify(rows)).not.toContain('canary@');
    expect(rows['MANIFEST_INTERVAL']?.value).toBeNull();
    expect([rows['DATABASE_URL']?.value, rows['PARTNER_SECRET']?.value]).toEqual([null, null]);
    expect(rows['DELTA_INTERVAL']?.value).toBe('often');
    expect(rows['RUNBOOK_URL_BASE']?.value ?? '').not.toContain('canary');
  });
});

describe('the password in a URL', () => {
  test.each([
    ['postgres://mirror@db:5432/mirror', 'postgres://mirror@db:5432/mirror'],
    [
      'postgres://mirror:canary@db/mirror?sslmode=require',
      `postgres://mirror:${MASK}@db/mirror?sslmode=require`,
    ],
    ['postgres://db/mirror?user=u&password=canary', `postgres://db/mirror?user=${MASK}&password=${MASK}`],
    ['redis://:canary@redis:6379/0', `redis://:${MASK}@redis:6379/0`],
    ['postgres://u:can@ary@db/x', `postgres://u:${MASK}@db/x`],
    ['postgres://u:can/ary@db/x', MASK],
    ['postgres://u:canary@a:1,b:2/x', `postgres://u:${MASK}@a:1,b:2/x`],
    ['host=db password=canary', MASK],
    ['http://proxy:3128', 'http://proxy:3128'],
    ['http://ann:canary@proxy:3128', `http://ann:${MASK}@proxy:3128`],
    ['https://canary@proxy', `https://${MASK}@proxy`],
  ])('of a connection is masked: %s', (url, masked) => {
    expect(maskConnection(url)).toBe(masked);
  });

  test.each([
    ['https://wiki.example/runbooks', 'https://wiki.example/runbooks'],
    ['https://ann:canary@wiki.example/x', `https://ann:${MASK}@wiki.example/x`],
    ['https://canary@wiki.example/x', `https://${MASK}@wiki.example/x`],
    ['https://a.example,https://u:canary@b.example', `https://a.example,https://u:${MASK}@b.example`],
    ['https://wiki.example/?a=canary&b=canary', `https://wiki.example/?a=${MASK}&b=${MASK}`],
    ['https://u:can/ary@wiki.example', MASK],
    ['public', 'public'],
  ])('of another setting is masked: %s', (text, masked) => {
    expect(maskUrls(text)).toBe(masked);
  });

  test('of a connection is never shown, however it is written', () => {
    assert(
      property(
        string({ minLength: 6, maxLength: 20 }).map((text) => `Zq7${text}`),
        constantFrom('postgres', 'rediss'),
        (password, scheme) => {
          for (const url of [
            `${scheme}://mirror:${password}@host/x`,
            `${scheme}://host/x?password=${password}`,
          ])
            expect(maskConnection(url)).not.toContain('Zq7');
        },
      ),
    );
  });
});
