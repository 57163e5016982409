import { expect, test } from 'vitest';
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

test.each(['prod', 'ร้าน 1', 'חנות', `<b>"it's"</b>`, 'x'.repeat(64), '👟'.repeat(64)])(
  'a mirror may be called %s',
  (name) => {
    expect(settingsWith({ MIRROR_NAME: ` ${name} ` }).log.mirrorName).toBe(name);
  },
);

test.each(['x'.repeat(65), 'a\u202Eb', 'a\nb', 'a\u0000b', 'a\u200Bb', 'a\uD800b', 'a\u2028b'])(
  'and never %j, which nobody could read or trust',
  (name) => {
    expect(() => settingsWith({ MIRROR_NAME: name })).toThrow(
      /\nMIRROR_NAME: expected 1 to 64 characters, none of them invisible/,
    );
  },
);

test('runbooks are linked to under a web address', () => {
  const base = (text: string) => settingsWith({ RUNBOOK_URL_BASE: text }).http.runbookUrlBase;
  expect(base('https://wiki.example.com/a/')).toBe('https://wiki.example.com/a');
  expect(base('http://wiki')).toBe('http://wiki');
});

test.each(['javascript:alert(1)', 'wiki', '/a', 'https://u:p@wiki/', 'https://wiki/?a', 'data:text/html,x'])(
  'and never under %s',
  (base) => {
    expect(() => settingsWith({ RUNBOOK_URL_BASE: base })).toThrow(/RUNBOOK_URL_BASE: expected an http/);
  },
);
