import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chooseCluster } from '../../src/cli/mirror.ts';
import {
  findEmbeddedPostgres,
  type FoundCluster,
  startEmbeddedPostgres,
} from '../../src/embedded/postgres.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { connect } from '../../src/store/connection/db.ts';
import { noteAccount } from '../../src/store/setup/account.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { applied, everything, versionBefore } from '../migrations/support.ts';
import { createDatabase } from '../support/db.ts';
import { runProgram, startProgram, temporaryFolder } from '../support/process.ts';

const NONE: FoundCluster = { state: 'none' };
const STOPPED: FoundCluster = { state: 'stopped' };
const RUNNING: FoundCluster = { state: 'running', url: 'postgres://127.0.0.1:1/postgres' };

test.each([
  [NONE, NONE, null],
  [STOPPED, NONE, 'daemon'],
  [NONE, STOPPED, 'demo'],
  [STOPPED, STOPPED, 'daemon'],
  [STOPPED, RUNNING, 'demo'],
  [RUNNING, STOPPED, 'daemon'],
  [RUNNING, RUNNING, 'daemon'],
])('of a daemon’s Postgres (%j) and a demo’s (%j), commands choose that of the %s', (daemon, demo, owner) => {
  const chosen = chooseCluster([
    { owner: 'daemon', dataDir: 'a', found: daemon },
    { owner: 'demo', dataDir: 'b', found: demo },
  ]);
  expect(chosen?.owner ?? null).toBe(owner);
});

describe.concurrent('without DATABASE_URL, where nothing was ever started,', () => {
  test.for([
    ['status'],
    ['status', '--json'],
    ['refresh', '--all'],
    ['refresh', 'DD1391-100'],
    ['plan'],
    ['sql', 'select 1'],
    ['migrate'],
  ])('%j says what is missing, exits with 78 and creates nothing', async (args, context) => {
    const cwd = await temporaryFolder(context.onTestFinished);
    const ran = await runProgram(args, { DATABASE_URI: 'postgres://canary' }, { cwd });
    context.expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 78, stdout: '' });
    context.expect(ran.stderr).toContain('DATABASE_URL is not set');
    context.expect(ran.stderr).toContain('did you mean DATABASE_URL?');
    context.expect(ran.stderr).toContain(join(cwd, '.catalog-mirror'));
    context.expect(ran.stderr).not.toContain('canary');
    context.expect(await readdir(cwd)).toEqual([]);
  });

  test('doctor checks everything else, says where `run` will keep the mirror, and creates nothing', async ({
    expect,
    onTestFinished,
  }) => {
    const cwd = await temporaryFolder(onTestFinished);
    const sandbox = await startSandbox({ skus: 60, seed: 71 });
    onTestFinished(() => sandbox.close());
    const ran = await runProgram(
      ['doctor'],
      {
        PARTNER_BASE_URL: sandbox.url,
        PARTNER_API_KEY: sandbox.apiKey,
        PARTNER_SECRET: sandbox.secret,
      },
      { cwd },
    );
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
    expect(ran.stdout).toContain(`create an embedded Postgres in ${join(cwd, '.catalog-mirror/postgres')}`);
    expect(ran.stdout).toMatch(/^OK {3}credential/m);
    expect(await readdir(cwd)).toEqual([]);
  });
});

describe('migrate without DATABASE_URL', () => {
  test('migrates a daemon’s Postgres, running or not, and names it, but not a demo’s', async () => {
    const folder = await temporaryFolder();
    const env = { DATA_DIR: folder };
    const demo = await startEmbeddedPostgres({ dataDir: join(folder, 'demo', 'postgres') });
    await demo.stop();
    const refused = await runProgram(['migrate'], env);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 78, stdout: '' });
    expect(refused.stderr).toContain(`${folder} has no embedded Postgres of a daemon`);
    const dataDir = join(folder, 'postgres');
    const server = await startEmbeddedPostgres({ dataDir });
    expect(await runProgram(['migrate'], env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^in the running daemon in .*:\n[^]*^migrations applied$/m) as string,
    });
    await server.stop();
    const stopped = await runProgram(['migrate'], env);
    expect({ code: stopped.code, stderr: stopped.stderr }).toEqual({ code: 0, stderr: '' });
    expect(stopped.stdout).toContain(`in the stopped daemon in ${dataDir}:\nmigrations applied`);
    expect(await findEmbeddedPostgres(dataDir)).toEqual({ state: 'stopped' });
  });
});

describe('a Postgres whose daemon is stopped', () => {
  test('is not started by follow, which would block the daemon; with --once it is, for that long', async () => {
    const folder = await temporaryFolder();
    const dataDir = join(folder, 'postgres');
    const server = await startEmbeddedPostgres({ dataDir });
    await migrateDatabase(server.url);
    await server.stop();
    await using program = startProgram(['follow', '--name', 'shop'], { DATA_DIR: folder });
    expect(await program.exited).toMatchObject({ code: 1 });
    expect(program.stderr.join('\n')).toMatch(/is not running[^]*what to do: .*catalog-mirror run.*--once/);
    expect(program.stdout).toEqual([]);
    expect(await findEmbeddedPostgres(dataDir)).toEqual({ state: 'stopped' });
    expect(await runProgram(['follow', '--name', 'shop', '--once'], { DATA_DIR: folder })).toMatchObject({
      code: 0,
    });
    expect(await findEmbeddedPostgres(dataDir)).toEqual({ state: 'stopped' });
    // As the daemon does that starts later.
    await (await startEmbeddedPostgres({ dataDir })).stop();
  });
});

describe('a Postgres that has crashed', () => {
  test('is not taken for running because of its pid file, and is started to be read', async () => {
    const folder = await temporaryFolder();
    const dataDir = join(folder, 'demo', 'postgres');
    const server = await startEmbeddedPostgres({ dataDir });
    await migrateDatabase(server.url);
    expect(await findEmbeddedPostgres(dataDir)).toEqual({ state: 'running', url: server.url });
    await server.stop();
    // The pid of an existing process that is not Postgres.
    await writeFile(join(dataDir, 'postmaster.pid'), `${process.pid}\n${dataDir}\n0\n1\n\n127.0.0.1\n`);
    expect(await findEmbeddedPostgres(dataDir)).toEqual({ state: 'stopped' });
    const ran = await runProgram(['status'], { DATA_DIR: folder });
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 2, stderr: '' });
    expect(ran.stdout).toMatch(/^broken: no baseline yet, and no daemon is running;.*\(the stopped demo in /);
    expect(await findEmbeddedPostgres(dataDir)).toEqual({ state: 'stopped' });
  });
});

describe('DATABASE_URL with an earlier-version mirror of another partner', () => {
  test.each([
    ['run', 'PARTNER_BASE_URL: expected https://partner.example'],
    [
      'demo',
      'DATABASE_URL: expected a database of the demo\'s own, got "the mirror of https://partner.example"',
    ],
  ])('is rejected by %s and left unchanged', async (command, told) => {
    const database = await createDatabase('empty');
    const sql = connect(database.url, { max: 1 });
    onTestFinished(async () => {
      await sql.end({ timeout: 1 });
      await database.drop();
    });
    const folder = versionBefore(await temporaryFolder(), '0042_parameters_and_corrections');
    await migrateDatabase(database.url, { folder });
    await noteAccount(sql, { baseUrl: 'https://partner.example', apiKey: 'key' });
    await sql`update catalog_internal.sync set manifest_applied_at = now()`;
    const before = [await applied(sql), await everything(sql)];
    const ran = await runProgram([command, '--once'], {
      DATABASE_URL: database.url,
      PARTNER_BASE_URL: 'https://staging.partner.example',
      PARTNER_API_KEY: 'key',
      PARTNER_SECRET: 'secret',
      HTTP_PORT: '0',
    });
    expect({ code: ran.code, told: ran.stderr }).toEqual({
      code: 78,
      told: expect.stringContaining(told) as string,
    });
    expect([await applied(sql), await everything(sql)]).toEqual(before);
  });
});

describe('DATABASE_URL with a mirror of a partner on this host', () => {
  // A tunnel to production, and a sandbox that a developer started.
  test.each(['key', 'sandbox-key'])('is not used by the demo: api_key %s', async (apiKey) => {
    const database = await createDatabase('migrated');
    onTestFinished(() => database.drop());
    const sql = connect(database.url, { max: 1 });
    onTestFinished(() => sql.end({ timeout: 1 }));
    await noteAccount(sql, { baseUrl: 'http://127.0.0.1:8443', apiKey });
    await sql`update catalog_internal.sync set manifest_applied_at = now()`;
    const before = await everything(sql);
    const ran = await runProgram(['demo', '--once', '--skus', '100'], {
      DATABASE_URL: database.url,
      HTTP_PORT: '0',
    });
    expect({ code: ran.code, told: ran.stderr }).toEqual({
      code: 78,
      told: expect.stringContaining(
        'DATABASE_URL: expected a database of the demo\'s own, got "the mirror of http://127.0.0.1"',
      ) as string,
    });
    expect(await everything(sql)).toEqual(before);
  });

  test('is used by the demo if a demo filled it, or nobody did', async () => {
    const database = await createDatabase('empty');
    onTestFinished(() => database.drop());
    for (const _ of ['first', 'same']) {
      const ran = await runProgram(['demo', '--once', '--skus', '100'], {
        DATABASE_URL: database.url,
        HTTP_PORT: '0',
      });
      expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
    }
  });
});

test('a start that cannot listen on its port migrates nothing', async () => {
  const database = await createDatabase('empty');
  onTestFinished(() => database.drop());
  const sql = connect(database.url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  const folder = versionBefore(await temporaryFolder(), '0042_parameters_and_corrections');
  await migrateDatabase(database.url, { folder });
  const before = await applied(sql);
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const ran = await runProgram(['run', '--once'], {
    DATABASE_URL: database.url,
    PARTNER_BASE_URL: 'https://partner.example',
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
    HTTP_PORT: String(port),
  });
  expect({ code: ran.code, told: ran.stderr }).toEqual({
    code: 1,
    told: expect.stringContaining(`cannot listen on 127.0.0.1 port ${port}`) as string,
  });
  expect(await applied(sql)).toEqual(before);
});

test('commands name essential rows that are missing, and migrate recreates them', async () => {
  const database = await createDatabase('migrated');
  onTestFinished(() => database.drop());
  const sql = connect(database.url, { max: 1 });
  onTestFinished(() => sql.end());
  await sql`truncate catalog_internal.sync, catalog_internal.settings, catalog_internal.promising`;
  const env = { DATABASE_URL: database.url };
  for (const args of [['status'], ['plan'], ['show', 'A']]) {
    const { code, stderr } = await runProgram(args, env);
    expect([args, code === 0, stderr]).toEqual([
      args,
      false,
      expect.stringContaining(
        'catalog_internal.promising, catalog_internal.settings, catalog_internal.sync',
      ) as string,
    ]);
    expect(stderr).toContain('`catalog-mirror migrate` makes them anew');
    expect(stderr).not.toMatch(/Cannot (?:read|destructure)|is not iterable|undefined/);
  }
  expect((await runProgram(['migrate'], env)).stdout).toContain('are made anew: catalog_internal.promising');
  expect((await runProgram(['status', '--json'], env)).stdout).toContain('"state"');
  expect((await runProgram(['migrate'], env)).stdout).not.toContain('anew');
});

test('if the database contains no mirror, commands say so and exit with 78', async () => {
  const database = await createDatabase('empty');
  onTestFinished(() => database.drop());
  for (const command of ['status', 'plan', 'pause', 'show A', 'verify', 'follow --list', 'refresh --all']) {
    const { code, stderr } = await runProgram(command.split(' '), { DATABASE_URL: database.url });
    expect([command, code, stderr]).toEqual([
      command,
      78,
      expect.stringMatching(/^the mirror has no tables yet\n/) as string,
    ]);
  }
});
