import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const MAX_LINE = 140;
const MAX_COMMENT = 120;

const isTooLong = (line: string) => line.length > (/^\s*(?:\/\/|\/?\*)/.test(line) ? MAX_COMMENT : MAX_LINE);

test('no line in src exceeds 140 columns, and no comment line 120', () => {
  const paths = execFileSync('git', ['ls-files', 'src/*.ts'], { encoding: 'utf8' }).trim().split('\n');
  const long = paths.filter((path) => readFileSync(path, 'utf8').split('\n').some(isTooLong));
  expect(long).toEqual([]);
});
