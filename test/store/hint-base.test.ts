import { describe, expect, test } from 'vitest';
import { HintBase, type HintTest } from '../../src/store/live/hint-state.ts';

/** Makes refreshes that should find nothing with probability 0.9, some of them hinted at; every `nth` found a move. */
function refreshed(base: HintBase, count: number, sources: readonly string[], nth: number) {
  const tests = Array.from({ length: count }, (_, at) => {
    const of = (source: string | null): HintTest => ({
      source,
      expected: 0.9,
      alone: 0.9,
      moved: at % nth === 0,
    });
    return [null, ...sources].map(of);
  });
  const counted = tests.flatMap((each) => base.weigh(each)).slice(-count * sources.length);
  return counted.map(({ expected }) => expected);
}

describe('the baseline of a source of hints', () => {
  test('is the rate if refreshes that it did not hint at agree with the rates', () => {
    const base = new HintBase();
    refreshed(base, 1000, [], 10);
    expect(refreshed(base, 100, ['good'], 2).at(-1)).toBeCloseTo(0.9, 1);
  });

  test('is what the other refreshes find if the rates are wrong', () => {
    const base = new HintBase();
    // They find nothing half of the time.
    refreshed(base, 1000, [], 2);
    expect(refreshed(base, 100, ['good'], 2).at(-1)).toBeCloseTo(0.5, 1);
  });

  test("is the source's own result if it hints at everything: it knows nothing, however wrong rates are", () => {
    const base = new HintBase();
    expect(refreshed(base, 1000, ['flood'], 2).at(-1)).toBeCloseTo(0.5, 1);
  });

  test('beside a source that hints at everything is what that one finds', () => {
    const base = new HintBase();
    refreshed(base, 1000, ['flood'], 10);
    const both = refreshed(base, 200, ['flood', 'good'], 2);
    const good = both.filter((_, at) => at % 2 === 1);
    expect(good.at(-1)).toBeCloseTo(0.9, 1);
  });

  test('is at first only the rate, less what the source itself shows', () => {
    const base = new HintBase();
    expect(base.weigh([])).toEqual([]);
    const [first] = base.weigh([{ source: 'new', expected: 0.9, alone: 0.9, moved: false }]);
    expect(first?.expected).toBeCloseTo(0.9 * (2 / 1.9), 6);
  });

  test('fades, so that what was long ago is outweighed', () => {
    const base = new HintBase();
    refreshed(base, 3000, [], 2);
    refreshed(base, 20_000, [], 10);
    expect(refreshed(base, 100, ['good'], 2).at(-1)).toBeGreaterThan(0.85);
  });
});
