import { expect, test } from 'vitest';
import { type LimitedPartner, PARTNERS } from '../../bench/ceiling/limiters.ts';
import { ceilingFigures } from '../../bench/ceiling/results.ts';
import { simulateCeiling } from '../../bench/ceiling/simulate.ts';

test('the production code learns to use as much of each of sixteen limits as the target demands', () => {
  expect(PARTNERS).toHaveLength(16);
  const figures = [...ceilingFigures([3], 6)];
  expect(figures.filter(({ reach }) => reach !== undefined)).toHaveLength(3 * PARTNERS.length);
  expect(figures.filter(({ ok }) => !ok)).toEqual([]);
});

test.each(['rolling 200 in 60 s', 'fixed 200 in 60 s'])(
  'a lasting limit of %s is used to 99 %, with at most one deferral in 500',
  (name) => {
    const partner = PARTNERS.find((one) => one.name === name) as LimitedPartner;
    const { all, deferred } = simulateCeiling(partner, {
      hours: 6,
      answers: { fromMs: 100, toMs: 1000 },
      seed: 3,
    });
    expect(all).toBeGreaterThanOrEqual(0.99);
    expect(deferred).toBeLessThanOrEqual(0.002);
  },
);

test('each limiter grants what it allows, and no more', () => {
  for (const { name, limiter } of PARTNERS) {
    const taken = limiter();
    let given = 0;
    for (let now = 0; now < 3_600_000; now += 500) given += taken.take(now, 5);
    const allowed = taken.allowed(0, 3_600_000, 600);
    const fits = given <= Math.ceil(allowed) && given >= 0.95 * allowed;
    expect({ name, given, allowed, fits }).toMatchObject({ fits: true });
  }
});
