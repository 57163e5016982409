import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FixedWindow, type Limiter, RollingWindow, TokenBucket } from '../../bench/ceiling/limiters.ts';
import { runs } from '../support/soak.ts';
import { liveInterval } from './promised.ts';
import { HOUR, MINUTE, refreshScarce, type Waits } from './scarce-partner.ts';

/*
 * Promises of maximum ages for live SKUs of a partner that computes few live prices a minute, and whether they are
 * kept, from the time at which the ceiling is known.
 */

const LIMITERS: Readonly<Record<string, (perMinute: number) => Limiter>> = {
  rolling: (perMinute) => new RollingWindow(perMinute, MINUTE),
  fixed: (perMinute) => new FixedWindow(perMinute, MINUTE),
  even: (perMinute) => new TokenBucket(1, () => perMinute),
  'rolling, of an hour': (perMinute) => new RollingWindow(60 * perMinute, HOUR),
};
const HOURS = 6;
const KNOWN_FROM = HOUR;

interface Wish {
  readonly perMinute: number;
  readonly limiter: string;
  readonly skus: number;
  readonly promised: number;
  /** In seconds. */
  readonly maxAge: number;
  readonly seed: number;
}

function promise({ perMinute, limiter, skus, promised, maxAge, seed }: Wish): Waits {
  return refreshScarce(
    {
      skus,
      limiter: LIMITERS[limiter]!(perMinute),
      defers: () => false,
      daemons: 1 + (seed % 2),
      everyMs: 30 * MINUTE,
      answersMs: [100, 1000],
      weightOf: () => 1,
      promiseOf: (sku) => ((sku * 7919) % skus < promised ? maxAge : null),
      arrivals: [],
      seed,
    },
    HOURS,
  );
}

/** Cases of promises by the last statement about them, and how many were kept. */
function judged({ rows }: Waits) {
  const said = rows.flatMap((row) => row.said).filter(({ at }) => at >= KNOWN_FROM);
  const open = rows
    .filter(({ isFeasible }) => isFeasible)
    .map((row) =>
      Math.floor(
        (HOURS * HOUR - Math.max(row.computedAt, row.promisedSince)) / 1000 / (row.maxAge ?? Infinity),
      ),
    );
  const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
  const of = (feasible: boolean) => said.filter((one) => one.feasible === feasible);
  return {
    cases: sum(of(true).map(({ cases }) => cases)) + sum(open),
    kept: sum(of(true).map(({ kept }) => kept)),
    left: of(false).length,
  };
}

test.each([
  ['an hour, of a twentieth of the ceiling', 12, 3600, 12],
  ['two hours, of most of it', 60, 7200, 50],
])('with 60 SKUs at one a minute, %s is promised and kept', (_what, promised, maxAge, least) => {
  const all = { cases: 0, kept: 0 };
  for (const seed of [1, 2, 3, 4]) {
    const run = promise({ perMinute: 1, limiter: 'rolling', skus: 60, promised, maxAge, seed });
    expect(run.rows.filter(({ isFeasible }) => isFeasible).length).toBeGreaterThanOrEqual(least);
    const { cases, kept } = judged(run);
    all.cases += cases;
    all.kept += kept;
  }
  expect(all.kept / all.cases).toBeGreaterThanOrEqual(0.95);
});

test.each([
  ['five minutes', 1, 300, 2],
  ['ten minutes', 5, 600, 5],
  ['a minute', 5, 60, 1],
])('%s is not promised if a deferral takes as long: %i a minute', (_what, perMinute, maxAge, promised) => {
  const run = promise({ perMinute, limiter: 'rolling', skus: 60 * perMinute, promised, maxAge, seed: 3 });
  expect(run.rows.filter(({ isFeasible }) => isFeasible)).toEqual([]);
  expect(judged(run).cases).toBe(0);
});

const drawn = fc.record({
  perMinute: fc.constantFrom(1, 2, 3, 5),
  limiter: fc.constantFrom(...Object.keys(LIMITERS)),
  maxAge: fc.constantFrom(300, 900, 1800, 3600, 7200),
  part: fc.constantFrom(0.1, 0.3, 0.6, 1.5),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
});

test('drawn promises called feasible are kept in 95 of 100 cases, and modest ones are nearly always feasible', () => {
  const all = { cases: 0, kept: 0 };
  fc.assert(
    fc.property(drawn, ({ part, ...wish }) => {
      const { perMinute, maxAge } = wish;
      const skus = 40 * perMinute;
      const rate = 60 / liveInterval(maxAge, perMinute);
      const promised = Math.max(1, Math.min(skus, Math.floor((part * perMinute) / rate)));
      const { cases, kept, left } = judged(promise({ ...wish, skus, promised }));
      all.cases += cases;
      all.kept += kept;
      // If there are few promises, several may be late together.
      expect(kept).toBeGreaterThanOrEqual(0.8 * cases - 5);
      const isPlain = maxAge >= 3600 && part <= 0.3 && wish.limiter !== 'rolling, of an hour';
      if (isPlain) expect(left).toBeLessThanOrEqual(0.1 * cases);
    }),
    { numRuns: runs(3, 20) },
  );
  // If all runs drew few cases, a few late ones are more than one in twenty.
  expect(all.kept).toBeGreaterThanOrEqual(0.95 * all.cases - 15);
});
