import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VARIABLES } from '../../src/config.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const scripts = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    scripts: Record<string, string>;
  }
).scripts;

test('the configuration table is the one the code has', () => {
  const rows = VARIABLES.map(
    ({ name, default: fallback, meaning, secret }) =>
      `| \`${name}\`${secret ? ' †' : ''} | ${fallback === null ? '' : `\`${fallback}\``} | ${meaning} |`,
  );
  const table = readme.split('\n').filter((line) => /^\| `[A-Z][A-Z_]+`/.test(line));
  expect(table).toEqual(rows);
});

test('every npm script that the README names exists', () => {
  const named = [...readme.matchAll(/npm (?:run )?(test|start|demo|[a-z]+:[a-z]+)\b/g)].map(
    (match) => match[1] ?? '',
  );
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});
