import { expect, test } from 'vitest';
import { type CheckResult, judgeSkew } from '../../src/cli/doctor/check.ts';
import { judgeEnvironment, judgeSettings, judgeShare } from '../../src/cli/doctor/configuration.ts';
import { judgeCertificate, judgeEncryption } from '../../src/cli/doctor/connection.ts';
import { UNDAMAGED } from '../../src/cli/doctor/damage.ts';
import type { PostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';
import { judgePostgres } from '../../src/cli/doctor/postgres.ts';
import { judgeRedis } from '../../src/cli/doctor/redis.ts';
import { loadConfig } from '../../src/config/config.ts';
import { lintCredential, isBasicPair } from '../../src/config/secrets.ts';

const bad = (findings: readonly CheckResult[]) =>
  findings.filter(({ level }) => level !== 'OK').map(({ level, check }) => `${level} ${check}`);

const GOOD: PostgresFacts = {
  versionNumber: 160_004,
  version: '16.4',
  encoding: 'UTF8',
  role: 'mirror',
  login: 'mirror',
  database: 'shop',
  inRecovery: false,
  readOnly: false,
  readOnlyBy: 'default',
  writeProblem: null,
  mayCreate: true,
  mayTemp: true,
  mayCreateRoles: true,
  hasReader: true,
  hasWatcher: true,
  rightsWhole: true,
  migrated: true,
  queueTablesCurrent: true,
  queueLacking: [],
  owns: true,
  occupied: [],
  roles: [],
  creators: [],
  pending: 0,
  unknown: 0,
  connectionsMost: 100,
  connectionsOthers: 10,
  connectionLimit: null,
  locksMost: 6400,
  historyChunks: 2,
  daemons: 1,
  pooling: { kept: 'session', dropped: [], role: 'mirror', database: 'shop' },
  aheadMs: 20,
  snapshotHolder: null,
  lockHolders: [],
  lacking: [],
  misowned: [],
  acting: 'mirror',
  neighbours: [],
  eventTriggers: [],
  unchangeable: [],
  damage: UNDAMAGED,
  seesSessions: true,
};

test.each<[string, Partial<PostgresFacts>, string[]]>([
  ['all well', {}, []],
  ['an encoding that has not all characters', { encoding: 'WIN1252' }, ['FAIL postgres encoding']],
  ['an old server', { versionNumber: 130_012 }, ['FAIL postgres']],
  [
    'privileges that are gone',
    { lacking: [{ kind: 'table', name: 'catalog.prices', privileges: ['INSERT'] }] },
    ['FAIL rights'],
  ],
  [
    'tables of another role, which has its own line',
    { owns: false, lacking: [{ kind: 'table', name: 'catalog.prices', privileges: ['INSERT'] }] },
    ['FAIL rights'],
  ],
  [
    'a snapshot that is held for an hour',
    {
      snapshotHolder: {
        kind: 'session',
        pid: 7,
        role: 'bi',
        name: 'report',
        seconds: 3600,
        transactions: 9,
        deadVersions: 0,
      },
    },
    ['WARN snapshots'],
  ],
  [
    'triggers and foreign keys of others, all with an index',
    {
      neighbours: [
        { kind: 'trigger', name: 'mine', table: 'catalog.prices', by: 'public.mine', indexed: null },
        { kind: 'foreign-key', name: 'fk', table: 'catalog.skus', by: 'public.orders', indexed: true },
      ],
    },
    [],
  ],
  [
    'a foreign key without an index',
    {
      neighbours: [
        { kind: 'foreign-key', name: 'fk', table: 'catalog.skus', by: 'public.orders', indexed: false },
      ],
    },
    ['WARN foreign keys'],
  ],
  ['a pooler', { pooling: { ...GOOD.pooling, kept: 'transaction' } }, ['FAIL postgres pooler']],
  [
    'a pooler that drops settings',
    { pooling: { ...GOOD.pooling, dropped: [{ name: 'search_path', value: 'pg_catalog' }] } },
    ['FAIL postgres pooler'],
  ],
  ['a standby', { inRecovery: true }, ['FAIL writes']],
  ['read-only', { readOnly: true }, ['FAIL writes']],
  [
    'a full disk',
    { writeProblem: { said: 'could not extend file (53100)', kind: 'disk-full', remedy: null } },
    ['FAIL writes'],
  ],
  ['no rights yet', { migrated: false, mayCreate: false }, ['FAIL rights']],
  ['no right to migrate further', { mayCreate: false, pending: 1 }, ['WARN rights', 'WARN migrations']],
  ['no right any more, and nothing to create', { mayCreate: false }, []],
  [
    'no right any more, and queues without tables',
    { mayCreate: false, queueTablesCurrent: false },
    ['FAIL rights'],
  ],
  ['connections for one daemon', { connectionsMost: 20, connectionsOthers: 8 }, []],
  ['a history of as many chunks as there are locks for', { locksMost: 6400, historyChunks: 66 }, []],
  ['a history of more', { locksMost: 6400, historyChunks: 67 }, ['WARN locks']],
  [
    'a limit that is enough for one daemon',
    { connectionsMost: 12, connectionsOthers: 0, connectionLimit: 12 },
    [],
  ],
  [
    'a limit of the role or the database for which a start is refused',
    { connectionsMost: 11, connectionsOthers: 0, connectionLimit: 11 },
    ['FAIL connections'],
  ],
  ['too few connections', { connectionsMost: 20, connectionsOthers: 9 }, ['WARN connections']],
  ['tables of another role', { owns: false }, ['FAIL rights']],
  [
    'no roles, and no right to make them',
    { hasReader: false, mayCreateRoles: false, migrated: false },
    ['WARN roles'],
  ],
  ['roles that will be made', { hasReader: false, hasWatcher: false, migrated: false }, []],
  [
    'a schema of another application',
    { migrated: false, occupied: [{ kind: 'schema-of-another', text: '', remedy: '' }] },
    ['WARN migrations', 'FAIL schemas'],
  ],
  [
    'a role that is more than a reader, before the first start',
    {
      migrated: false,
      occupied: [{ kind: 'role-of-another', text: '', remedy: '' }],
      roles: [{ role: 'catalog_reader', powers: ['SUPERUSER'], canLogin: true, members: [] }],
    },
    ['FAIL roles', 'WARN migrations'],
  ],
  [
    'a role that has become more than a reader since',
    { roles: [{ role: 'catalog_reader', powers: ['SUPERUSER'], canLogin: false, members: [] }] },
    ['WARN roles'],
  ],
  [
    'a role that logs in',
    { roles: [{ role: 'catalog_watcher', powers: [], canLogin: true, members: [] }] },
    ['WARN roles'],
  ],
  [
    'roles that others have already',
    { migrated: false, roles: [{ role: 'catalog_reader', powers: [], canLogin: false, members: ['bi'] }] },
    [],
  ],
  [
    'others who may create where nothing of ours is',
    { creators: [{ place: 'schema public', ours: false, roles: ['PUBLIC'] }] },
    [],
  ],
  [
    'others who may create among what is ours',
    { creators: [{ place: 'schema catalog', ours: true, roles: ['shop'] }] },
    ['WARN creators'],
  ],
  [
    'others who could make our schemas before us',
    { migrated: false, creators: [{ place: 'the database', ours: false, roles: ['shop'] }] },
    ['WARN creators'],
  ],
  ['a later version', { unknown: 2 }, ['FAIL migrations']],
  ['a clock that is off', { aheadMs: -90_000 }, ['WARN postgres clock']],
])('Postgres: %s', (_name, facts, expected) => {
  const settings = { url: 'postgres://127.0.0.1/shop', queues: 'postgres' as const, poolMax: 12 };
  expect(bad(judgePostgres({ ...GOOD, ...facts }, settings)).toSorted()).toEqual(expected.toSorted());
});

test.each<[string, string, string | null]>([
  ['clear text', 'postgres://u:p@db.example.com/x', 'WARN'],
  ['encrypted and unchecked', 'postgres://u:p@db.example.com/x?sslmode=require', 'WARN'],
  ['checked', 'postgres://u:p@db.example.com/x?sslmode=verify-full', 'OK'],
  ['this host', 'postgres://u:p@localhost/x', null],
  ['a Unix socket', 'postgres://u:p@/x?host=/run/postgresql', null],
  ['a Unix socket in the host’s place', 'postgres://u:p@%2frun%2fpostgresql/x', null],
  ['a Redis in clear text', 'redis://cache.example.com', 'WARN'],
  ['a Redis by TLS', 'rediss://cache.example.com', 'OK'],
])('encryption: %s', (_name, url, level) => {
  expect(judgeEncryption('tls', 'X', url)?.level ?? null).toBe(level);
});

const DAY = 86_400_000;
test('a certificate that ends within two weeks is a warning', () => {
  expect([13, 15].map((days) => judgeCertificate(days * DAY, 0).level)).toEqual(['WARN', 'OK']);
});

test('clocks may differ by a minute', () => {
  expect([500, -59_000, 61_000].map((ms) => judgeSkew('clock', 'x', ms).level)).toEqual(['OK', 'OK', 'WARN']);
  expect(judgeSkew('clock', 'x', -90_000).text).toBe('90 s ahead of x');
});

const INFO = 'redis_version:7.0.1\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n';
test.each<[string, string, string[]]>([
  ['all well', INFO, []],
  ['evicts', INFO.replace('noeviction', 'allkeys-lru'), ['FAIL redis policy']],
  ['keeps nothing', INFO.replace('aof_enabled:1', 'aof_enabled:0'), ['WARN redis aof']],
  ['cannot write', `${INFO}aof_last_write_status:err\r\n`, ['FAIL redis aof']],
  ['a replica', INFO.replace('master', 'slave'), ['FAIL redis role']],
  ['too old', INFO.replace('7.0.1', '4.0.0'), ['FAIL redis']],
  ['rather old', INFO.replace('7.0.1', '6.0.9'), ['WARN redis']],
  ['a cluster', `${INFO}cluster_enabled:1\r\n`, ['FAIL redis cluster']],
])('Redis: %s', (_name, info, expected) => {
  for (const prefix of ['catalog-mirror', '{catalog-mirror}'])
    expect(bad(judgeRedis(info, prefix))).toEqual(expected);
});

test.each<[string, Record<string, string>, number]>([
  ['the defaults', {}, 0],
  ['the whole limit', { PARTNER_RATE_SHARE: '1' }, 1],
  ['a floor above the share', { PARTNER_RATE_SHARE: '0.1' }, 1],
  ['a limit beyond the documented', { PARTNER_RATE_LIMIT: '500' }, 1],
  ['the documented limit by another window', { PARTNER_RATE_LIMIT: '20', PARTNER_RATE_WINDOW: '6s' }, 0],
])('the request share: %s', (_name, env, warnings) => {
  const config = loadConfig(env, () => '', { need: 'database' });
  expect(bad(judgeShare(config, 0))).toHaveLength(warnings);
});

test('the line about the request share gives what the defaults come to', () => {
  const [line] = judgeShare(
    loadConfig({}, () => '', { need: 'database' }),
    7,
  );
  expect(line?.text).toBe(
    "118 requests per minute of the account's 200, at least 40 while other services use theirs; other services have used 7",
  );
});

test.each<[string, string[]]>([
  ['good', []],
  ['good\n', ['ends in a newline']],
  ['good\r\n', ['ends in a newline (CR LF)']],
  ['good\r', ['ends in a carriage return (CR)']],
  ['go\nod', ['has more than one line']],
  [' good', ['begins or ends in white space']],
  ["'good'", ['is wrapped in quotes']],
  ['a"b"', []],
  ['Basic Z29vZA==', ['begins with "Basic ": give only the value, the header is built from it']],
  ['go\u0000od', ['contains a control character']],
])('a damaged value: %j', (text, found) => {
  expect(lintCredential(text)).toEqual(found);
});

test('base64 of api_key and secret is recognised', () => {
  expect(isBasicPair(btoa('key:secret'), 'key')).toBe(true);
  expect(isBasicPair(btoa('other:secret'), 'key')).toBe(false);
});

test('a backslash in a file that systemd may read is a warning, with a portable remedy', () => {
  const env = { PARTNER_SECRET: 'ab\\canary', MIRROR_NAME: 'shop\\a' };
  const found = judgeEnvironment(['a misspelt name'], env, () => 'mirror.env');
  expect(found.map(({ level, remedy }) => [level, remedy])).toEqual([
    ['WARN', 'correct its name or its value, or remove the variable'],
    ['WARN', 'for systemd, give it by PARTNER_SECRET_FILE'],
    ['WARN', 'for systemd, write it twice'],
  ]);
  expect(JSON.stringify(found)).not.toContain('canary');
  expect(judgeEnvironment([], env, () => null)).toEqual([]);
});

test('a variable that Node.js reads before the program is reported only if a file sets it', () => {
  const env = { NODE_OPTIONS: '--max-old-space-size=512', NODE_ENV: 'production' };
  const [found, ...others] = judgeEnvironment([], env, () => 'mirror.env');
  expect([found?.text, others]).toEqual([
    'NODE_OPTIONS of mirror.env is ignored: Node.js reads it before it starts the program',
    [],
  ]);
  expect(judgeEnvironment([], env, () => null)).toEqual([]);
  expect(judgeEnvironment([], {}, () => 'mirror.env')).toEqual([]);
});

test('differing settings of a daemon are a warning, but only while one runs', () => {
  expect(bad(judgeSettings(['DELTA_INTERVAL', 'SWEEP_INTERVAL'], 1))).toEqual(['WARN settings']);
  expect(judgeSettings(['DELTA_INTERVAL', 'SWEEP_INTERVAL'], 1)[0]?.text).toContain(
    'DELTA_INTERVAL, SWEEP_INTERVAL',
  );
  expect(judgeSettings(['DELTA_INTERVAL'], 0)).toEqual([]);
  expect(judgeSettings([], 2)).toEqual([]);
});

test('Postgres: missing privileges are named, with the GRANT', () => {
  const lineOf = (tables: readonly string[]) =>
    judgePostgres(
      { ...GOOD, lacking: tables.map((name) => ({ kind: 'table', name, privileges: ['SELECT', 'INSERT'] })) },
      { url: null, queues: 'redis', poolMax: 12 },
    ).find(({ level }) => level === 'FAIL');
  expect(lineOf(['catalog.prices'])).toMatchObject({
    text: "the mirror's role lacks SELECT, INSERT on catalog.prices",
    remedy: 'GRANT SELECT, INSERT ON catalog.prices TO "mirror"',
  });
  expect(lineOf(['catalog.a', 'catalog.b', 'catalog.c', 'catalog.d', 'catalog.e'])).toMatchObject({
    text: expect.stringMatching(/on catalog\.c, and privileges on 2 more tables$/),
    remedy: expect.stringMatching(
      /^GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA catalog TO "mirror"$/,
    ),
  });
});
