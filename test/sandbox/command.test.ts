import { describe, expect, it } from 'vitest';
import { helpOf, UsageError } from '../../src/cli/command.ts';
import { optionsOf, sandbox } from '../../src/cli/sandbox.ts';
import { routeLines } from '../../src/sandbox/index.ts';

describe('the sandbox command', () => {
  it.each([
    [
      {},
      {
        ambiguous: false,
        orders: 250,
        listings: 600,
        vacation: false,
        sellerShipping: true,
        confirmDelayMs: 5000,
      },
    ],
    [
      { orders: '0', listings: '7', vacation: true, 'seller-shipping': 'no', 'confirm-delay': '1m' },
      { orders: 0, listings: 7, vacation: true, sellerShipping: false, confirmDelayMs: 60_000 },
    ],
    [{ ambiguous: true }, { ambiguous: true, bulkLimit: 100, refusedShare: 0 }],
    [
      { 'seller-shipping': 'yes', 'confirm-delay': '0s' },
      { sellerShipping: true, confirmDelayMs: 0 },
    ],
  ])('takes the account from %j', (values, options) => {
    expect(optionsOf(values)).toMatchObject(options);
  });

  it('names every option that does not fit', () => {
    const values = { orders: '-1', listings: 'many', 'seller-shipping': 'maybe', 'confirm-delay': 'soon' };
    let error: unknown;
    try {
      optionsOf(values);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).problems).toEqual([
      expect.stringContaining('--orders: '),
      expect.stringContaining('--listings: '),
      '--seller-shipping: expected yes or no',
      expect.stringContaining('--confirm-delay: '),
    ]);
  });

  it('lists every route in its help', () => {
    const help = helpOf('sandbox', sandbox);
    for (const line of routeLines()) expect(help).toContain(line);
  });
});
