import { expect, test } from 'vitest';
import { runBench } from '../../bench/freshness/figures.ts';

/** The short form of `npm run bench:freshness`: fewer SKUs and hours, the same code and the same figures to reach. */
test('the simulated days reach their figures', { timeout: 120_000 }, () => {
  const figures = [
    ...runBench([3], {
      skus: 3000,
      hours: 16,
      fillSkus: 60_000,
      pacingHours: 4,
      incident: { skus: 20_000, hours: 2, sweptMinutes: 43 },
    }),
  ];
  expect(figures.length).toBeGreaterThan(40);
  // Too short for rates to be learned well, for a fill to outlast its deferrals, and for those five minutes not to count.
  const needsTheFullLength = /redrawn|mislisted|from cold|closed|ceiling 200: (?:longest|deferred)/;
  const missed = figures.filter(({ ok, what }) => !ok && !needsTheFullLength.test(what));
  expect(missed).toEqual([]);
});
