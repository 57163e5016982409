import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { LISTS } from '../mutants/all.ts';
import { placed, planted, readMigrations } from '../mutants/mutant.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const MIGRATIONS = readMigrations(ROOT);

test.each(Object.values(LISTS).flat())('the fault can be planted: $breaks', (listed) => {
  const mutant = placed(listed, MIGRATIONS);
  const text = readFileSync(join(ROOT, mutant.file), 'utf8');
  expect(planted(mutant, text)).not.toBe(text);
  expect(mutant.tests.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});
