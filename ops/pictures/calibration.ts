import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runLive } from '../../bench/freshness/run.ts';
import { drawCalibration, type MarketTenth } from './calibration-svg.ts';

/** As `npm run bench:freshness` has it. */
const SIZE = {
  skus: 20_000,
  hours: 48,
  fillSkus: 500_000,
  pacingHours: 24,
  incident: { skus: 500_000, hours: 12, sweptMinutes: 43 },
};
const MARKET = { policy: 'index', weights: 'zipf', ceiling: null, trust: true } as const;
/** What is drawn: a market that has been learned, one that nobody can keep up with, and one of which nothing is known yet. */
const MARKETS = {
  'the second day of a market': MARKET,
  'the same, 200 refreshes a minute': { ...MARKET, ceiling: 200 },
  'the first hours of one ten times faster': { ...MARKET, medianMinutes: 36, hours: 4, judgedFrom: 30 },
} as const;

/**
 * Draws what was claimed of the live prices of simulated markets, and what of it was so: `calibration.svg` in `folder`. Returns the files
 * written. The pace, the plan and the learning are the daemon's; the truth is the simulation's, so each price counts, and not only
 * those that are refreshed. It takes half a minute.
 */
export async function calibrationPicture(folder: string): Promise<string[]> {
  const tenths = Object.entries(MARKETS).flatMap(([market, run]) =>
    runLive(1, SIZE, run).trust.bins.map(({ prices, right, claimed }): MarketTenth => ({
      market,
      prices,
      right: right / Math.max(1, prices),
      claimed: claimed / Math.max(1, prices),
    })),
  );
  const caption = `20,000 simulated live SKUs at 590 refreshes a minute, every price every ten minutes (npm run pictures -- calibration).`;
  const file = join(folder, 'calibration.svg');
  await mkdir(folder, { recursive: true });
  await writeFile(file, drawCalibration(tenths, caption));
  return [file];
}
