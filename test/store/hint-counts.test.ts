import { expect, test } from 'vitest';
import { HintCounts } from '../../src/store/sellers/hints.ts';

test('counts of hint sources that could not be written are written with the next tests', () => {
  let at = 0;
  const counted = new HintCounts({ monotonic: () => at }, 10);
  const nothing = { followed: 0, stayed: 0, undone: 0 };
  // As the rates say, so far as the other refreshes show.
  const others = { source: null, expected: 0.5, alone: 0.5 };
  counted.note(
    Array.from({ length: 4000 }, (_, n) => ({ ...others, moved: n % 2 === 0 })),
    0,
  );
  counted.note([{ source: 'orders', expected: 0.5, alone: 0.5, moved: true }], 1);
  expect(counted.take()).toBeNull();
  at = 10;
  const taken = counted.take();
  expect(taken).toEqual({
    shown: [
      { source: 'orders', ...nothing, tested: 1, expected: expect.closeTo(0.5, 2) as number, unmoved: 0 },
    ],
    moves: 1,
  });
  if (taken !== null) counted.giveBack(taken);
  const told = (['stayed', 'undone', 'moved on'] as const).map((found) => ({ source: 'orders', found }));
  counted.note([{ source: 'orders', expected: 0.5, alone: 0.5, moved: false }], 0, told);
  at = 20;
  expect(counted.take()).toEqual({
    shown: [
      {
        source: 'orders',
        tested: 2,
        expected: expect.closeTo(1, 2) as number,
        unmoved: 1,
        followed: 3,
        stayed: 1,
        undone: 1,
      },
    ],
    moves: 1,
  });
  at = 30;
  expect(counted.take()).toBeNull();
});
