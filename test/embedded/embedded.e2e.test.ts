import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findPlatformPackage, prepareBinaries } from '../../src/embedded/binaries.ts';
import { chooseAccount } from '../../src/embedded/command.ts';
import { ownerOf } from '../../src/embedded/data-dir.ts';
import { startWatchdog } from '../../src/embedded/owner.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { clusterProcesses } from '../../src/embedded/processes.ts';
import type { EmbeddedLog } from '../../src/embedded/reports.ts';
import { startServer } from '../../src/embedded/server.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { allGone, FAST, query, startHere, temporaryFolder, watchdogsOf } from './harness.ts';

const ignore = () => {};

describe('a cluster', () => {
  test('keeps its data over a restart', async () => {
    const dataDir = join(await temporaryFolder(), 'state', 'pg');
    const first = await startHere(dataDir);
    await query(first.url, 'create table kept as select 42 as answer');
    await first.stop();
    expect(await clusterProcesses(dataDir)).toEqual([]);

    const second = await startHere(dataDir);
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('is UTF8 with the builtin C.UTF-8, whatever the locale around it', async () => {
    const { url } = await startHere(join(await temporaryFolder(), 'pg'));
    expect(
      await query(
        url,
        `select pg_encoding_to_char(encoding) as encoding, datlocprovider as provider, datlocale as locale
         from pg_database where datname = 'template1'`,
      ),
    ).toEqual([{ encoding: 'UTF8', provider: 'b', locale: 'C.UTF-8' }]);
    expect(await query(url, `select upper('ä') as upper, length('ก็') as length`)).toEqual([
      { upper: 'Ä', length: 2 },
    ]);
  });

  test('takes the settings it is given, and is durable without any', async () => {
    const folder = await temporaryFolder();
    const show = `select name, setting from pg_settings
      where name in ('fsync', 'max_connections', 'unix_socket_directories', 'logging_collector') order by name`;
    const plain = await startHere(join(folder, 'plain'), { settings: {} });
    expect(await query(plain.url, show)).toEqual([
      { name: 'fsync', setting: 'on' },
      { name: 'logging_collector', setting: 'on' },
      { name: 'max_connections', setting: '100' },
      { name: 'unix_socket_directories', setting: '' },
    ]);
    await plain.stop();
    const tuned = await startHere(join(folder, 'tuned'), { settings: { ...FAST, max_connections: '17' } });
    expect(await query(tuned.url, show)).toContainEqual({ name: 'max_connections', setting: '17' });
    expect(await query(tuned.url, show)).toContainEqual({ name: 'fsync', setting: 'off' });
  });

  test('requires the password, which is stored beside it and readable only by its owner', async () => {
    const folder = await temporaryFolder();
    const { url } = await startHere(join(folder, 'pg'));
    const password = (await readFile(join(folder, 'pg.password'), 'utf8')).trim();
    expect(new URL(url).password).toBe(password);
    const { mode, uid } = await stat(join(folder, 'pg.password'));
    expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o600, uid: process.geteuid?.() });
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  test('listens only on the loopback address', async () => {
    const { url } = await startHere(join(await temporaryFolder(), 'pg'));
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((address) => address && !address.internal && address.family === 'IPv4')?.address;
    expect(await query(url, 'show listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
    if (outside === undefined) return;
    const elsewhere = new URL(url);
    elsewhere.hostname = outside;
    await expect(query(elsewhere.href, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a running server', () => {
  test('listens on the requested port every time, or on a free one if another server has it', async () => {
    const folder = await temporaryFolder();
    // Below the range that the system assigns.
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const portOf = ({ url }: { readonly url: string }) => Number(new URL(url).port);
    const first = await startHere(join(folder, 'first'), { port });
    expect(portOf(first)).toBe(port);
    const second = await startHere(join(folder, 'second'), { port });
    expect(portOf(second)).not.toBe(port);
    await first.stop();
    expect(portOf(await startHere(join(folder, 'first'), { port }))).toBe(port);
  });

  test('is stopped once, however often that is requested, and frees the directory', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const server = await startHere(dataDir);
    const busy = query(server.url, 'select pg_sleep(600)').catch((error: unknown) => error);
    await waitForSleeper(server.url);
    await Promise.all([server.stop(), server.stop(), server[Symbol.asyncDispose]()]);
    expect(await busy).toBeInstanceOf(Error);
    expect(await clusterProcesses(dataDir)).toEqual([]);
    await startHere(dataDir);
  });

  test('that dies by itself is reported, stopped, and recovers', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const died = Promise.withResolvers<Record<string, unknown>>();
    const server = await startHere(dataDir, {
      log: (event, detail) => event === 'embedded.server-died' && died.resolve(detail),
    });
    await query(server.url, 'create table kept as select 1 as one');
    process.kill(server.pid, 'SIGKILL');
    expect(await died.promise).toEqual({ pid: server.pid, status: 'SIGKILL' });
    await server.stop();
    const again = await startHere(dataDir);
    expect(await query(again.url, 'select one from kept')).toEqual([{ one: 1 }]);
  });

  async function waitForSleeper(url: string): Promise<void> {
    const count = `select count(*)::int as n from pg_stat_activity where query like 'select pg_sleep%' and pid <> pg_backend_pid()`;
    await eventually(async () => expect(await query(url, count)).toEqual([{ n: 1 }]));
  }
});

describe('a start with problems', () => {
  test('replaces a port that another program has taken', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    await (await startHere(dataDir)).stop();

    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const address = other.address();
    const taken = typeof address === 'object' && address ? address.port : 0;
    const account = chooseAccount({
      euid: process.geteuid?.() ?? 0,
      passwd: await readFile('/etc/passwd', 'utf8'),
      clusterOwner: await ownerOf(dataDir),
    });
    const packageFolder = findPlatformPackage();
    const copyFolder = join(await temporaryFolder(), 'system');
    const binaries = await prepareBinaries({ packageFolder, account, copyFolder, log: ignore });
    const events: string[] = [];
    const watchdog = startWatchdog(dataDir, ignore);
    let picks = 0;
    const server = await startServer(
      {
        home: dataDir,
        startupLog: `${dataDir}.startup.log`,
        binaries,
        account,
        settings: FAST,
        startTimeoutMs: 30_000,
      },
      {
        watchdog,
        clock: systemClock,
        log: (event) => events.push(event),
        pickPort: async () => (picks++ === 0 ? taken : 20_000 + Math.floor(Math.random() * 10_000)),
      },
    );
    try {
      expect(events).toEqual(['embedded.port-lost']);
      expect(server.port).not.toBe(taken);
    } finally {
      await server.stop();
      await watchdog.dismiss();
    }
  });

  test('reports a killed watchdog once, and a dismissed one never', async () => {
    const dataDir = await temporaryFolder();
    const events: unknown[] = [];
    const log: EmbeddedLog = (event, detail) => events.push([event, detail]);
    await startWatchdog(dataDir, log).dismiss();
    const watchdog = startWatchdog(dataDir, log);
    process.kill(Number(watchdog.pid), 'SIGKILL');
    await eventually(() => expect(events).toEqual([['embedded.watchdog-lost', { pid: watchdog.pid }]]));
    await watchdog.dismiss();
    expect(events).toHaveLength(1);
  });

  test('reports what the server refuses, and leaves nothing behind', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    await expect(
      startEmbeddedPostgres({ dataDir, settings: { shared_buffers: 'lots' } }),
    ).rejects.toMatchObject({
      kind: 'start-failed',
      message: expect.stringContaining('shared_buffers'),
    });
    expect(await clusterProcesses(dataDir)).toEqual([]);
    expect(await watchdogsOf(dataDir)).toEqual([]);
    await startHere(dataDir);
    expect(await watchdogsOf(dataDir)).toHaveLength(1);
  });

  test('stops a server that is not ready in time', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const first = await startHere(dataDir);
    await first.stop();
    // A standby that accepts no readers waits for its primary forever.
    await writeFile(join(dataDir, 'standby.signal'), '');
    const settings = { ...FAST, hot_standby: 'off', restore_command: 'sleep 60' };
    await expect(startEmbeddedPostgres({ dataDir, settings, startTimeoutMs: 500 })).rejects.toMatchObject({
      kind: 'start-failed',
      message: expect.stringContaining('was not ready in time'),
    });
    // Its children end after it.
    await eventually(async () => expect(await clusterProcesses(dataDir)).toEqual([]));
  });

  test('repeats an initdb that was cut off', async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'pg', 'base'), { recursive: true });
    await writeFile(join(folder, 'pg', 'PG_VERSION'), '18\n');
    await writeFile(join(folder, 'pg.initializing'), '');
    const { url } = await startHere(join(folder, 'pg'));
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test.each([
    ['files of somebody else', 'data-dir', { 'holiday.jpg': '' }],
    ['a cluster of another major version', 'incompatible-version', { PG_VERSION: '15\n' }],
    ['a cluster whose password is lost', 'password-missing', { PG_VERSION: '18\n' }],
  ])('refuses %s, and changes nothing', async (_name, kind, files) => {
    const dataDir = join(await temporaryFolder(), 'pg');
    for (const part of ['base', 'global'])
      if ('PG_VERSION' in files) await mkdir(join(dataDir, part), { recursive: true });
    await mkdir(dataDir, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(dataDir, name), text);
    await expect(startEmbeddedPostgres({ dataDir, settings: FAST })).rejects.toMatchObject({ kind });
    for (const [name, text] of Object.entries(files)) {
      expect(await readFile(join(dataDir, name), 'utf8')).toBe(text);
    }
  });

  test('refuses a link to a folder that does not exist', async () => {
    const folder = await temporaryFolder();
    await symlink(join(folder, 'gone'), join(folder, 'pg'));
    await expect(startEmbeddedPostgres({ dataDir: join(folder, 'pg') })).rejects.toMatchObject({
      kind: 'data-dir',
    });
  });

  test("clears a stale postmaster.pid with another process's pid, and leaves that process alone", async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const first = await startHere(dataDir);
    const pidFile = await readFile(join(dataDir, 'postmaster.pid'), 'utf8');
    await first.stop();
    // This test's own pid: had it been signalled, nobody would be here to see the server start.
    await writeFile(join(dataDir, 'postmaster.pid'), pidFile.replace(/^\d+/, String(process.pid)));
    const events: string[] = [];
    const second = await startHere(dataDir, { log: (event) => events.push(event) });
    expect(events).toContain('embedded.stale-pid-file-removed');
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('ignores a postmaster.pid whose process is dead', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const first = await startHere(dataDir);
    process.kill(first.pid, 'SIGKILL');
    await first.stop();
    expect(await allGone(dataDir)).toBe(true);
    expect(await stat(join(dataDir, 'postmaster.pid'))).toBeDefined();
    const second = await startHere(dataDir);
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});
