import { describe, expect, test } from 'vitest';
import { readArguments, UsageError } from '../../src/cli/command.ts';
import { follow } from '../../src/cli/follow.ts';
import { wantedBy } from '../../src/cli/follow/wanted.ts';

const wanted = (...args: string[]) => wantedBy(readArguments(follow, args));
const problemsOf = (...args: string[]) => {
  try {
    wanted(...args);
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
};

test('without options, every change from now on is printed and nothing is stored', () => {
  expect(wanted()).toEqual({
    do: 'follow',
    name: null,
    from: 'now',
    reset: false,
    filter: { kinds: null, brands: null, skus: null, watchlist: false },
    once: false,
    webhook: null,
    attempts: 10,
    batch: 500,
  });
});

test('filters may be given more than once, and all of them apply', () => {
  const args = ['watchlist', 'brand=Nike', 'kind=price', 'brand= A=B', 'kind=sku', 'sku=X 1'];
  expect(wanted(...args.flatMap((text) => ['--filter', text]))).toMatchObject({
    filter: { kinds: ['price', 'sku'], brands: ['Nike', ' A=B'], skus: ['X 1'], watchlist: true },
  });
});

test('--from accepts every position that a bigint can hold', () => {
  expect(wanted('--from', '9007199254740993')).toMatchObject({ from: 9007199254740993n });
  expect(wanted('--from=oldest')).toMatchObject({ from: 'oldest' });
});

test.each<[string[], string]>([
  [['--filter', 'price'], '--filter: expected watchlist'],
  [['--filter', 'kind=prices'], '--filter: expected watchlist'],
  [['--filter', 'brand='], '--filter: expected watchlist'],
  [['--from', '-1'], '--from: expected'],
  [['--from', '1e9'], '--from: expected'],
  [['--name', 'a.b'], '--name: expected'],
  [['--name', ''], '--name: expected'],
  [['--webhook', 'https://x'], '--webhook: needs --name'],
  [['--reset', '--name', 'a'], '--reset: needs --from'],
  [['--batch', '5', '--name', 'a'], '--batch: needs --webhook'],
  [['--batch', '0', '--name', 'a', '--webhook', 'https://x'], '--batch: expected'],
  [['--dead-letters'], '--dead-letters: needs --name'],
  [['--resend', '--name', 'a'], '--resend: needs --webhook'],
  [['--forget', '--discard', '--name', 'a'], '--discard'],
  [['--list', '--once'], '--once: does not go with --list'],
  [['--json'], '--json: only with'],
])('%j is refused: %s', (args, problem) => {
  expect(problemsOf(...args)).toEqual([expect.stringContaining(problem)]);
});

describe('all problems are reported at once', () => {
  test('of invalid values', () => {
    expect(problemsOf('--name', '.', '--from', 'x', '--filter', 'y', '--attempts', '0')).toHaveLength(5);
  });
});
