import { expect, test } from 'vitest';
import { migrationProgress } from '../../src/cli/migrate-progress.ts';
import type { LockHolder } from '../../src/store/status/holders.ts';

const NOBODY = { other: null, indexPercent: null };
const PSQL: LockHolder = {
  pid: 7,
  role: 'seller',
  application: 'psql',
  seconds: 3,
  table: 'catalog.skus',
  heldSeconds: 240,
  command: 'LOCK TABLE',
};

function told() {
  const lines: string[] = [];
  let seconds = 0;
  const progress = migrationProgress(
    (line) => lines.push(line),
    () => seconds * 1000,
  );
  const passes = (by: number) => (seconds += by);
  return { progress, passes, lines: () => lines.splice(0) };
}

test('quick migrations are not reported one by one', () => {
  const { progress, passes, lines } = told();
  progress.pending(2);
  expect(lines()).toEqual([expect.stringMatching(/^2 migrations are pending; .*half an hour/)]);
  progress.step({ tag: '0001_a', number: 1, of: 2 });
  passes(1);
  progress.tick([], NOBODY);
  progress.step({ tag: '0002_b', number: 2, of: 2 });
  passes(1);
  progress.tick([], NOBODY);
  expect(lines()).toEqual([]);
});

test('a slow migration is reported after two seconds and then every half minute until it is over', () => {
  const { progress, passes, lines } = told();
  progress.step({ tag: '0001_a', number: 1, of: 2 });
  passes(2);
  progress.tick([], NOBODY);
  passes(2);
  progress.tick([], NOBODY);
  expect(lines()).toEqual(['0001_a (1 of 2): 2s so far']);
  passes(30);
  progress.tick([], { other: null, indexPercent: 42 });
  expect(lines()).toEqual(['0001_a (1 of 2): 34s so far; the index at hand is built to 42 %']);
  progress.over();
  passes(60);
  progress.tick([], NOBODY);
  expect(lines()).toEqual([]);
});

test('the session that is waited for is named once, whether it holds a lock or migrates', () => {
  const { progress, lines } = told();
  const other = { pid: 8, application: 'catalog-mirror migrate' };
  for (let times = 0; times < 2; times += 1) progress.tick([PSQL], { other, indexPercent: null });
  expect(lines()).toEqual([
    expect.stringMatching(
      /^waiting: process 7 of Postgres .* holds a lock on catalog.skus.*pg_terminate_backend\(7\)$/,
    ),
    'waiting: process 8 of Postgres (catalog-mirror migrate) applies them',
  ]);
  // From now on this process is the one that keeps others waiting.
  progress.step({ tag: '0001_a', number: 1, of: 1 });
  progress.tick([], { other: { ...other, pid: 9 }, indexPercent: null });
  expect(lines()).toEqual([]);
});
