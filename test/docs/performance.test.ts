import { expect, test } from 'vitest';
import { read } from './markdown.ts';

const figures = read('docs/performance.md') + read('docs/history.md') + read('ops/capacity.md');

/** The rows of README's table of figures, without its header. */
const rows = read('README.md')
  .split('\n## Performance\n')[1]!
  .split('\n## ')[0]!
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1);

test('every figure in the README is on a page that says how it was measured', () => {
  expect(rows.length).toBeGreaterThan(3);
  const measured = rows.flatMap((row) => row.match(/\b\d+\.\d+\b|\b\d+ MB\b/g) ?? []);
  expect(measured.length).toBeGreaterThanOrEqual(rows.length);
  expect(
    measured.filter((figure) => !new RegExp(`\\b${figure.replace('.', '\\.')}\\b`).test(figures)),
  ).toEqual([]);
});
