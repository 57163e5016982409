import { calibrationPicture } from './calibration.ts';
import { pagePictures } from './page.ts';
import { panelPictures } from './panels.ts';
import { terminalPicture } from './terminal.ts';

/*
 * npm run pictures [-- page terminal panels calibration]: takes the pictures of docs/pictures anew, all or those that are named, from running programs: the
 * page in Chromium, the demo on a terminal, the dashboard's panels from a Prometheus that scrapes a demo (three minutes), and what was claimed of prices
 * beside what was so, from the simulation of bench/freshness (half a minute).
 */

const PICTURES: Readonly<Record<string, (folder: string) => Promise<string[]>>> = {
  page: pagePictures,
  terminal: terminalPicture,
  panels: panelPictures,
  calibration: calibrationPicture,
};

const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(PICTURES, name));
if (unknown.length > 0) {
  process.stderr.write(
    `no such picture: ${unknown.join(', ')}; there are ${Object.keys(PICTURES).join(', ')}\n`,
  );
  process.exit(78);
}
for (const [name, take] of Object.entries(PICTURES))
  if (named.length === 0 || named.includes(name))
    for (const file of await take('docs/pictures')) process.stdout.write(`${file}\n`);
