import { expect, test } from 'vitest';
import { paceLimits } from '../../src/pace/policy.ts';
import { settingsWith } from '../support/settings.ts';

const limitsOf = (limit: number, share: number, floor: number) =>
  paceLimits(
    settingsWith({
      PARTNER_RATE_LIMIT: String(limit),
      PARTNER_RATE_SHARE: String(share),
      PARTNER_RATE_FLOOR: String(floor),
      PARTNER_RATE_WINDOW: '90s',
      PARTNER_BACKOFF: '70s',
    }),
  );

test('limits are requests per window and milliseconds, as configured', () => {
  expect(limitsOf(200, 0.6, 0.25)).toEqual({
    maxPerWindow: 120,
    windowMs: 90_000,
    backoffMs: 70_000,
    account: { limit: 200, floor: 50 },
  });
});

test.each([
  [199, 0.6, 119],
  [7, 0.99, 6],
  [10, 0.15, 1],
  [3, 0.34, 1],
  [200, 1, 200],
])('of %i requests a share of %d is %i: the fraction is left to others', (limit, share, most) => {
  expect(limitsOf(limit, share, 0.1).maxPerWindow).toBe(most);
});

test.each([
  [199, 0.6, 0.255, 50],
  [200, 0.3, 0.9, 60],
  [10, 0.5, 0.01, 1],
])(
  'of %i requests with a share of %d, a floor of %d is %i: at most the share, at least one',
  (limit, share, floor, least) => {
    expect(limitsOf(limit, share, floor).account.floor).toBe(least);
  },
);
