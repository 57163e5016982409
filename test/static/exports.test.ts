import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/**
 * What names things by words of its own: the package's exports, the sandbox (the partner's), tables (SQL's), and a
 * command (as it is typed).
 */
const BY_OTHERS = /^src\/(client\/|sandbox\/|store\/schema|cli\/follow\.ts)/;
const EXPORTED =
  /^export (?:abstract |async |declare )*(?:class|const|enum|function\*?|interface|let|type) (\w+)/gm;

test('no two files of src export the same name', () => {
  const paths = execFileSync('git', ['ls-files', 'src/*.ts'], { encoding: 'utf8' }).trim().split('\n');
  const files = new Map<string, Set<string>>();
  for (const path of paths.filter((one) => !BY_OTHERS.test(one)))
    for (const [, name = ''] of readFileSync(path, 'utf8').matchAll(EXPORTED))
      files.set(name, (files.get(name) ?? new Set()).add(path));
  expect(files.size).toBeGreaterThan(1000);
  expect([...files].filter(([, found]) => found.size > 1).map(([name, found]) => [name, ...found])).toEqual(
    [],
  );
});
