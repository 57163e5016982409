import {
  chmod,
  chown,
  cp,
  lchown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findPlatformPackage, prepareBinaries } from '../../src/embedded/binaries.ts';
import { clusterPaths, placeDataDir } from '../../src/embedded/data-dir.ts';
import { isAlive } from '../../src/embedded/owner.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { clusterProcesses } from '../../src/embedded/processes.ts';
import { eventually } from '../support/eventually.ts';
import {
  allGone,
  canRunNode,
  isRoot,
  nobody,
  OWNER,
  query,
  run,
  startHere,
  temporaryFolder,
} from './harness.ts';

const otherUser = isRoot && (await canRunNode(nobody)) ? nobody : undefined;

describe('a data directory', () => {
  test('refuses another process, and names its owner', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const server = await startHere(dataDir);
    expect(await run(OWNER, dataDir).next()).toMatchObject({
      kind: 'in-use',
      message: expect.stringContaining(`process ${process.pid}`),
    });
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('refuses a second server of the same process, by whatever path', async () => {
    const folder = await temporaryFolder();
    await startHere(join(folder, 'pg'));
    await expect(startEmbeddedPostgres({ dataDir: join(folder, '.', 'pg') })).rejects.toMatchObject({
      kind: 'in-use',
    });
    await symlink(folder, join(folder, 'alias'));
    await expect(startEmbeddedPostgres({ dataDir: join(folder, 'alias', 'pg') })).rejects.toMatchObject({
      kind: 'in-use',
    });
  });

  test('goes to one of two processes that start at once', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const answers = await Promise.all([run(OWNER, dataDir), run(OWNER, dataDir)].map((each) => each.next()));
    expect(answers.filter((answer) => answer['created'] === true)).toHaveLength(1);
    expect(answers.filter((answer) => answer['kind'] === 'in-use')).toHaveLength(1);
  });
});

describe('an owner that dies', () => {
  test('takes its server along: no orphan after kill -9', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const owner = run(OWNER, dataDir);
    const { pid, watchdog } = await owner.next();
    expect(await clusterProcesses(dataDir)).toContain(pid);
    await owner.kill('SIGKILL');
    expect(await allGone(dataDir)).toBe(true);
    await eventually(() => expect(isAlive(Number(watchdog))).toBe(false));
  });

  test('can be replaced at once: the new one waits for the shutdown, and has the data', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const owner = run(OWNER, dataDir);
    const { pid } = await owner.next();
    const { url } = await owner.next();
    await query(String(url), 'create table kept as select g from generate_series(1, 100000) g');
    await owner.kill('SIGKILL');
    const next = await startHere(dataDir);
    expect(next.pid).not.toBe(pid);
    expect(await query(next.url, 'select count(*)::int as n from kept')).toEqual([{ n: 100_000 }]);
  });

  test('without its watchdog leaves an orphan, which the next owner stops', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const owner = run(OWNER, dataDir);
    const { pid, watchdog } = await owner.next();
    process.kill(Number(watchdog), 'SIGKILL');
    await owner.kill('SIGKILL');
    expect(await clusterProcesses(dataDir)).toContain(pid);
    const events: [string, Record<string, unknown>][] = [];
    const next = await startHere(dataDir, { log: (event, detail) => events.push([event, detail]) });
    expect(events).toContainEqual(['embedded.orphan-found', expect.objectContaining({ server: pid })]);
    expect(await clusterProcesses(dataDir)).toContain(next.pid);
    expect(await clusterProcesses(dataDir)).not.toContain(pid);
  });

  test('by simply ending is not kept alive by anything, and its server ends too', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const owner = run(`say({ pid: (await startEmbeddedPostgres({ dataDir, settings })).pid });`, dataDir);
    expect((await owner.next())['pid']).toBeGreaterThan(0);
    expect(await owner.exited).toBe(0);
    expect(await allGone(dataDir)).toBe(true);
  });

  test('by Ctrl-C is the only process that gets the signal, and can drain before it stops the server', async () => {
    const dataDir = join(await temporaryFolder(), 'pg');
    const owner = run(
      `const server = await startEmbeddedPostgres({ dataDir, settings });
       process.once('SIGINT', async () => {
         const sql = postgres(server.url, { max: 1 });
         const [row] = await sql\`select 'drained' as state, pg_sleep(0.2)\`;
         await sql.end();
         await server.stop();
         say({ state: row.state });
         clearInterval(alive);
       });
       const alive = setInterval(() => {}, 1_000_000);
       say({ ready: true });`,
      dataDir,
    );
    await owner.next();
    // The whole process group, like a terminal.
    process.kill(-owner.pid, 'SIGINT');
    expect(await owner.next()).toEqual({ state: 'drained' });
    expect(await owner.exited).toBe(0);
    expect(await clusterProcesses(dataDir)).toEqual([]);
  });
});

describe.runIf(otherUser)('an ordinary user', () => {
  test('runs the server as itself, stops it, and finds the data again', async () => {
    const folder = await temporaryFolder();
    if (otherUser) await chown(folder, otherUser.uid, otherUser.gid);
    const program = (statement: string) =>
      run(
        `const server = await startEmbeddedPostgres({ dataDir, settings });
         const sql = postgres(server.url, { max: 1 });
         const rows = await sql.unsafe(${JSON.stringify(statement)});
         await sql.end();
         await server.stop();
         say({ rows, uid: process.geteuid() });`,
        join(folder, 'pg'),
        otherUser,
      );
    const first = program('create table kept as select 7 as seven');
    expect(await first.next()).toEqual({ rows: [], uid: otherUser?.uid });
    expect(await first.exited).toBe(0);
    expect((await stat(join(folder, 'pg'))).uid).toBe(otherUser?.uid);
    expect(await program('select seven from kept').next()).toMatchObject({ rows: [{ seven: 7 }] });

    // Root starts the same cluster without changing its owner.
    const asRoot = await startHere(join(folder, 'pg'));
    expect(await query(asRoot.url, 'select seven from kept')).toEqual([{ seven: 7 }]);
    await asRoot.stop();
    expect((await stat(join(folder, 'pg'))).uid).toBe(otherUser?.uid);
  });

  test('gets an error if the data directory belongs to somebody else', async () => {
    const folder = await temporaryFolder();
    await (await startHere(join(folder, 'pg'))).stop();
    expect(await run(OWNER, join(folder, 'pg'), otherUser).next()).toMatchObject({ kind: 'data-dir' });
    await chmod(folder, 0o777);
    await mkdir(join(folder, 'other'));
    expect(await run(OWNER, join(folder, 'other'), otherUser).next()).toMatchObject({
      kind: 'data-dir',
      message: expect.stringContaining('belongs to user 0'),
    });
  });

  test('gets a copy beside its data if a package that it may not write lacks links', async () => {
    const packageFolder = await packageWithoutLink(await temporaryFolder());
    const dataDir = join(await temporaryFolder(), 'data', 'pg');
    await mkdir(dirname(dataDir));
    await chown(dirname(dataDir), otherUser?.uid ?? 0, otherUser?.gid ?? 0);
    const program = `
      const events = [];
      const binaries = await prepareBinaries({ packageFolder: ${JSON.stringify(packageFolder)}, account: null,
        copyFolder: dataDir, log: (event) => events.push(event) });
      say({ ...binaries, events });`;
    const { folder, major, events } = await run(program, dirname(dataDir), otherUser).next();
    expect({ major, events }).toEqual({ major: 18, events: ['embedded.binaries-copied'] });
    expect(dirname(String(folder))).toBe(dirname(dataDir));
    expect(await readlink(join(String(folder), 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18');
    expect(await run(program, dirname(dataDir), otherUser).next()).toEqual({ folder, major, events: [] });

    // A copy that somebody else has put there is not run.
    await chown(String(folder), 0, 0);
    const again = run(`try { ${program} } catch (error) { complain(error); }`, dirname(dataDir), otherUser);
    expect(await again.next()).toMatchObject({
      kind: 'broken-install',
      message: expect.stringContaining('else'),
    });
  });
});

/**
 * Creates a platform package as npm unpacks it, without links between libraries. Everybody may read it, only root
 * write.
 */
async function packageWithoutLink(folder: string): Promise<string> {
  const original = findPlatformPackage();
  const packageFolder = join(folder, basename(original));
  await cp(original, packageFolder, { recursive: true, verbatimSymlinks: true });
  await rm(join(packageFolder, 'native', 'lib', 'libpq.so.5'));
  return packageFolder;
}

describe.runIf(isRoot && nobody)('root', () => {
  const account = nobody ?? { uid: 0, gid: 0 };

  test('runs the server as another user', async () => {
    const { pid } = await startHere(join(await temporaryFolder(), 'pg'));
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    expect(Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])).toBeGreaterThan(0);
    expect(/^Groups:\s*$/m.test(status)).toBe(true);
  });

  test('gets a copy, only once, of binaries that the service user cannot reach', async () => {
    const folder = await temporaryFolder();
    const closed = join(folder, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const packageFolder = await packageWithoutLink(closed);
    const events: string[] = [];
    const options = {
      packageFolder,
      account,
      copyFolder: join(folder, 'system'),
      log: (event: string) => events.push(event),
    };
    const { folder: copy, major } = await prepareBinaries(options);
    expect(major).toBe(18);
    expect(copy.startsWith(options.copyFolder)).toBe(true);
    expect((await stat(join(copy, 'bin', 'postgres'))).uid).toBe(0);
    expect(await readlink(join(copy, 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18');
    expect((await prepareBinaries(options)).folder).toBe(copy);
    expect(events).toEqual(['embedded.links-repaired', 'embedded.binaries-copied']);
  });

  test('gets a cluster within reach, and a link to it, if the requested place is out of reach', async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'closed'), { mode: 0o700 });
    const paths = clusterPaths(join(folder, 'closed', 'pg'));
    const events: string[] = [];
    const place = () => placeDataDir(paths, account, join(folder, 'system'), (event) => events.push(event));
    const home = await place();
    expect(home.startsWith(join(folder, 'system'))).toBe(true);
    expect(await readlink(paths.dataDir)).toBe(home);
    expect((await stat(home)).uid).toBe(account.uid);
    expect(await place()).toBe(home);
    expect(events).toEqual(['embedded.data-dir-relocated']);
  });

  test('gets an error for an existing cluster that is out of reach', async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'closed', 'pg', 'base'), { recursive: true });
    await mkdir(join(folder, 'closed', 'pg', 'global'));
    await chmod(join(folder, 'closed'), 0o700);
    await writeFile(join(folder, 'closed', 'pg', 'PG_VERSION'), '18\n');
    const paths = clusterPaths(join(folder, 'closed', 'pg'));
    await expect(placeDataDir(paths, account, join(folder, 'system'), () => {})).rejects.toMatchObject({
      kind: 'data-dir',
    });
  });

  test("hands root's copy of a cluster to the user who runs it", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'pg', 'base'), { recursive: true });
    await mkdir(join(folder, 'pg', 'global'));
    await writeFile(join(folder, 'pg', 'PG_VERSION'), '18\n');
    await writeFile(join(folder, 'pg', 'base', 'file'), '');
    await placeDataDir(clusterPaths(join(folder, 'pg')), account, join(folder, 'system'), () => {});
    expect((await stat(join(folder, 'pg', 'base', 'file'))).uid).toBe(account.uid);
    expect((await stat(join(folder, 'pg'))).mode & 0o777).toBe(0o700);
  });

  const strangers: [what: string, prepare: (folder: string, theirs: string) => Promise<unknown>][] = [
    [
      "somebody's folder in its place",
      (folder, theirs) => cp(theirs, join(folder, 'pg'), { recursive: true }),
    ],
    ["a link to somebody's folder", (folder, theirs) => symlink(theirs, join(folder, 'pg'))],
    [
      "a link to somebody's folder, and a marker that it is half made",
      async (folder, theirs) => {
        await symlink(theirs, join(folder, 'pg'));
        await mkdir(join(folder, 'pg.initializing'));
      },
    ],
    [
      "another user's link to an empty folder",
      async (folder) => {
        await mkdir(join(folder, 'empty'));
        await symlink(join(folder, 'empty'), join(folder, 'pg'));
        await lchown(join(folder, 'pg'), account.uid, account.gid);
      },
    ],
  ];

  test.each(strangers)('refuses %s, and touches nothing', async (_what, prepare) => {
    const folder = await temporaryFolder();
    const theirs = join(folder, 'theirs');
    await mkdir(join(theirs, 'deep'), { recursive: true });
    await writeFile(join(theirs, 'deep', 'holiday.jpg'), 'x');
    await chmod(theirs, 0o755);
    await prepare(folder, theirs);
    const before = await looks(folder);
    await expect(startEmbeddedPostgres({ dataDir: join(folder, 'pg') })).rejects.toMatchObject({
      kind: 'data-dir',
    });
    expect(await looks(folder)).toEqual(before);
  });

  test('writes nothing through links beside the data directory', async () => {
    const folder = await temporaryFolder();
    const kept = join(folder, 'kept');
    await writeFile(kept, 'x');
    const { ownerFile, passwordFile } = clusterPaths(join(folder, 'pg'));
    for (const path of [ownerFile, passwordFile]) await symlink(kept, path);
    await startHere(join(folder, 'pg'));
    expect(await readFile(kept, 'utf8')).toBe('x');
    const other = join(folder, 'other');
    await symlink(kept, clusterPaths(other).startupLog);
    await expect(startEmbeddedPostgres({ dataDir: other })).rejects.toMatchObject({ kind: 'data-dir' });
    expect(await readFile(kept, 'utf8')).toBe('x');
  });
});

/** Returns everything below a folder with its owner, mode and content, except for the lock's own files. */
async function looks(folder: string): Promise<unknown[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const kept = entries.filter(({ name }) => !/\.(?:lock|owner)$/.test(name));
  return await Promise.all(
    kept.map(async ({ parentPath, name }) => {
      const { uid, gid, mode } = await lstat(join(parentPath, name));
      return [join(parentPath, name), uid, gid, mode];
    }),
  );
}
