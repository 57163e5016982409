import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../src/config/config.ts';
import { settingsWith } from './support/settings.ts';

test('blanks around a value are ignored, and a blank value is unset', () => {
  const { intervals, log } = settingsWith({ DELTA_INTERVAL: ' 7m\t', LOG_LEVEL: '  ' });
  expect([intervals.deltaMs, log.level]).toEqual([420_000, settingsWith().log.level]);
});

test.each(['https://partner.example/v1?', 'https://partner.example/v1#', 'https://partner.example/?key=1'])(
  'a base URL with a query or a fragment is rejected, even if that is empty: %s',
  (url) => {
    expect(() => settingsWith({ PARTNER_BASE_URL: url })).toThrow(/\nPARTNER_BASE_URL: expected an https/);
  },
);

test('a list keeps each item once, in order', () => {
  const { partner } = settingsWith({ PARTNER_PRICE_FIELDS: 'price, amount,price ,lowest' });
  expect(partner.fields.price).toEqual(['price', 'amount', 'lowest']);
});

function problemsOf(env: Readonly<Record<string, string>>): ConfigError {
  try {
    loadConfig(env, () => '');
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('nothing is wrong');
}

test('a missing setting is reported as not set, with the probable misspelling and a remedy', () => {
  const names = { PARTNER_BASEURL: 'https://x', partner_secret: 'canary', PARTNER_API_KEY: 'k' };
  const { message, hint, warnings } = problemsOf(names);
  expect(message).toContain('\nPARTNER_BASE_URL: not set; expected an https:// URL');
  expect(message).toContain('\nPARTNER_SECRET: not set; expected the secret');
  expect(message).toContain(
    'PARTNER_BASEURL is not a variable of catalog-mirror and is ignored; did you mean PARTNER_BASE_URL?',
  );
  expect(message).toContain('did you mean PARTNER_SECRET?');
  expect(message).not.toContain('canary');
  expect(warnings).toEqual([
    expect.stringContaining('did you mean PARTNER_BASE_URL?'),
    expect.stringContaining('did you mean PARTNER_SECRET?'),
  ]);
  expect(hint).toContain('set PARTNER_BASE_URL, PARTNER_SECRET');
  expect(hint).toContain('catalog-mirror demo');
  const wrong = problemsOf({
    PARTNER_BASE_URL: 'https://partner.example',
    PARTNER_API_KEY: 'k',
    PARTNER_SECRET: 's',
    HTTP_PORT: 'x',
  });
  expect(wrong.message).not.toContain('not set');
  expect(wrong.hint).toBe('correct HTTP_PORT');
});
test.each(['prod', 'ร้าน 1', 'חנות', `<b>"it's"</b>`, 'x'.repeat(64), '👟'.repeat(64)])(
  '%s is accepted as the name of a mirror',
  (name) => {
    expect(settingsWith({ MIRROR_NAME: ` ${name} ` }).log.mirrorName).toBe(name);
  },
);

test.each(['x'.repeat(65), 'a\u202Eb', 'a\nb', 'a\u0000b', 'a\u200Bb', 'a\uD800b', 'a\u2028b'])(
  '%j is rejected as the name of a mirror',
  (name) => {
    expect(() => settingsWith({ MIRROR_NAME: name })).toThrow(
      /\nMIRROR_NAME: expected 1 to 64 characters, none of them invisible/,
    );
  },
);

test('a web address is accepted as the base of runbook links', () => {
  const base = (text: string) => settingsWith({ RUNBOOK_URL_BASE: text }).http.runbookUrlBase;
  expect(base('https://wiki.example.com/a/')).toBe('https://wiki.example.com/a');
  expect(base('http://wiki')).toBe('http://wiki');
});

test.each(['javascript:alert(1)', 'wiki', '/a', 'https://u:p@wiki/', 'https://wiki/?a', 'data:text/html,x'])(
  '%s is rejected as the base of runbook links',
  (base) => {
    expect(() => settingsWith({ RUNBOOK_URL_BASE: base })).toThrow(/RUNBOOK_URL_BASE: expected an http/);
  },
);

test('a webhook secret is not shown, whichever variable it was pasted into', () => {
  const { message } = problemsOf({ HTTP_PORT: 'whsec_bGVhay1vZi1hLXNlY3JldA==' });
  expect(message).toMatch(/HTTP_PORT: expected/);
  expect(message).not.toContain('bGVhay');
});
