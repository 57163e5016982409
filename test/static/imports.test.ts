import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Which module may import which: the way of the data, in one direction. `main` are main.ts and bin.ts, which import launch.ts
 * and version.ts too. A module may always import itself. The sandbox imports nothing, so that it cannot share a misreading.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  declared: [],
  sandbox: [],
  embedded: ['lib', 'declared'],
  partner: ['lib', 'declared'],
  config: ['lib', 'declared', 'partner'],
  store: ['lib', 'declared', 'config'],
  pace: ['lib', 'declared', 'config', 'partner', 'store'],
  sync: ['lib', 'declared', 'config', 'partner', 'store', 'pace'],
  follow: ['lib', 'partner', 'store'],
  queues: ['lib', 'declared', 'store', 'sync'],
  status: ['lib', 'declared', 'store', 'pace'],
  telemetry: ['lib', 'declared', 'config', 'partner', 'store', 'pace', 'sync', 'queues', 'status'],
  daemon: [
    'lib',
    'declared',
    'config',
    'partner',
    'store',
    'pace',
    'sync',
    'queues',
    'status',
    'telemetry',
    'embedded',
  ],
  cli: [
    'lib',
    'declared',
    'config',
    'partner',
    'store',
    'pace',
    'sync',
    'queues',
    'status',
    'telemetry',
    'embedded',
    'sandbox',
    'daemon',
    'follow',
  ],
  client: ['lib', 'declared', 'store', 'status', 'sandbox'],
  main: ['lib', 'cli', 'config'],
};

const SRC = resolve(import.meta.dirname, '../../src');

function moduleOf(file: string): string {
  const path = relative(SRC, file);
  if (path.includes('/')) return path.split('/')[0] ?? '';
  // What the package says of itself, and how it is launched, know nothing of the rest.
  return path === 'main.ts' || path === 'bin.ts' ? 'main' : 'lib';
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

test('every module of src is in the table', () => {
  expect([...new Set(files.map(moduleOf))].filter((module) => !Object.hasOwn(MAY_IMPORT, module))).toEqual(
    [],
  );
});

test('imports run one way', () => {
  const breaches = files.flatMap((file) => {
    const module = moduleOf(file);
    return importsOf(file)
      .filter((target) => target.startsWith(SRC))
      .filter(
        (target) => moduleOf(target) !== module && !(MAY_IMPORT[module] ?? []).includes(moduleOf(target)),
      )
      .map((target) => `${relative(SRC, file)} imports ${relative(SRC, target)}`);
  });
  expect(breaches).toEqual([]);
});

test('the table itself has no circle', () => {
  const reaches = (from: string, seen: readonly string[]): boolean =>
    (MAY_IMPORT[from] ?? []).some((to) => seen.includes(to) || reaches(to, [...seen, to]));
  expect(Object.keys(MAY_IMPORT).filter((module) => reaches(module, [module]))).toEqual([]);
});

test('ARCHITECTURE.md has the table as it is here', () => {
  const page = readFileSync(resolve(SRC, '../ARCHITECTURE.md'), 'utf8');
  const [, section = ''] = page.split('## Who may import whom');
  const [table = ''] = section.split('\n## ');
  const quoted = (modules: readonly string[]) => modules.map((module) => `\`${module}\``).join(', ');
  const rows = Object.entries(MAY_IMPORT).map(([module, others]) => `| \`${module}\` | ${quoted(others)} |`);
  expect(table.split('\n').filter((line) => line.startsWith('| `'))).toEqual(rows);
});

test('the environment is read only in config/config.ts', () => {
  const readers = files.filter((file) => /process\.env|from 'node:process'/.test(readFileSync(file, 'utf8')));
  expect(readers.map((file) => relative(SRC, file))).toEqual(['config/config.ts']);
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
