import { chown, mkdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { clusterProcesses } from '../../src/embedded/processes.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Env,
  expectStopped,
  type Program,
  runProgram,
  startProgram,
  temporaryFolder,
} from '../support/process.ts';
import { PRODUCTION } from '../support/production.ts';
import { createStack } from '../support/stack.ts';

/** As most people run it: without any privilege, if the tests can arrange that. */
const nobody = process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Creates a folder for the test that the unprivileged user may write to. */
async function workplace({ onTestFinished }: TestContext): Promise<string> {
  const folder = join(await temporaryFolder(onTestFinished), 'work');
  await mkdir(folder);
  if (nobody.uid !== undefined) await chown(folder, nobody.uid, nobody.gid);
  return folder;
}

/** Waits until no process of the cluster is left. */
async function nothingRuns(dataDir: string): Promise<void> {
  const home = await realpath(dataDir);
  await eventually(async () => (await clusterProcesses(home)).length === 0, {
    what: `no Postgres in ${home}`,
  });
}

/** Waits until the demo has printed its addresses. */
async function isOpen(demo: Program): Promise<void> {
  await eventually(() => demo.stdout.some((line) => line.startsWith('  page ')), { what: 'the demo' });
}

describe.concurrent('demo', () => {
  const kinds: Record<string, Env> = {
    'an empty shell': {},
    'a shell full of settings of production': PRODUCTION,
  };
  for (const [kind, env] of Object.entries(kinds)) {
    test(`--once, unprivileged, in ${kind}: fills, applies a delta, prints rows, exits 0, leaves no Postgres`, async (context) => {
      const { expect } = context;
      const folder = await workplace(context);
      const args = ['demo', '--once', '--skus', '300'];
      // This tests whether it ends, not how soon on a busy machine.
      const ran = await runProgram(args, env, { cwd: folder, timeoutMs: 150_000, ...nobody });
      expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
      expect(ran.stdout.match(/^catalog\.current_prices$/gm)).toHaveLength(2);
      expect(ran.stdout).toMatch(/^ {2}\S+ +\S+ +\d+ +\S.* (snapshot|live) +(true|false)$/m);
      // The market also moves before the manifest comes: a SKU may be gone by then.
      const [, skus] =
        /^ +\d+s {2}\w+: (\d+) SKUs, \d+ due, [\d,]+ price changes? recorded/m.exec(ran.stdout) ?? [];
      expect(Number(skus)).toBeGreaterThan(290);
      // Addresses that no longer exist when it ends are not printed.
      expect(ran.stdout).not.toMatch(/http:|postgres:/);
      await nothingRuns(join(folder, '.catalog-mirror', 'demo', 'postgres'));
    });
  }

  test('leaves no Postgres when killed with -9', async (context) => {
    const folder = await workplace(context);
    await using demo = startProgram(['demo', '--skus', '300'], { DATA_DIR: folder }, nobody);
    await isOpen(demo);
    const dataDir = join(folder, 'demo', 'postgres');
    context.expect(await clusterProcesses(await realpath(dataDir))).not.toEqual([]);
    await demo.end('SIGKILL');
    await nothingRuns(dataDir);
  });

  test('exits 0 at Ctrl-C', async (context) => {
    const folder = await workplace(context);
    await using demo = startProgram(['demo', '--skus', '300'], { DATA_DIR: folder }, nobody);
    await isOpen(demo);
    expectStopped(await demo.end('SIGINT'), context.expect);
    await nothingRuns(join(folder, 'demo', 'postgres'));
  });

  test('exits 0, without output of initdb, at a Ctrl-C while initdb runs', async (context) => {
    const dataDir = join(await workplace(context), 'demo', 'postgres');
    await using demo = startProgram(['demo', '--skus', '300'], { DATA_DIR: join(dataDir, '../..') }, nobody);
    const initdb = await eventually(
      async () => {
        // By then initdb has a helper that creates the tables.
        await stat(join(dataDir, 'base', '1', 'PG_VERSION'));
        const pids = await clusterProcesses(await realpath(dataDir));
        if (pids.length < 2) throw new Error('it has not begun');
        return pids;
      },
      { what: 'initdb', every: 10 },
    );
    // A terminal signals all of them.
    const ended = demo.end('SIGINT');
    for (const pid of initdb)
      try {
        process.kill(pid, 'SIGINT');
      } catch {
        // A helper of initdb that has ended.
      }
    expectStopped(await ended, context.expect);
    context.expect(demo.stderr).toEqual([]);
    await nothingRuns(dataDir);
  });

  test('says what it has kept at a Ctrl-C that reaches it twice, as under npm', async (context) => {
    const folder = await workplace(context);
    await using demo = startProgram(['demo', '--skus', '300'], { DATA_DIR: folder }, nobody);
    await isOpen(demo);
    // Two different signals: of two equal ones the system may deliver only one.
    demo.signal('SIGINT');
    expectStopped(await demo.end('SIGTERM'), context.expect);
    context.expect(demo.stdout.join('\n')).toContain('stopped; the mirror is kept in');
    await nothingRuns(join(folder, 'demo', 'postgres'));
  });

  test('is found by commands beside it, runs beside another demo, and leaves its mirror for inspection', async (context) => {
    const { expect } = context;
    const folder = await workplace(context);
    const env = { DATA_DIR: folder };
    await using demo = startProgram(['demo', '--skus', '300'], env, nobody);
    await isOpen(demo);
    const which = `the running demo in ${join(folder, 'demo', 'postgres')}`;
    const query = "SELECT sku FROM catalog.current_prices WHERE sku = 'DD1391-100' AND actionable";
    await eventually(
      async () =>
        expect((await runProgram(['sql', query], env, nobody)).stdout).toMatch(/^sku\n-+\nDD1391-100\n/),
      { what: 'the first query of the README' },
    );
    const status = await runProgram(['status'], env, nobody);
    expect(status.stdout.split('\n')[0]).toContain(`(${which}`);
    // The demo's own settings, whatever those of the command are: 190 a minute, of which 187 are sent
    // (sendsPerWindow).
    expect(status.stdout).toMatch(/^ +used .*\/187 of the share$/m);
    const refreshed = await runProgram(['refresh', 'DD1391-100', 'UNHEARD-OF'], env, nobody);
    expect(refreshed).toMatchObject({
      code: 0,
      stdout: `in ${which}:\n2 SKUs are due now\n1 SKU was unknown and is mirrored from now on: UNHEARD-OF`,
    });
    const again = await runProgram(['demo'], env, nobody);
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/^another demo runs here\n.*\n {2}what to do: look at that one with/);
    const elsewhere = { DATA_DIR: join(folder, 'second') };
    await using second = startProgram(['demo', '--skus', '300'], elsewhere, nobody);
    await isOpen(second);
    const pages = [demo, second].map(({ stdout }) => stdout.find((line) => line.startsWith('  page ')));
    expect(pages[0]).not.toBe(pages[1]);
    expectStopped(await second.end('SIGTERM'), expect);

    expectStopped(await demo.end('SIGINT'), expect);
    expect(demo.stdout.join('\n')).toContain(
      `stopped; the mirror is kept in ${join(folder, 'demo', 'postgres')}`,
    );
    const left = await runProgram(['sql', 'select count(*) > 300 as kept from catalog.skus'], env, nobody);
    expect(left).toMatchObject({ code: 0, stdout: 'kept\n----\ntrue\n(1 row)' });
    await nothingRuns(join(folder, 'demo', 'postgres'));
  });

  test('leaves no Postgres when its terminal is closed', async (context) => {
    const folder = await workplace(context);
    await using demo = startProgram(['demo', '--skus', '300'], { DATA_DIR: folder }, nobody);
    await isOpen(demo);
    await demo.end('SIGHUP');
    await nothingRuns(join(folder, 'demo', 'postgres'));
  });
});

describe.concurrent('a daemon with an embedded Postgres', () => {
  test('is found by status and refresh beside it, which start the Postgres themselves once it has stopped', async (context) => {
    const { expect } = context;
    const folder = await workplace(context);
    await using stack = await createStack({ sandbox: { skus: 40, liveShare: 0, ghostShare: 0, seed: 95 } });
    const env = { ...stack.env, DATABASE_URL: undefined, DATA_DIR: folder };
    await using daemon = startProgram(['run'], env, nobody);
    await daemon.until('app.started');
    await eventually(async () => (await daemon.get('/readyz')).status === 200, { what: 'readiness' });
    const bulks = () => stack.sandbox.counts('bulk');
    await eventually(() => bulks() > 0, { what: 'the fill' });

    const beside = { DATA_DIR: folder };
    const shown = async () =>
      JSON.parse((await runProgram(['status', '--json'], beside, nobody)).stdout) as object;
    // The last call may still be in flight, and the counts are some moments old.
    await eventually(
      async () =>
        expect(await shown()).toMatchObject({
          snapshotId: stack.sandbox.world.newestSnapshot(),
          skus: [{ state: 'priced', count: 40 }],
        }),
      { what: 'the prices in the status' },
    );
    const before = bulks();
    const [sku = ''] = stack.sandbox.world.truth().keys();
    expect(await runProgram(['refresh', sku], beside, nobody)).toMatchObject({
      code: 0,
      stdout: `in the running daemon in ${join(folder, 'postgres')}:\n1 SKU is due now`,
    });
    await eventually(() => bulks() > before, { what: 'its price' });
    expectStopped(await daemon.end('SIGTERM'), expect);

    expect(await shown()).toMatchObject({ skus: [{ state: 'priced', count: 40 }] });
    expect(await runProgram(['refresh', '--all'], beside, nobody)).toMatchObject({
      code: 0,
      stdout: `in the stopped daemon in ${join(folder, 'postgres')}:\n40 more SKUs are due now\nnothing is fetched now: no daemon is running`,
    });
    await nothingRuns(join(folder, 'postgres'));
  });

  test('continues where it was when killed with -9 and restarted', async (context) => {
    const { expect } = context;
    const folder = await workplace(context);
    await using stack = await createStack({ sandbox: { skus: 40, liveShare: 0, ghostShare: 0, seed: 96 } });
    const env = { ...stack.env, DATABASE_URL: undefined, DATA_DIR: folder };
    stack.sandbox.faults.add({ route: 'bulk', hang: true });
    await using killed = startProgram(['run'], env, nobody);
    await eventually(() => stack.sandbox.counts('bulk') > 0, { what: 'a call' });
    await killed.end('SIGKILL');
    expect(await runProgram(['run', '--once'], env, { ...nobody, timeoutMs: 150_000 })).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(stack.sandbox.counts('file')).toBe(1);
    await nothingRuns(join(folder, 'postgres'));
  });

  test.skipIf(nobody.uid === undefined)(
    'names a data folder that cannot be read as the cause',
    async (context) => {
      const folder = await temporaryFolder(context.onTestFinished);
      const dataDir = join(folder, 'postgres');
      await mkdir(dataDir, { mode: 0o700 });
      const ran = await runProgram(['status'], { DATA_DIR: folder }, nobody);
      context.expect(ran.code).toBe(2);
      context.expect(ran.stderr).toContain(`The data directory ${dataDir} cannot be used (EACCES)`);
      context.expect(ran.stderr).toContain('what to do: start as the user who owns it');
    },
  );
});
