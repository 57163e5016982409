import { expect, test } from 'vitest';
import { UNTESTED } from '../../src/store/live/hint-state.ts';
import { mostByManifest } from '../../src/sync/live/hints.ts';

const GOOD = { ...UNTESTED, tested: 100, expected: 90, unmoved: 20, moves: 200 };
const JUNK = { ...UNTESTED, tested: 300, expected: 290, unmoved: 290, moves: 200 };
const told = (updated: number, sizes = 0) => ({ 'manifest.updated_at': updated, 'manifest.sizes': sizes });

test('a manifest hints at as many SKUs as its source has earned, less those that wait', () => {
  expect(mostByManifest(new Map(), { hintable: told(400), live: 1000 })).toEqual(told(50, 50));
  const records = new Map([
    ['manifest.updated_at', { ...GOOD, waiting: 150 }],
    ['manifest.sizes', { ...JUNK, waiting: 60 }],
  ]);
  expect(mostByManifest(records, { hintable: told(400), live: 1000 })).toEqual(told(50 + 20 * 100 - 150, 0));
});

test('a source that tells of more than half of the live SKUs yields no hints, and the other one its usual number', () => {
  expect(mostByManifest(new Map(), { hintable: told(500, 3), live: 1000 })).toEqual(told(50, 50));
  expect(mostByManifest(new Map(), { hintable: told(501, 3), live: 1000 })).toEqual(told(0, 50));
  expect(mostByManifest(new Map(), { hintable: told(5, 900), live: 1000 })).toEqual(told(50, 0));
  expect(mostByManifest(new Map(), { hintable: told(1), live: 0 })).toEqual(told(0, 50));
});
