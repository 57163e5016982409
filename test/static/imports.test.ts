import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Which room may import which: the way of the data, in one direction. `app` stands for the files directly in src that put
 * the parts together. A room may always import itself. The sandbox imports nothing, so that it cannot share a misreading.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  sandbox: [],
  embedded: ['lib'],
  partner: ['lib'],
  store: ['lib'],
  config: ['lib', 'partner'],
  sync: ['lib', 'partner', 'store'],
  queues: ['lib', 'store', 'sync'],
  telemetry: ['lib', 'config', 'partner', 'store', 'sync', 'queues'],
  status: ['lib', 'store'],
  app: ['lib', 'config', 'partner', 'store', 'sync', 'queues', 'telemetry', 'embedded', 'status'],
  cli: [
    'lib',
    'config',
    'partner',
    'store',
    'sync',
    'queues',
    'telemetry',
    'embedded',
    'sandbox',
    'status',
    'app',
  ],
  main: ['cli', 'config', 'app'],
};

const SRC = resolve(import.meta.dirname, '../../src');

function roomOf(file: string): string {
  const path = relative(SRC, file);
  if (path === 'main.ts' || path === 'bin.ts') return 'main';
  if (path === 'config.ts') return 'config';
  return path.includes('/') ? (path.split('/')[0] ?? '') : 'app';
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join(SRC, file));

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) =>
    resolve(dirname(file), match[1] ?? ''),
  );
}

test('every room of src is in the table', () => {
  expect([...new Set(files.map(roomOf))].filter((room) => !Object.hasOwn(MAY_IMPORT, room))).toEqual([]);
});

test('imports run one way', () => {
  const breaches = files.flatMap((file) => {
    const room = roomOf(file);
    return importsOf(file)
      .filter((target) => target.startsWith(SRC))
      .filter((target) => roomOf(target) !== room && !(MAY_IMPORT[room] ?? []).includes(roomOf(target)))
      .map((target) => `${relative(SRC, file)} imports ${relative(SRC, target)}`);
  });
  expect(breaches).toEqual([]);
});

test('the table itself has no circle', () => {
  const reaches = (from: string, seen: readonly string[]): boolean =>
    (MAY_IMPORT[from] ?? []).some((to) => seen.includes(to) || reaches(to, [...seen, to]));
  expect(Object.keys(MAY_IMPORT).filter((room) => reaches(room, [room]))).toEqual([]);
});

test('the environment is read in config.ts alone', () => {
  const readers = files.filter((file) => /process\.env|from 'node:process'/.test(readFileSync(file, 'utf8')));
  expect(readers.map((file) => relative(SRC, file))).toEqual(['config.ts']);
});

test('no file of src has more than 300 lines of code', () => {
  const long = files.filter(
    (file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => !/^\s*(?:$|\/\/|\*|\/\*)/.test(line)).length > 300,
  );
  expect(long.map((file) => relative(SRC, file))).toEqual([]);
});
