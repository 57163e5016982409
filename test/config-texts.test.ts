import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../src/config/config.ts';
import { settingsWith } from './support/settings.ts';

test('blanks around a value are not part of it, and nothing else is nothing', () => {
  const { intervals, log } = settingsWith({ DELTA_INTERVAL: ' 7m\t', LOG_LEVEL: '  ' });
  expect([intervals.deltaMs, log.level]).toEqual([420_000, settingsWith().log.level]);
});

test.each(['https://partner.example/v1?', 'https://partner.example/v1#', 'https://partner.example/?key=1'])(
  'a base URL with a query or a fragment is refused, be it empty: %s',
  (url) => {
    expect(() => settingsWith({ PARTNER_BASE_URL: url })).toThrow(/\nPARTNER_BASE_URL: expected an https/);
  },
);

test('a list has each of its items once, in their order', () => {
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

test('what is not set is called so, with the name that was probably meant, and what to do', () => {
  const names = { PARTNER_BASEURL: 'https://x', partner_secret: 'canary', PARTNER_API_KEY: 'k' };
  const { message, hint } = problemsOf(names);
  expect(message).toContain('\nPARTNER_BASE_URL: not set; expected an https:// URL');
  expect(message).toContain('\nPARTNER_SECRET: not set; expected the secret');
  expect(message).toContain(
    'PARTNER_BASEURL is not a variable of catalog-mirror and is ignored; did you mean PARTNER_BASE_URL?',
  );
  expect(message).toContain('did you mean PARTNER_SECRET?');
  expect(message).not.toContain('canary');
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
