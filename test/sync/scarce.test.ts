import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FixedWindow, type Limiter, RollingWindow, TokenBucket } from '../../bench/ceiling/limiters.ts';
import { runs } from '../support/soak.ts';
import { HOUR, MINUTE, refreshScarce, type Scarce, type Waits } from './scarce-partner.ts';

/*
 * Partners that compute few live prices a minute. The longest wait of any SKU is measured in rounds, the least
 * time in which all SKUs can be computed.
 */

const LIMITERS: Readonly<Record<string, (perMinute: number) => Limiter>> = {
  rolling: (perMinute) => new RollingWindow(perMinute, MINUTE),
  fixed: (perMinute) => new FixedWindow(perMinute, MINUTE),
  even: (perMinute) => new TokenBucket(1, () => perMinute),
  'rolling, of ten minutes': (perMinute) => new RollingWindow(10 * perMinute, 10 * MINUTE),
};
const SCARCE: Omit<Scarce, 'skus' | 'limiter'> = {
  defers: () => false,
  daemons: 1,
  everyMs: 30 * MINUTE,
  answersMs: [100, 1000],
  weightOf: () => 1,
  promiseOf: () => null,
  arrivals: [],
  seed: 1,
};
const oneAMinute = () => new RollingWindow(1, MINUTE);

/** Returns the longest waits in rounds of `roundMinutes`. */
const longest = ({ rows }: Waits, roundMinutes: number, which: (sku: number) => boolean = () => true) =>
  rows.filter(({ number }) => which(number)).map((row) => row.longest / MINUTE / roundMinutes);
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Returns the ratio of each wait to the expected one, both at least a minute, in ascending order. */
const beyondExpected = ({ rows, estimates }: Waits): number[] =>
  estimates
    .flatMap(({ sku, at, expected }) => {
      const computedAt = rows[sku]?.computedTimes.find((time) => time > at);
      if (computedAt === undefined) return [];
      return [Math.max(MINUTE, computedAt - at) / Math.max(MINUTE, expected - at)];
    })
    .toSorted((a, b) => a - b);
const quantile = (sorted: readonly number[], part: number) =>
  sorted[Math.floor(part * (sorted.length - 1))] ?? Infinity;

describe('60 live SKUs, one of which is computed a minute,', () => {
  test.each([1, 2, 3])('none wait for more than four rounds (seed %i)', (seed) => {
    const run = refreshScarce({ ...SCARCE, skus: 60, limiter: oneAMinute(), seed }, 8);
    expect(Math.max(...longest(run, 60))).toBeLessThan(4);
    expect(run.computed).toBeGreaterThan(0.85 * 8 * 60);
  });

  test('wait as long as predicted: half within 1.33 times that, nine in ten within three times that', () => {
    const run = refreshScarce({ ...SCARCE, skus: 60, limiter: oneAMinute() }, 8);
    const ratios = beyondExpected(run);
    expect(quantile(ratios, 0.5)).toBeLessThan(1.33);
    expect(quantile(ratios, 0.9)).toBeLessThan(3);
    expect(Math.max(...run.ceilings.slice(1))).toBeLessThan(5);
  });

  test.each(['refresh', 'crossed', 'new'] as const)(
    'are overtaken by SKUs that are requested at once (%s)',
    (as) => {
      const arrivals = Array.from({ length: 21 }, (_, i) => ({
        at: HOUR + i * 20 * MINUTE,
        sku: as === 'new' ? 60 + i : (i * 37) % 60,
        as,
      }));
      // One in a hundred waits for a try that is deferred more than once.
      const took = [1, 2, 3].flatMap((seed) =>
        refreshScarce({ ...SCARCE, skus: 60, limiter: oneAMinute(), arrivals, seed }, 8.5).rows.flatMap(
          ({ answeredIn }) => answeredIn,
        ),
      );
      expect(took).toHaveLength(63);
      expect(quantile(took, 0.95)).toBeLessThan(30 * MINUTE);
      expect(Math.max(...took)).toBeLessThan(2 * HOUR);
      expect(mean(took)).toBeLessThan(8 * MINUTE);
    },
  );
});

test.each([1, 2])(
  '25 SKUs, fewer than can be computed, do not make the mirror forget the ceiling (seed %i)',
  (seed) => {
    const run = refreshScarce({ ...SCARCE, skus: 25, limiter: oneAMinute(), seed }, 8);
    expect(Math.max(...run.ceilings.slice(3))).toBeLessThan(5);
  },
);

test('after two hours without any computation, all SKUs are computed within a round or two', () => {
  const limiter = new TokenBucket(1, (now) => (now >= HOUR && now < 3 * HOUR ? 0 : 20));
  const { rows } = refreshScarce({ ...SCARCE, skus: 400, limiter }, 4.5);
  expect(rows.filter(({ computedTimes }) => (computedTimes.at(-1) ?? 0) < 3 * HOUR)).toHaveLength(0);
});

test('SKUs put off while few were computed are all computed within the hour once there is capacity', () => {
  const limiter = new TokenBucket(1, (now) => (now < 3 * HOUR ? 1 : 200));
  const { rows } = refreshScarce({ ...SCARCE, skus: 400, limiter }, 4.25);
  expect(rows.filter(({ computedTimes }) => (computedTimes.at(-1) ?? 0) < 3 * HOUR)).toHaveLength(0);
});

test('after hours without any computation, SKUs that never compute do not displace others', () => {
  const limiter = new TokenBucket(1, (now) => (now >= 2 * HOUR && now < 5 * HOUR ? 0 : 2));
  const isNever = (sku: number) => sku % 4 > 0;
  const { rows } = refreshScarce({ ...SCARCE, skus: 24, defers: isNever, limiter }, 8);
  const waiting = rows.filter(
    ({ number, computedTimes }) => !isNever(number) && (computedTimes.at(-1) ?? 0) < 7 * HOUR,
  );
  expect(waiting).toHaveLength(0);
});

const drawn = fc.record({
  perMinute: fc.constantFrom(1, 2, 3, 5),
  minutes: fc.constantFrom(20, 30, 60),
  limiter: fc.constantFrom(...Object.keys(LIMITERS)),
  /** The part of the SKUs that is never computed. */
  never: fc.constantFrom(0, 0, 0.05, 0.2),
  daemons: fc.constantFrom(1, 2, 3),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
});

test('in drawn markets nearly all computable SKUs are computed, whatever is never computed', () => {
  fc.assert(
    fc.property(drawn, ({ perMinute, minutes, never, limiter, ...more }) => {
      const skus = perMinute * minutes;
      const isNever = (sku: number) => (sku * 7919) % skus < Math.round(skus * never);
      const round = Math.max(30, ((1 - never) * skus) / perMinute);
      const partner = { ...SCARCE, ...more, skus, defers: isNever, limiter: LIMITERS[limiter]!(perMinute) };
      const waits = longest(refreshScarce(partner, (8 * round) / 60), round, (sku) => !isNever(sku));
      expect(mean(waits)).toBeLessThan(3.5);
      // SKUs without a computation in eight rounds.
      expect(waits.filter((wait) => wait > 7.9).length).toBeLessThanOrEqual(2);
    }),
    { numRuns: runs(2, 30) },
  );
});
