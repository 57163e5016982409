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
