import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { LOCKS } from '../mutants/locks.ts';
import { HTTP } from '../mutants/http.ts';
import { SAFETY } from '../mutants/safety.ts';
import { planted } from '../mutants/mutant.ts';
import { PARTNER_CASES } from '../mutants/partner-cases.ts';

const ROOT = resolve(import.meta.dirname, '../..');

test.each([...PARTNER_CASES, ...LOCKS, ...SAFETY, ...HTTP])('the fault can be planted: $breaks', (mutant) => {
  const text = readFileSync(join(ROOT, mutant.file), 'utf8');
  expect(planted(mutant, text)).not.toBe(text);
  expect(mutant.tests.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});
