import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { drawCalibration, type CohortTenth } from './calibration-svg.ts';
import { startDemo } from './demo.ts';

/** More live SKUs than the account can ask about every few minutes, so that not everything is as good as sure. */
const SKUS = 20_000;
const LIVE_SHARE = 0.4;
const MINUTES = 30;

/**
 * Draws what catalog.calibration says after half an hour of a demo: `calibration.svg` in `folder`. Returns the files written. It takes as
 * long.
 */
export async function calibrationPicture(folder: string): Promise<string[]> {
  await using demo = await startDemo(['--skus', String(SKUS), '--live-share', String(LIVE_SHARE)]);
  await sleep(MINUTES * 60_000);
  const rows = await demo.query('SELECT * FROM catalog.calibration ORDER BY cohort, tenth');
  const tenths = rows.map((row): CohortTenth => ({
    cohort: String(row['cohort']),
    looks: Number(row['looks']),
    right: Number(row['right_share']),
    claimed: Number(row['claimed_share']),
  }));
  const caption = `catalog.calibration after ${MINUTES} minutes of a demo of ${SKUS} SKUs, ${LIVE_SHARE * 100} % of them live.`;
  const file = join(folder, 'calibration.svg');
  await mkdir(folder, { recursive: true });
  await writeFile(file, drawCalibration(tenths, caption));
  return [file];
}
