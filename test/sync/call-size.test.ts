import { describe, expect, test } from 'vitest';
import type { CallSize } from '../../src/store/call/call-lesson.ts';
import {
  afterFailedCall,
  ANY_SIZE,
  isRejection,
  sizeAfter,
  skusOfCall,
  skusOfHalfOpen,
} from '../../src/sync/reprice/call-size.ts';
import { settingsWith } from '../support/settings.ts';

const MOST = 100;
const size = (more: Partial<CallSize> = {}): CallSize => ({ step: 0, ...ANY_SIZE, ...more });
const failed = (before: CallSize, skus: number, hadFailed = false) =>
  sizeAfter(before, MOST, { skus, failed: true, hadFailed });
const worked = (before: CallSize, skus: number) =>
  sizeAfter(before, MOST, { skus, failed: false, hadFailed: false });

test.each([
  ['timeout', false],
  ['no-skus-read', false],
  ['bad-request', true],
  ['answer-too-large', true],
  ['not-stored', true],
] as const)('%s is a rejection: %s', (kind, rejects) => {
  expect(isRejection(kind)).toBe(rejects);
});

test('rejected calls after an outage pause as after the outage, until as many are rejected in a row', () => {
  const minutes = (failures: number, rejections: number) => {
    const call = { kind: 'bad-request', skus: 1, failures, rejections, hadFailed: false } as const;
    return afterFailedCall(call, size(), settingsWith()).pauseMs / 60_000;
  };
  expect([0, 1, 6, 7, 8].map((rejections) => minutes(12 + rejections, rejections))).toEqual([
    5, 5, 8, 16, 30,
  ]);
  expect([3, 4, 5, 6, 7, 8].map((failures) => minutes(failures, failures))).toEqual([1, 2, 4, 8, 16, 30]);
});

describe('after a failed call', () => {
  test('its size is suspected but not limited the first time: the cause may be one of its SKUs', () => {
    expect(failed(size(), 100)).toEqual(size({ step: 1, suspected: 100 }));
  });

  test('of one SKU nothing is learned about sizes', () => {
    expect(failed(size(), 1)).toBeNull();
    expect(failed(size({ suspected: 100 }), 1)).toBeNull();
  });

  test('the size is halved the second time, or set to what has worked', () => {
    expect(failed(size({ suspected: 100 }), 100)).toMatchObject({ size: 50, failing: 100, suspected: null });
    expect(failed(size({ suspected: 100, proven: 70 }), 100)).toMatchObject({ size: 70, proven: 70 });
  });

  test('a size that has worked since is suspected anew', () => {
    expect(failed(size({ suspected: 100, proven: 100 }), 100)).toMatchObject({
      size: null,
      suspected: 100,
      proven: 99,
    });
  });

  test('that tried a larger size, the next try waits for twice as many calls', () => {
    const trial = size({ size: 60, proven: 30, suspected: 60, patience: 40 });
    expect(failed(trial, 60)).toMatchObject({ size: 30, failing: 60, patience: 80 });
    expect(failed(size({ size: 60, proven: 60, suspected: 80, patience: 40 }), 80)).toMatchObject({
      patience: 40,
    });
  });
});

describe('after a call that worked', () => {
  test('nothing is written while nothing is suspected', () => {
    expect(worked(size(), 100)).toBeNull();
  });

  test('a suspected size is cleared by at least as many SKUs', () => {
    expect(worked(size({ suspected: 50 }), 50)).toEqual(size({ step: 1 }));
    expect(worked(size({ suspected: 50 }), 49)).toMatchObject({ suspected: 50, proven: 49 });
  });

  test('a larger size is tried after as many full calls as patience says', () => {
    const limited = size({ size: 30, failing: 60, proven: 30, worked: 38, patience: 40 });
    expect(worked(limited, 30)).toMatchObject({ size: 30, worked: 39 });
    expect(worked({ ...limited, worked: 39 }, 30)).toMatchObject({ size: 45, suspected: 45, worked: 0 });
    expect(worked(limited, 29)).toBeNull();
  });
});

test('each failed call in a row makes the next one a quarter as large, down to one SKU', () => {
  expect([0, 1, 2, 3, 4, 50].map((failures) => skusOfCall({ size: null }, MOST, failures))).toEqual([
    100, 25, 6, 1, 1, 1,
  ]);
  expect(skusOfCall({ size: 30 }, MOST, 0)).toBe(30);
  expect(skusOfCall({ size: 30 }, 20, 0)).toBe(20);
});

test('each refusal in a row after the first makes the next half-open call a quarter as large, down to one SKU', () => {
  expect([0, 1, 2, 3, 4, 5, 99].map((refusals) => skusOfHalfOpen(100, refusals))).toEqual([
    100, 100, 25, 7, 2, 1, 1,
  ]);
  expect(skusOfHalfOpen(3, 2)).toBe(1);
});
