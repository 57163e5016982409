import { strictEqual } from 'node:assert/strict';
import { array, assert, constantFrom, property } from 'fast-check';
import { Redis } from 'ioredis';
import pg from 'pg';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../src/config/config.ts';
import { SETTINGS } from '../src/config/settings.ts';
import { sessionConnection } from '../src/store/connection/session.ts';
import { runs } from './support/soak.ts';

/** Returns the problems of these settings for a command that uses the mirror; null: none. */
function problemsOf(env: Record<string, string>, content: Record<string, string> = {}): string[] | null {
  try {
    loadConfig(env, (path) => content[path] ?? '', { need: 'database' });
    return null;
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n').slice(1);
    throw error;
  }
}

test.each([
  [
    'DATABASE_URL',
    [
      'postgres:///d?host=/run',
      'postgres://u:p@/d?host=/run&port=5433',
      'postgres://u:p@%2Frun%2Fpostgresql/d',
      'postgres://u:p%23ss@[::1]/d',
    ],
    [
      'postgres://u:pa#ss@h/d',
      'postgres://u:pa/ss@h/d',
      'postgres://u:50%off@h/d',
      'postgres://h:99999/d',
      // One of the two drivers tries the hosts one after the other, the other takes them for a single name.
      'postgres://u:p@a:5432,b:5433/d',
      'postgres://a,b/d?target_session_attrs=read-write',
      'postgres://a%2Cb/d',
      'postgres:///d?host=a,b',
      // Without brackets, the port could be any part at the end.
      'postgres://u:p@::1/d',
      'postgres://u:p@fd00::1:5432/d',
    ],
  ],
  [
    'REDIS_URL',
    ['redis://:p%23ss@[::1]:6379', 'rediss://u:p@h/1', 'redis://h/?family=0', 'rediss://h?sslmode=require'],
    [
      'redis://:pa#ss@h',
      'rediss://u:50%off@h',
      // No database number, or driver options that belong to the program.
      'redis://h/queues',
      'redis://h/1/2',
      'redis://h?db=1',
      'redis://h?maxRetriesPerRequest=3',
      'redis://h?keyPrefix=x',
      'redis://h?family=x',
    ],
  ],
])('%s accepts %j and rejects %j', (name, good, bad) => {
  expect(good.map((value) => problemsOf({ [name]: value }))).toEqual(good.map(() => null));
  expect(bad.filter((value) => problemsOf({ [name]: value }) === null)).toEqual([]);
});

test('a URL whose password is not percent-encoded is reported without it, even if it is in a file', () => {
  const encoded = 'special characters in user and password percent-encoded (# as %23, / as %2F, % as %25)';
  const problems = problemsOf(
    { DATABASE_URL: 'postgres://u:canary#x@h/d', REDIS_URL_FILE: '/run/redis' },
    { '/run/redis': 'redis://:canary%off@h\n' },
  );
  expect(problems).toEqual([
    `DATABASE_URL: expected a postgres:// or postgresql:// URL of one host (an IPv6 address in brackets) and of a database without ? and # in its name, ${encoded}`,
    `REDIS_URL_FILE: expected a file that holds a redis:// or rediss:// URL whose path is a database number or absent, without parameters but those of TLS and family (0, 4 or 6), ${encoded}, and nothing else, got "/run/redis"`,
  ]);
});

test('parameters that a driver would take for its own, or the two read differently, are rejected', () => {
  const problemOf = (query: string) =>
    problemsOf({ DATABASE_URL: `postgres://u:p@h/d?${query}` })?.join() ?? null;
  const own = Object.keys(postgres('postgres://h/d', { max: 1 }).options);
  const taken = own.filter((name) => problemOf(`${name}=1`)?.includes(`without the parameter ${name}`));
  expect(taken).toEqual(
    expect.arrayContaining(['database', 'max', 'idle_timeout', 'prepare', 'fetch_types', 'max_pipeline']),
  );
  expect(problemOf('target_session_attrs=writable')).toMatch(
    'target_session_attrs that is one of any, read-write',
  );
  expect(problemOf('prepare=false&max=1')).not.toContain('p@h');
  for (const query of [
    'target_session_attrs=any',
    'connect_timeout=5',
    'work_mem=1MB',
    'application_name=max',
  ])
    expect(problemOf(query)).toBeNull();
});

test('no parameter of DATABASE_URL overrides an option of its driver', () => {
  const plain = postgres('postgres://h/d', { max: 1 }).options;
  // Host and port are read from there on purpose.
  for (const name of Object.keys(plain).filter((each) => each !== 'host' && each !== 'port')) {
    if (problemsOf({ DATABASE_URL: `postgres://h/d?${name}=7` }) !== null) continue;
    const { url } = sessionConnection(`postgres://h/d?${name}=7`);
    const options = Object.entries(postgres(url, { max: 1, connect_timeout: 1 }).options);
    expect(options.filter(([, value]) => value === '7' || value === 7)).toEqual([]);
  }
});

function expectOneHost(hosts: readonly string[]): void {
  if (hosts.length > 1) throw new Error('several hosts');
}

/** Throws unless the name of the database can be read, and is the same for both drivers. */
function expectOneName(url: string): void {
  decodeURIComponent(URL.parse(url)?.pathname ?? '');
  const { url: connectionString, options: _, ...connection } = sessionConnection(url);
  if (connection.database === undefined) return;
  strictEqual(new pg.Client({ connectionString }).database, connection.database);
}

/** Throws unless Redis's driver takes only a database number from path and parameters. */
function expectDatabase(url: string): void {
  const { db = 0 } = new Redis(url, { lazyConnect: true }).options;
  const { pathname, search } = new URL(url);
  if (search !== '' || (pathname.length > 1 && pathname !== `/${db}`)) throw new Error('other options');
}

const drivers: Record<string, { scheme: string; read: (url: string) => unknown }> = {
  DATABASE_URL: {
    scheme: 'postgres',
    read: (url) => {
      expectOneHost(postgres(url, { max: 1 }).options.host);
      expectOneName(url);
    },
  },
  REDIS_URL: { scheme: 'redis', read: (url) => expectDatabase(url) },
};
test('text after an empty query is not taken for a host', () => {
  expect(problemsOf({ DATABASE_URL: 'postgres://?#,u' })).toBeNull();
  expect(problemsOf({ DATABASE_URL: 'postgres://#,u' })).not.toBeNull();
});

test.each(Object.entries(drivers))(
  '%s accepts exactly the URLs of one host that its driver can read',
  (name, driver) => {
    const piece = constantFrom(...'u : @ / ? # % , [ ] 1 . %23 %zz %E4 host a:1,b:2'.split(' '));
    assert(
      property(array(piece, { minLength: 1, maxLength: 12 }), (pieces) => {
        const url = `${driver.scheme}://${pieces.join('')}`;
        let isRead = true;
        try {
          driver.read(url);
        } catch {
          isRead = false;
        }
        expect([url, problemsOf({ [name]: url }) === null]).toEqual([url, isRead]);
      }),
      { numRuns: runs(100, 500) },
    );
  },
);

const HTTP_HOST = SETTINGS.HTTP_HOST.rule;

test('HTTP_HOST accepts a name or an address, without a port', () => {
  const hostOf = (text: string) => HTTP_HOST.safeParse(text).data;
  for (const text of ['::', '::1', 'fe80::1%eth0', 'localhost', 'Mirror_1.example.'])
    expect(hostOf(text)).toBe(text);
  expect(hostOf('[::1]')).toBe('::1');
  for (const text of ['0.0.0.0:9464', '[::1]:9464', '[localhost]', '*', ':9464', 'localhost:9464', '::g'])
    expect([text, hostOf(text)]).toEqual([text, undefined]);
});

test('a base URL that ends with the prefix of every route is a warning', () => {
  const warned = (PARTNER_BASE_URL: string) =>
    loadConfig({ PARTNER_BASE_URL, PARTNER_API_KEY: 'k', PARTNER_SECRET: 's' }, () => '').warnings;
  const told = ['PARTNER_BASE_URL ends in /partner, which every route adds: leave it out'];
  expect(['https://h/partner', 'https://h/v1/partner/'].map(warned)).toEqual([told, told]);
  expect(['https://h/partners', 'https://h/partner/v1', 'https://partner'].flatMap(warned)).toEqual([]);
});
