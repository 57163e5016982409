import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { LONG, SERVED } from '../../vitest.config.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const found = (patterns: readonly string[]) =>
  globSync(patterns, { cwd: ROOT }).map((path) => join(ROOT, path));

/** Calls by which a test, or a helper that it imports, starts a listening server. */
const STARTS = /\b(?:createServer|startSandbox|startHttpServer)\(|\.listen\(/;

function importsOf(file: string): string[] {
  const targets = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type)[^;]*? from '(\.[^']+\.ts)';/gm,
  );
  return [...targets].map(([, target = '']) => resolve(dirname(file), target));
}

/** Returns the file and the test files that it imports, directly or not. */
function reached(file: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(file) || !file.startsWith(join(ROOT, 'test/'))) return seen;
  seen.add(file);
  for (const target of importsOf(file)) reached(target, seen);
  return seen;
}

test('no unit test starts a server, except those in SERVED', () => {
  const others = new Set(found(['test/**/*.{pg,e2e,timed}.test.ts', 'test/static/**', ...LONG, ...SERVED]));
  const units = found(['test/**/*.test.ts']).filter((file) => !others.has(file));
  expect(units.length).toBeGreaterThan(100);
  const serving = units.filter((file) =>
    [...reached(file)].some((one) => STARTS.test(readFileSync(one, 'utf8'))),
  );
  expect(serving.map((file) => relative(ROOT, file))).toEqual([]);
});
