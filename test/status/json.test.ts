import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { asJson } from '../../src/status/json.ts';
import { MIRROR_STATES, REASON_CODES } from '../../src/status/reason.ts';
import { EVERYTHING, healthOf, NOW } from './cases.ts';

/** Returns the paths of all members, such as `due[].reason` and `backlog.because[]`. */
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

function documented(): string[] {
  const page = readFileSync(new URL('../../docs/status.md', import.meta.url), 'utf8');
  const [, section = ''] = page.split('`status --json` prints one object.');
  const [table = ''] = section.split('\n## ');
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
  );
}

const json = () =>
  JSON.parse(JSON.stringify(asJson(EVERYTHING, healthOf(EVERYTHING), NOW))) as Record<string, unknown>;

test('status --json has exactly the members that docs/status.md documents', () => {
  expect(documented().length).toBeGreaterThan(50);
  expect(pathsOf(json()).toSorted()).toEqual(documented().toSorted());
});

test('docs/status.md names every state and every reason', () => {
  const page = readFileSync(new URL('../../docs/status.md', import.meta.url), 'utf8');
  const named = [...page.matchAll(/^\| ((?:`[a-z-]+`(?:, )?)+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name),
  );
  expect(named).toEqual(expect.arrayContaining([...MIRROR_STATES, ...REASON_CODES]));
});

test('times are ISO 8601 and numbers are numbers', () => {
  expect(json()).toMatchObject({
    state: 'paused',
    at: '2026-11-21T12:00:00.000Z',
    deltaCheckedAt: '2026-11-21T11:58:20.000Z',
    backlog: { owed: 70, sure: 'rough' },
    daemons: 1,
  });
});
