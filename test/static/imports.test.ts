import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * Which module may import which: along the flow of data, in one direction. `main` is main.ts and bin.ts, which
 * also import launch.ts and version.ts. A module may always import itself. The sandbox imports nothing, so that it
 * cannot share a misreading.
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

/** The same within `store`; the room `store` contains the files next to the other rooms. */
const STORE_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  connection: [],
  store: ['connection'],
  setup: ['connection'],
  ledger: ['connection', 'store'],
  live: ['connection', 'ledger'],
  schema: ['live'],
  history: ['connection', 'store'],
  sellers: ['connection', 'store', 'setup', 'ledger', 'live', 'history'],
  trust: ['connection', 'live'],
  catalog: ['connection', 'ledger', 'live', 'history', 'sellers'],
  call: ['connection', 'store', 'ledger', 'live', 'sellers', 'catalog'],
  answer: ['connection', 'store', 'ledger', 'live', 'history', 'sellers', 'trust', 'catalog'],
  status: ['connection', 'sellers', 'answer'],
};

const SRC = resolve(import.meta.dirname, '../../src');

function moduleOf(file: string): string {
  const path = relative(SRC, file);
  if (path.includes('/')) return path.split('/')[0] ?? '';
  // The package's own data and its launch depend on nothing else.
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

const STORE = join(SRC, 'store');

function storeRoomOf(file: string): string {
  const path = relative(STORE, file);
  return path.includes('/') ? (path.split('/')[0] ?? '') : 'store';
}

const TABLES = [
  { heading: 'Who may import whom', root: SRC, mayImport: MAY_IMPORT, roomOf: moduleOf },
  { heading: 'Inside `store`', root: STORE, mayImport: STORE_MAY_IMPORT, roomOf: storeRoomOf },
];

describe.each(TABLES)('$heading', ({ heading, root, mayImport, roomOf }) => {
  const own = files.filter((file) => file.startsWith(`${root}/`));

  test('every room is in the table and has files', () => {
    expect([...new Set(own.map(roomOf))].toSorted()).toEqual(Object.keys(mayImport).toSorted());
  });

  test('imports follow the table', () => {
    const breaches = own.flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith(`${root}/`))
        .filter(
          (target) => roomOf(target) !== roomOf(file) && !mayImport[roomOf(file)]?.includes(roomOf(target)),
        )
        .map((target) => `${relative(root, file)} imports ${relative(root, target)}`),
    );
    expect(breaches).toEqual([]);
  });

  test('the table itself has no cycle', () => {
    const reaches = (from: string, seen: readonly string[]): boolean =>
      (mayImport[from] ?? []).some((to) => seen.includes(to) || reaches(to, [...seen, to]));
    expect(Object.keys(mayImport).filter((room) => reaches(room, [room]))).toEqual([]);
  });

  test('ARCHITECTURE.md contains this table', () => {
    const page = readFileSync(resolve(SRC, '../ARCHITECTURE.md'), 'utf8');
    const [, section = ''] = page.split(`## ${heading}\n`);
    const [table = ''] = section.split('\n## ');
    const quoted = (rooms: readonly string[]) => rooms.map((room) => `\`${room}\``).join(', ');
    const rows = Object.entries(mayImport).map(([room, others]) => [`\`${room}\``, quoted(others)]);
    const cells = table.split('\n').filter((line) => line.startsWith('| `'));
    expect(
      cells.map((line) => line.split('|').map((cell) => cell.trim())).map((row) => [row[1], row.at(-2)]),
    ).toEqual(rows);
  });
});

test('no files import each other in a cycle, not even for types', () => {
  let imports = files.flatMap((from) => importsOf(from).map((to) => ({ from, to })));
  for (let before = Infinity; imports.length < before;) {
    before = imports.length;
    const [importing, imported] = [
      new Set(imports.map((one) => one.from)),
      new Set(imports.map((one) => one.to)),
    ];
    // In a cycle each file imports one that imports another, and is imported by one that is imported.
    imports = imports.filter(({ from, to }) => imported.has(from) && importing.has(to));
  }
  expect(imports.map(({ from, to }) => `${relative(SRC, from)} imports ${relative(SRC, to)}`)).toEqual([]);
});

test('only config/config.ts reads the environment, and one other file removes variables from it', () => {
  const readers = files.filter((file) => /process\.env|from 'node:process'/.test(readFileSync(file, 'utf8')));
  expect(readers.map((file) => relative(SRC, file)).toSorted()).toEqual([
    'config/config.ts',
    'own-environment.ts',
  ]);
});

test('JSON with foreign keys is parsed by lib/json.ts', () => {
  const others = files
    .filter((file) => readFileSync(file, 'utf8').includes('JSON.parse('))
    .map((file) => relative(SRC, file));
  expect(others.filter((file) => /^(?:partner|pace|store|sync|follow|client|status)\//.test(file))).toEqual([
    // JSON that is a plain string or our own.
    'partner/repeated-members.ts',
    'store/catalog/learned-names.ts',
    'store/setup/journal.ts',
  ]);
});
