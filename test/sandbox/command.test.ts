import { describe, expect, it } from 'vitest';
import { helpOf, readArguments, UsageError } from '../../src/cli/command.ts';
import { optionsOf, sandbox } from '../../src/cli/sandbox.ts';
import { controlLines, routeLines } from '../../src/sandbox/index.ts';

const DAY_MS = 86_400_000;

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
    [
      {},
      {
        confirmDeadlineMs: 3_600_000,
        autoConfirm: false,
        startAt: null,
        publicUrl: null,
        controlToken: null,
        skus: 5000,
        catalog: [],
      },
    ],
    [
      { 'confirm-deadline': '0', 'auto-confirm': true },
      { confirmDeadlineMs: null, autoConfirm: true },
    ],
    [{ now: '2026-01-01T07:00:00+07:00' }, { startAt: Date.UTC(2026, 0, 1) }],
    [{ now: '1970-01-01T00:00:00Z' }, { startAt: 0 }],
    [{ 'public-url': 'https://partner.example/' }, { publicUrl: 'https://partner.example' }],
    [{ 'public-url': 'http://127.0.0.1:80/api/' }, { publicUrl: 'http://127.0.0.1/api' }],
    [{ 'extra-fields': true, 'bulk-key': 'items' }, { dialect: { extraFields: true, bulkBodyKey: 'items' } }],
    [{ ambiguous: true }, { ambiguous: true, bulkLimit: 100, refusedShare: 0 }],
    [
      { 'market-interval': '24d', 'snapshot-interval': '0', latency: '24d', 'confirm-deadline': '366d' },
      { marketIntervalMs: 24 * DAY_MS, snapshotIntervalMs: 0, latencyMs: 24 * DAY_MS },
    ],
    [
      { now: '2026-01-01T00:00:00Z', 'market-interval': '30d', 'snapshot-interval': '366d' },
      { marketIntervalMs: 30 * DAY_MS, snapshotIntervalMs: 366 * DAY_MS },
    ],
    [
      { 'seller-shipping': 'yes', 'confirm-delay': '0s' },
      { sellerShipping: true, confirmDelayMs: 0 },
    ],
  ])('takes the account from %j', (values, options) => {
    expect(optionsOf(values)).toMatchObject(options);
  });

  it('names every invalid option', () => {
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

  it.each([
    { now: '2026-01-01' },
    { now: '2026-01-01T00:00:00' },
    { now: 'yesterdayTZ' },
    { 'public-url': 'partner.example' },
    { 'public-url': 'ftp://partner.example' },
    { 'public-url': 'https://user@partner.example' },
    { 'public-url': 'https://partner.example/?a=b' },
    { 'control-token': 'fifteen-letters' },
    { 'control-token': 'sixteen letters !' },
    { 'confirm-deadline': '1' },
    { catalog: '/nowhere/catalog.ndjson' },
    { skus: '0' },
    // A timer beyond 24.8 days would fire at once.
    { 'market-interval': '25d' },
    { 'snapshot-interval': '25d' },
    { latency: '25d' },
    // No date can be written that far away.
    { 'confirm-delay': '367d' },
    { 'confirm-deadline': '100000000d' },
  ])('rejects %j and names the option', (values) => {
    const [[name]] = Object.entries(values) as [[string, string]];
    expect(() => optionsOf(values)).toThrow(
      expect.objectContaining({ problems: [expect.stringMatching(`^--${name}: `)] }),
    );
  });

  it('names unknown options and invalid values together', () => {
    const read = () => readArguments(sandbox, ['--port', 'x', '--foo', '--now=soon', '--orders']);
    expect(read).toThrow(
      expect.objectContaining({
        problems: [
          expect.stringContaining('--foo: no such option'),
          '--orders: expects a value',
          expect.stringContaining('--port: '),
          expect.stringContaining('--now: '),
        ],
      }),
    );
  });

  it('lists every route in its help', () => {
    const help = helpOf('sandbox', sandbox);
    for (const line of [...routeLines(), ...controlLines()]) expect(help).toContain(line);
  });
});
