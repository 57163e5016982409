import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Figure } from './frame/figure.ts';
import { optionsOf } from './frame/options.ts';
import { report, type Row } from './frame/table.ts';

/*
 * npm run bench [-- --skus 1000000 --rounds 5 --only ingest,apply --json FILE] Every work in a process of its own,
 * one after the other, then all of them in one table. Without options each takes the size and rounds that it takes
 * alone. Exit 1 when a figure to reach is missed or a work fails.
 */

const WORKS = [
  'ingest',
  'rebaseline',
  'memory',
  'apply',
  'claim',
  'read',
  'follow',
  'scrape',
  'start',
  'traces',
  'statements',
  'size',
  'bloat',
  'scale',
  'freshness',
  'ceiling',
];

const values = optionsOf({
  skus: { type: 'string' },
  rounds: { type: 'string' },
  only: { type: 'string', default: WORKS.join(',') },
  json: { type: 'string' },
});

const mainOf = (work: string) => fileURLToPath(new URL(`${work}/main.ts`, import.meta.url));

/** Runs one work, shows what it prints, and returns its rows. Throws where it ended without any. */
function run(work: string, folder: string): Row[] {
  if (work === 'freshness' || work === 'ceiling') return figures(work);
  const file = join(folder, `${work}.json`);
  const options = (['skus', 'rounds'] as const).flatMap((name) => {
    const value = values[name];
    return value === undefined ? [] : [`--${name}`, value];
  });
  spawnSync(process.execPath, [mainOf(work), ...options, '--json', file], { stdio: 'inherit' });
  return (JSON.parse(readFileSync(file, 'utf8')) as { rows: Row[] }).rows;
}

/**
 * Simulations of one seed: parts of the time that prices were right, requests for the fewest possible, and the like.
 */
function figures(work: string): Row[] {
  const { stdout } = spawnSync(process.execPath, [mainOf(work), '--seeds', '1', '--json'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = JSON.parse(stdout) as { figures: Figure[] };
  return printed.figures.map(({ what, value, reach }) => ({
    work: what,
    ours: value,
    unit: '',
    ...(reach === undefined ? {} : { reach }),
  }));
}

function rowsOf(work: string, folder: string): Row[] | null {
  process.stdout.write(`\n${work}\n`);
  try {
    return run(work, folder);
  } catch {
    return null;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'catalog-mirror-bench-'));
try {
  const done = values.only.split(',').map((work) => ({ work, rows: rowsOf(work, folder) }));
  process.stdout.write('\nall\n');
  report(
    done.flatMap(({ rows }) => rows ?? []),
    values.json,
  );
  const failed = done.filter(({ rows }) => rows === null).map(({ work }) => work);
  if (failed.length > 0) {
    process.stdout.write(`ended without figures: ${failed.join(', ')}\n`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
