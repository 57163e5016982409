import { describe, expect, test } from 'vitest';
import { ownMost, type PaceLimits } from '../../src/pace/policy.ts';

const ACCOUNT: PaceLimits = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };

describe('beside the account’s other users', () => {
  const shared: PaceLimits = { ...ACCOUNT, account: { limit: 200, floor: 40 } };

  test('the mirror has its share while they are quiet, gives way as they ask, and keeps its floor', () => {
    expect([0, 1, 60, 100, 150, 198].map((others) => ownMost(shared, others))).toEqual([
      118, 118, 118, 87, 40, 40,
    ]);
  });

  test('that do not take part, the mirror uses its full share', () => {
    expect(ownMost(ACCOUNT, 150)).toBe(118);
  });
});
