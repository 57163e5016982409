import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/**
 * Files that take names from elsewhere: the package's exports, the sandbox (from the partner), tables (from SQL),
 * and a command (as it is typed).
 */
const BY_OTHERS = /^src\/(client\/|sandbox\/|store\/schema|cli\/follow\.ts)/;
const EXPORTED =
  /^export (?:abstract |async |declare )*(?:class|const|enum|function\*?|interface|let|type) (\w+)/gm;

/** A file's own functions. */
const LOCAL = /^(?:(?:async )?function\*? (\w+)|const (\w+) = (?:async )?(?:<[^;=]*>)?\([^;]*?=>)/gm;
/** Modules in which no local function has the name of an export of another file of the module. */
const WITHOUT_TWINS = /^src\/(?!cli\/|store\/)(\w+)\//;

const paths = execFileSync('git', ['ls-files', 'src/*.ts'], { encoding: 'utf8' }).trim().split('\n');
const files = new Map<string, Set<string>>();
for (const path of paths.filter((one) => !BY_OTHERS.test(one)))
  for (const [, name = ''] of readFileSync(path, 'utf8').matchAll(EXPORTED))
    files.set(name, (files.get(name) ?? new Set()).add(path));

test('no two files in src export the same name', () => {
  expect(files.size).toBeGreaterThan(1000);
  expect([...files].filter(([, found]) => found.size > 1).map(([name, found]) => [name, ...found])).toEqual(
    [],
  );
});

test('no local function has the name of an export of its module', () => {
  const moduleOf = (path: string) => WITHOUT_TWINS.exec(path)?.[1];
  let count = 0;
  const twins = paths.flatMap((path) => {
    const own = [...readFileSync(path, 'utf8').matchAll(LOCAL)].map(([, name, arrow]) => name ?? arrow ?? '');
    count += own.length;
    const isTwin = (name: string) =>
      [...(files.get(name) ?? [])].some((other) => moduleOf(other) === moduleOf(path));
    return moduleOf(path) === undefined || BY_OTHERS.test(path)
      ? []
      : own.filter(isTwin).map((name) => `${path}: ${name}`);
  });
  expect(count).toBeGreaterThan(500);
  expect(twins).toEqual([]);
});
