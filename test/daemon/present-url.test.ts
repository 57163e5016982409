import { expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { openDatabase, presentUrl } from '../../src/daemon/database.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

function setUp(first: string) {
  const file = { text: first };
  let value = first;
  let told = 0;
  const url = presentUrl(
    {
      read: () => value,
      refresh: () => {
        const isNew = value !== file.text;
        value = file.text;
        return isNew;
      },
    },
    () => (told += 1),
  );
  return { file, url, told: () => told };
}

test.each([
  ['postgres://u:p@h/db', 'postgres://v:q%40@h/db', 'postgres://v:q%40@h/db'],
  [
    'postgres://h/db?sslmode=require',
    'postgres://v:q@h/db?sslmode=require',
    'postgres://v:q@h/db?sslmode=require',
  ],
  ['postgres://u:p@h/db', 'postgres://h/db', 'postgres://h/db'],
])('the login of %s may become that of %s', (first, next, present) => {
  const { file, url, told } = setUp(first);
  expect(url()).toBe(first);
  file.text = next;
  expect([url(), told()]).toEqual([present, 0]);
});

test.each([
  'postgres://v:q@i/db',
  'postgres://v:q@h:5433/db',
  'postgres://v:q@h/other',
  'postgres://v:q@h/db?sslmode=require',
  'postgresql://v:q@i/db',
])('%s points elsewhere: only its login is used, and that is reported once', (next) => {
  const { file, url, told } = setUp('postgres://u:p@h/db');
  file.text = next;
  expect([url(), url()]).toEqual(['postgres://v:q@h/db', 'postgres://v:q@h/db']);
  expect(told()).toBe(1);
  file.text = 'postgres://u:p@h/db';
  expect([url(), told()]).toEqual(['postgres://u:p@h/db', 1]);
  file.text = next;
  expect([url(), told()]).toEqual(['postgres://v:q@h/db', 2]);
});

test('the log says that DATABASE_URL_FILE points elsewhere, and that a restart is needed to follow it', async () => {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(line) },
  });
  const urls = ['postgres://u:p@h/db', 'postgres://v:q@i/db'];
  const source = { read: () => urls[0] ?? '', refresh: () => urls.length > 1 && urls.shift() !== undefined };
  const { url } = await openDatabase(
    { database: { url: source, dataDir: '/nowhere' } } as Pick<Config, 'database'>,
    log,
  );
  expect(url()).toBe('postgres://v:q@h/db');
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 'warn', event: 'database.other-address', next: expect.stringContaining('Restart') as string },
  ]);
});
