import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { launchOf, NODE_FLAGS, OLDEST_NODE } from '../../src/launch.ts';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { type Env, expectStopped, runProgram, startProgram } from '../support/process.ts';
import { QUICK } from '../support/stack.ts';
import { consumerLock, type Lock } from './lock.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const json = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
const { name, version, bundleDependencies, optionalDependencies } = json('package.json') as {
  name: string;
  version: string;
  bundleDependencies: string[];
  optionalDependencies: Record<string, string>;
};

const systemFolders = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((path) => !path.includes('node_modules'));
/** PATH with this Node.js first, as if it were installed system-wide, and no other one from node_modules. */
const PATH = [dirname(process.execPath), ...systemFolders].join(delimiter);

/** What programs may import. */
const ENTRIES = ['follow', 'sandbox', 'schema', 'types'];

/** A program that uses a row of daily prices as declared. */
const DAYS = `import type { DailyPriceRow } from 'catalog-mirror/types';
import postgres from 'postgres';

const sql = postgres(process.env['DATABASE_URL'] ?? '');
const rows = await sql<DailyPriceRow[]>\`select * from catalog.daily_prices\`;
const days: Date[] = rows.map(({ day }) => day);
console.log(JSON.stringify(days.map((day) => [day instanceof Date, day])));
await sql.end();
`;

let folder: string;
let bin: string;
let files: string[];

/**
 * Packs what the repository would, without touching its `dist` or letting its scripts patch the node_modules of
 * other tests.
 */
async function pack(): Promise<string> {
  const stage = join(folder, 'stage');
  for (const path of ['package.json', '.env.example', 'README.md', 'CHANGELOG.md', 'LICENSE', 'drizzle'])
    cpSync(join(ROOT, path), join(stage, path), { recursive: true });
  for (const dependency of bundleDependencies)
    cpSync(join(ROOT, 'node_modules', dependency), join(stage, 'node_modules', dependency), {
      recursive: true,
    });
  // Files that somebody may have lying around.
  for (const path of ['.env', 'dist-old.js', 'ops/secrets/partner_secret', 'drizzle/notes.md']) {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), 'not for everyone');
  }
  await run(process.execPath, [join(ROOT, 'ops/program/main.ts'), join(stage, 'dist')]);
  await run(process.execPath, [join(ROOT, 'ops/declarations/main.ts'), join(stage, 'dist')]);
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: stage });
  return `${name}-${version}.tgz`;
}

/** Returns a Node.js on PATH that is too old for the program, or null. */
async function olderNode(): Promise<string | null> {
  for (const node of systemFolders.map((path) => join(path, 'node')).filter((path) => existsSync(path))) {
    const { stdout } = await run(node, ['--version']);
    if (launchOf(stdout, [], false) === 'too-old') return node;
  }
  return null;
}

/** Installs the tarball into an empty folder. npm's cache has everything from our own installation. */
async function install(tarball: string): Promise<string> {
  const lock = consumerLock(json('package-lock.json') as Lock, name, tarball, bundleDependencies);
  const { dependencies } = lock.packages[''] as { dependencies: Record<string, string> };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies }));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const options = ['--prefer-offline', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
  await run('npm', ['ci', ...options], { cwd: folder });
  return join(folder, 'node_modules/.bin', name);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-package-'));
  // If root runs the tests, the embedded Postgres runs as another user and has to pass through this folder.
  await chmod(folder, 0o711);
  const tarball = await pack();
  const { stdout } = await run('tar', ['-tzf', join(folder, tarball)]);
  files = stdout
    .trim()
    .split('\n')
    .map((file) => file.replace('package/', ''));
  bin = await install(tarball);
  // As with a user's own client; the package has its own copy.
  cpSync(join(ROOT, 'node_modules/postgres'), join(folder, 'node_modules/postgres'), { recursive: true });
}, 120_000);

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe.concurrent('the package', () => {
  test('contains the built program, its migrations, the patched driver, and nothing else', ({ expect }) => {
    const expected = [
      'package.json',
      '.env.example',
      'README.md',
      'CHANGELOG.md',
      'LICENSE',
      'drizzle/meta/_journal.json',
      ...globSync('drizzle/*.sql', { cwd: ROOT }),
      'dist/LICENSES.txt',
      'dist/bin.js',
      'dist/main.js',
      ...ENTRIES.flatMap((entry) => [`dist/client/${entry}.js`, `dist/client/${entry}.d.ts`]),
    ];
    const driver = files.filter((file) => file.startsWith('node_modules/postgres/'));
    const parts = files.filter((file) => /^dist\/parts\/[\w.-]+\.js$/.test(file));
    // Files of declarations that several entries share.
    const shared = files.filter((file) => /^dist\/client\/shared-[\w-]+\.d\.ts$/.test(file));
    const others = files.filter((file) => ![...driver, ...parts, ...shared].includes(file));
    expect(others.toSorted()).toEqual(expected.toSorted());
    // They need no other package's types, and contain no internal table.
    for (const file of files.filter((each) => /^dist\/.*\.d\.ts$/.test(each))) {
      const text = readFileSync(join(folder, 'node_modules', name, file), 'utf8');
      const from = [...text.matchAll(/\bfrom "([^"]+)"/g)].map(([, target = '']) => target);
      expect(
        from.filter((target) => !/^(?:\.\/|drizzle-orm(?:\/|$)|postgres$)/.test(target)),
        file,
      ).toEqual([]);
      expect(text).not.toContain('catalog_internal"');
    }
    expect(driver).toContain('node_modules/postgres/src/connection.js');
    const licences = readFileSync(join(folder, 'node_modules', name, 'dist/LICENSES.txt'), 'utf8');
    for (const contained of ['bullmq', 'ioredis', 'undici', 'zod', 'pino', 'prom-client', 'postgres'])
      expect(licences).toMatch(new RegExp(`^${contained} \\d.*: .+$`, 'm'));
  });

  test('answers --version and --help through its bin', async ({ expect }) => {
    expect(await runProgram(['--version'], { PATH }, { bin })).toMatchObject({
      code: 0,
      stdout: version,
      stderr: '',
    });
    const help = await runProgram(['--help'], { PATH }, { bin });
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('  sandbox '), stderr: '' });
  });

  test('has every command even if no other package is installed', async ({ expect }) => {
    const bare = join(folder, 'bare');
    for (const path of ['package.json', 'dist', 'drizzle'])
      cpSync(join(folder, 'node_modules', name, path), join(bare, path), { recursive: true });
    const program = join(bare, 'dist/bin.js');
    const help = await runProgram([program, '--help'], { PATH }, { bin: process.execPath });
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('  sandbox '), stderr: '' });
    const database = await createDatabase();
    try {
      const migrated = await runProgram(
        [program, 'migrate'],
        { PATH, DATABASE_URL: database.url },
        { bin: process.execPath },
      );
      expect(migrated, migrated.stderr).toMatchObject({ code: 0 });
    } finally {
      await database.drop();
    }
  });

  test('mirrors its own sandbox in the process that was started, with a small young generation', async ({
    expect,
  }) => {
    const database = await createDatabase();
    const sql = connect(database.url, { max: 1 });
    try {
      await using sandbox = startProgram(['sandbox', '--port', '0', '--skus', '30'], { PATH }, { bin });
      const setting = () => sandbox.stdout.find((line) => line.includes('PARTNER_BASE_URL='));
      await eventually(() => setting() !== undefined, { what: 'the sandbox says where it is' });
      const partner = Object.fromEntries(
        [...(setting() ?? '').matchAll(/(PARTNER_\w+)=(\S+)/g)].map((match) => [match[1], match[2]]),
      ) as Env;
      const env = { ...QUICK, ...partner, PATH, DATABASE_URL: database.url };
      const once = await runProgram(['run', '--once', '--timeout', '90s'], env, {
        bin,
        cwd: folder,
        timeoutMs: 100_000,
      });
      expect(once, once.stderr).toMatchObject({ code: 0, signal: null });
      const [row] = await sql`select count(*)::int as skus from catalog.skus where state <> 'pending'`;
      expect(row).toEqual({ skus: 30 });
      if (existsSync(`/proc/${sandbox.pid}/cmdline`))
        expect(readFileSync(`/proc/${sandbox.pid}/cmdline`, 'utf8').split('\0')).toEqual(
          expect.arrayContaining([...NODE_FLAGS]),
        );
      // By default it would open a debugger, which says so on stderr.
      sandbox.signal('SIGUSR1');
      expectStopped(await sandbox.end('SIGTERM'), expect);
      expect(sandbox.stderr).toEqual([]);
    } finally {
      await sql.end({ timeout: 5 });
      await database.drop();
    }
  });

  test('brings its Node.js and its Postgres, without running an install script', async ({ expect, skip }) => {
    skip(process.platform !== 'linux', 'Node.js comes with the package on Linux only');
    const older = await olderNode();
    const behind = [dirname(older ?? process.execPath), ...systemFolders].join(delimiter);
    const { stdout } = await run('npx', ['--no-install', 'node', '--version'], {
      cwd: folder,
      env: { ...process.env, PATH: behind },
    });
    expect(stdout.trim()).toBe(`v${optionalDependencies[`node-linux-${process.arch}`]}`);
    const demo = ['--no-install', name, 'demo', '--once', '--skus', '100'];
    const once = await runProgram(
      demo,
      { PATH: behind, HOME: folder },
      {
        bin: 'npx',
        cwd: folder,
        timeoutMs: 100_000,
      },
    );
    expect(once, once.stderr).toMatchObject({ code: 0, signal: null });
  });

  test('tells an older Node.js what it needs', async ({ expect, skip }) => {
    const older = await olderNode();
    skip(older === null, 'every Node.js here is new enough');
    const { code, stdout, stderr } = await runProgram([bin, '--version'], {}, { bin: older ?? '' });
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain(`catalog-mirror needs Node.js ${OLDEST_NODE} or newer`);
    // The command in the message works.
    const [, command = ''] = /came with it: (.*)\n/.exec(stderr) ?? [];
    const [brought = '', ...args] = command.split(' ');
    expect(await runProgram([...args, '--version'], {}, { bin: brought })).toMatchObject({
      code: 0,
      stdout: version,
    });
  });

  test.for(['nodenext', 'bundler'])(
    'declares what the examples use, under %s resolution',
    async (resolution, { expect }) => {
      const module = resolution === 'bundler' ? 'esnext' : resolution;
      const where = join(folder, `typed-${resolution}`);
      cpSync(join(ROOT, 'examples/programs'), where, { recursive: true });
      symlinkSync(join(ROOT, 'node_modules/@types'), join(where, 'types'));
      const compilerOptions = {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        target: 'esnext',
        lib: ['esnext'],
        module,
        moduleResolution: resolution,
        typeRoots: ['./types'],
        types: ['node'],
        noEmit: true,
        // Drizzle's own declarations name drivers that are not installed.
        skipLibCheck: true,
      };
      writeFileSync(join(where, 'days.ts'), DAYS);
      writeFileSync(join(where, 'package.json'), JSON.stringify({ type: 'module' }));
      writeFileSync(join(where, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const { stdout } = await run(process.execPath, [tsc, '-p', where]).catch(
        (error: unknown) => error as { stdout: string },
      );
      expect(stdout).toBe('');
    },
  );

  test('runs the examples', async ({ expect }) => {
    const database = await createDatabase('migrated');
    const sql = connect(database.url, { max: 1 });
    const where = join(folder, 'examples');
    cpSync(join(ROOT, 'examples/programs'), where, { recursive: true });
    writeFileSync(join(where, 'days.ts'), DAYS);
    writeFileSync(join(where, 'package.json'), JSON.stringify({ type: 'module' }));
    const example = (entry: string) =>
      run(process.execPath, [join(where, `${entry}.ts`)], {
        env: { PATH, DATABASE_URL: database.url, SKU: 'A' },
      });
    const move = (from: number, to: number) =>
      sql.begin(async (tx) => {
        await tx`update catalog.prices set price = ${to}`;
        await tx`insert into catalog.price_history (sku, size, old_price, new_price, observed_at) values ('A', '9', ${from}, ${to}, now())`;
        await tx`notify catalog_changes`;
      });
    try {
      expect((await example('sandbox')).stdout).toMatch(/^200 .*4800/);
      await sql`insert into catalog.skus (sku, state, in_manifest, priced_at, asked_at) values ('A', 'priced', true, now(), now())`;
      await sql`insert into catalog.prices (sku, size, price, changed_at) values ('A', '9', 100, now())`;
      expect((await example('types')).stdout).toBe('A null 9: 100 THB (owed)\n');
      expect(JSON.parse((await example('schema')).stdout)).toEqual([]);
      await sql`insert into catalog.daily_prices (sku, size, day, changes, size_type_changed, first_position) values ('A', '9', '2026-01-31', 1, false, 1)`;
      expect(JSON.parse((await example('days')).stdout)).toEqual([[true, '2026-01-31T00:00:00.000Z']]);
      const follower = spawn(process.execPath, [join(where, 'follow.ts')], {
        env: { PATH, DATABASE_URL: database.url },
        stdio: 'ignore',
      });
      const ended = once(follower, 'exit');
      const stands = async () =>
        (await sql`select position from public.follower where position <> 'now'`).length;
      await eventually(async () => (await stands().catch(() => 0)) > 0, { what: 'the follower has begun' });
      await move(100, 90);
      await move(90, 95);
      const drops = () => sql`select sku, size, old_price, new_price from public.drops`;
      await eventually(async () => (await drops()).length > 0, { what: 'the drop' });
      follower.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
      expect([...(await drops())]).toEqual([{ sku: 'A', size: '9', old_price: 100, new_price: 90 }]);
    } finally {
      await sql.end({ timeout: 5 });
      await database.drop();
    }
  });
});
