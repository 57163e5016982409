import { expect, test } from 'vitest';
import { grown } from './growth.ts';

const MB = 2 ** 20;
const hour = (sizes: readonly number[], name = 'catalog_internal.due') =>
  sizes.map((size) => ({ [name]: size * MB }));

test('a table that grows all the time is reported', () => {
  const [text] = grown(hour([4, 5, 6, 7, 8, 9, 11, 12, 13]));
  expect(text).toBe('catalog_internal.due: 6.0 MB → 9.0 MB → 13.0 MB');
});

test('a table that one mass of changes has made large is not reported', () => {
  expect(grown(hour([4, 4, 4, 4, 11, 11, 11, 11, 11]))).toEqual([]);
});

test('a table that is small, or was large from the start, is not reported', () => {
  expect(grown(hour([1, 1, 1, 2, 2, 2, 4, 4, 4]))).toEqual([]);
  expect(grown(hour([4, 11, 4, 4, 5, 6, 12, 12, 12]))).toEqual([]);
});

test('open files have limits of their own', () => {
  const files = (numbers: readonly number[]) => numbers.map((n) => ({ 'daemon 1 files': n }));
  expect(grown(files([30, 30, 50, 50, 90, 90]))).toEqual(['daemon 1 files: 30 → 50 → 90']);
  expect(grown(files([30, 30, 30, 35, 45, 45]))).toEqual([]);
});
