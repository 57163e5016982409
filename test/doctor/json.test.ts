import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { reportJson, envLine, type Report, screenOf } from '../../src/cli/doctor/report.ts';
import { parseEnvFile } from '../../src/config/environment.ts';

const REPORT: Report = {
  findings: [
    { check: 'bulk body', level: 'FAIL', text: 'the partner reads `items`', remedy: 'set it' },
    { check: 'writes', level: 'OK', text: 'taken' },
  ],
  requests: [{ route: 'bulk', outcome: 'ok' }],
  most: 5,
  settings: { PARTNER_BULK_BODY_KEY: 'items' },
  unknown: ['price of a live entry'],
};

function pathsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) {
    const inside = [...new Set(value.flatMap((item) => pathsOf(item, `${path}[]`)))];
    return inside.length === 0 ? [`${path}[]`] : inside;
  }
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, member]) =>
    pathsOf(member, path === '' ? name : `${path}.${name}`),
  );
}

test('doctor --json has exactly the members that docs/doctor.md documents', () => {
  const page = readFileSync(new URL('../../docs/doctor.md', import.meta.url), 'utf8');
  const [, section = ''] = page.split('`doctor --json` prints one object');
  const [table = ''] = section.split('\n#');
  const documented = table
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''));
  expect(pathsOf(reportJson(REPORT)).toSorted()).toEqual(documented.toSorted());
});

test('the screen shows each remedy below its fault, and its settings form an environment file', () => {
  const screen = screenOf(REPORT, { width: null, colour: false, ascii: false });
  expect(screen.split('\n')).toEqual([
    'FAIL bulk body        the partner reads `items`',
    '                      → set it',
    'OK   writes           taken',
    '',
    '# settings to pin',
    'PARTNER_BULK_BODY_KEY=items',
    '',
    '# not determined',
    '# price of a live entry',
    '',
    '1 FAIL, 0 WARN; 1 of at most 5 requests sent: bulk',
  ]);
});

test('no line is wider than the terminal', () => {
  const screen = screenOf(REPORT, { width: 40, colour: false, ascii: true });
  expect(Math.max(...screen.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
});

test('a setting is printed unquoted, as every reader of environment files takes it', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '.', ' ', "'", '"', '#', '=', '$', 'é'), minLength: 1 }),
      (value) => {
        const line = envLine('X', value);
        if (line === null) expect(value).toMatch(/^['" ]| $|\$| #/);
        else expect([line, parseEnvFile(line).values.get('X')]).toEqual([`X=${value}`, value]);
      },
    ),
  );
  for (const value of ['lowest price', 'a#b', '#a']) expect(envLine('X', value)).toBe(`X=${value}`);
});

test('a value that such readers take differently is left out', () => {
  for (const value of [' a', 'a ', "'a'", '"a', 'a\\b', 'a\nb', '$a', 'a$$b', 'a #b', 'a\u00a0#b', ''])
    expect(envLine('X', value)).toBeNull();
});
