import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { describe, test } from 'vitest';
import { helpOfAll } from '../../src/cli/command.ts';
import { loadCommands } from '../../src/cli/commands.ts';
import { WRONG_VALUES } from '../cli/wrong-values.ts';
import { eventually } from '../support/eventually.ts';
import {
  FILLED,
  holds,
  runProgram,
  runUntilOnlyPending,
  startProgram,
  temporaryFolder,
} from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

const COMMANDS = await loadCommands();

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

describe.concurrent('the command line', () => {
  test('--help describes all commands or one, without any configuration', async ({ expect }) => {
    const all = await runProgram(['--help']);
    expect(all).toMatchObject({ code: 0, stdout: helpOfAll(COMMANDS), stderr: '' });
    expect(await runProgram([])).toEqual(all);
    for (const args of [
      ['doctor', '--help'],
      ['help', 'doctor'],
    ]) {
      const { code, stdout, stderr } = await runProgram(args);
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
      expect(stdout).toMatch(/^catalog-mirror doctor: /);
    }
  });

  test('--version works alone and after a command', async ({ expect }) => {
    for (const args of [['--version'], ['-V'], ['status', '--version']])
      expect(await runProgram(args)).toMatchObject({ code: 0, stdout: version, stderr: '' });
  });

  test('all wrong options are named at once, with exit code 78', async ({ expect }) => {
    const { code, stderr, stdout } = await runProgram(['run', '--onse', '--once=yes', '--timeout', 'extra']);
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    for (const wrong of ['--onse', '--once']) expect(stderr).toContain(wrong);
    expect(await runProgram(['rnu'])).toMatchObject({ code: 78, stderr: expect.stringContaining('rnu') });
    expect(await runProgram(['run', '--timeout', 'soon', '--once'])).toMatchObject({ code: 78 });
    expect(await runProgram(['refresh'])).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('--all'),
    });
    const sandbox = await runProgram(['sandbox', '--port', '99999', '--skus', 'many', '--latency', 'long']);
    expect(sandbox.code).toBe(78);
    for (const wrong of ['--port', '--skus', '--latency']) expect(sandbox.stderr).toContain(wrong);
  });

  test.for([...new Set(WRONG_VALUES.map(({ name }) => name))])(
    '%s names wrong values together with an option that does not exist',
    async (name, { expect }) => {
      const wrong = WRONG_VALUES.filter((each) => each.name === name);
      const args = [name, ...wrong.map(({ arg }) => arg), '--zzz'];
      const { code, stdout, stderr } = await runProgram(args);
      expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
      const lines = stderr.split('\n');
      expect(lines).toContain('--zzz: no such option');
      for (const { said } of wrong) expect(lines.some((line) => said.test(line))).toBe(true);
    },
  );

  test('all wrong variables are named at once, with exit code 78, before anything is touched', async ({
    expect,
  }) => {
    await using stack = await createStack({ database: 'empty', sandbox: { skus: 10 } });
    const cwd = await temporaryFolder(() => {});
    const env = {
      ...stack.env,
      PARTNER_BASE_URL: 'http://partner.example',
      BULK_MAX_SKUS: '101',
      DELTA_INTERVAL: '5 parsecs',
    };
    for (const command of ['run', 'doctor']) {
      const { code, stdout, stderr } = await runProgram(
        [command],
        { ...env, PARTNER_SECRET: undefined },
        { cwd },
      );
      expect({ command, code, stdout }).toEqual({ command, code: 78, stdout: '' });
      for (const name of ['PARTNER_BASE_URL', 'BULK_MAX_SKUS', 'DELTA_INTERVAL'])
        expect(stderr).toContain(`${name}: expected`);
      expect(stderr).toContain('PARTNER_SECRET: not set; expected');
    }
    const schemas = await stack.sql`select nspname from pg_namespace where nspname like 'catalog%'`;
    expect({ requests: stack.sandbox.counts(), schemas: [...schemas], files: await readdir(cwd) }).toEqual({
      requests: 0,
      schemas: [],
      files: [],
    });
  });

  test('sandbox prints its address and its credentials, and answers until it is stopped', async ({
    expect,
  }) => {
    await using sandbox = startProgram([
      'sandbox',
      '--port',
      '0',
      '--skus',
      '50',
      '--api-key',
      'k',
      '--secret',
      's',
    ]);
    await eventually(() => sandbox.stdout.length > 1, { what: 'its address' });
    const url = /http:\/\/\S+/.exec(sandbox.stdout[0] ?? '')?.[0] ?? '';
    expect(sandbox.stdout[1]).toContain(`PARTNER_BASE_URL=${url} PARTNER_API_KEY=k PARTNER_SECRET=s`);
    const authorization = `Basic ${Buffer.from('k:s').toString('base64')}`;
    const answer = await fetch(`${url}/partner/catalog/manifest`, { headers: { authorization } });
    expect(await answer.json()).toMatchObject({ sku_count: 50 });
    expect(await sandbox.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('healthcheck tells a live daemon from none, and from something else on its port', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: { skus: 10 } });
    await using daemon = startProgram(['run'], stack.env);
    const { port, page } = await daemon.until('app.started');
    expect(page).toBe(`http://127.0.0.1:${String(port)}/`);
    const env = { HTTP_PORT: String(port) };
    expect(await runProgram(['healthcheck'], env)).toMatchObject({ code: 0 });
    await daemon.end('SIGTERM');
    expect(await runProgram(['healthcheck'], env)).toMatchObject({ code: 1 });

    const stranger = createServer((_, response) => response.writeHead(503).end()).listen(0, '127.0.0.1');
    await once(stranger, 'listening');
    const address = stranger.address();
    const there = { HTTP_PORT: String(typeof address === 'object' ? address?.port : 0) };
    expect(await runProgram(['healthcheck'], there)).toMatchObject({ code: 1 });
    stranger.close();
  });
});

describe.concurrent.each(backends())('run --once, queues in %s,', (backend) => {
  test('gives up in time with exit code 75 and says what is due', async ({ expect }) => {
    await using stack = await createStack({
      backend,
      sandbox: { skus: 40, liveShare: 0 },
      env: { PARTNER_TIMEOUT: '5m' },
    });
    stack.sandbox.faults.add({ route: 'manifest', hang: true });
    const early = await runProgram(['run', '--once', '--timeout', '2s'], stack.env);
    expect(early).toMatchObject({ code: 75, stderr: 'timed out; still pending: a baseline, a delta poll' });
    stack.sandbox.faults.add({ route: 'bulk', hang: true, times: Infinity });
    const late = await runUntilOnlyPending(stack.env, '40 SKUs (new)');
    stack.sandbox.faults.clear();
    expect(late).toMatchObject({ code: 75, stderr: 'timed out; still pending: 40 SKUs (new)' });
    expect(await runProgram(['run', '--once', '--timeout', '2m'], stack.env)).toMatchObject({
      code: 0,
      stderr: '',
    });
    const [maintenance] = await stack.sql`
      select t.outcome, t.started_at > d.finished_at as after from catalog_internal.tasks t, catalog_internal.tasks d
      where t.task = 'maintenance' and d.task = 'delta'`;
    expect(maintenance).toEqual({ outcome: 'done', after: true });
  });
});

describe.concurrent('commands beside a daemon', () => {
  test('migrate creates the tables, and is harmless a second time', async ({ expect }) => {
    await using stack = await createStack({ database: 'empty' });
    const ran = async () => {
      const { code, stdout } = await runProgram(['migrate'], { DATABASE_URL: stack.databaseUrl });
      return { code, lines: stdout.split('\n') };
    };
    const first = await ran();
    expect([first.code, first.lines[0], first.lines.at(-1)]).toEqual([
      0,
      expect.stringMatching(/^\d+ migrations are pending;/),
      'migrations applied',
    ]);
    expect(await ran()).toEqual({ code: 0, lines: ['migrations applied'] });
    const [status] = await stack.sql`select skus, catalog_state from catalog.sync_status`;
    expect(status).toEqual({ skus: '0', catalog_state: 'none' });
  });

  test('status and refresh on a database without tables say what to do', async ({ expect }) => {
    await using stack = await createStack({ database: 'empty' });
    for (const args of [['status'], ['refresh', '--all']]) {
      const { code, stderr } = await runProgram(args, { DATABASE_URL: stack.databaseUrl });
      expect([args, code]).toEqual([args, 78]);
      expect(stderr).toContain('catalog-mirror migrate');
    }
  });

  test('refresh makes the daemon ask again for SKUs, prices, metadata and the manifest', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: { skus: 120, liveShare: 0, seed: 61 } });
    const { sql, sandbox } = stack;
    await using daemon = startProgram(['run'], stack.env);
    await eventually(() => holds(sql, FILLED), { what: 'the fill' });
    const env = { DATABASE_URL: stack.databaseUrl };
    const asked = async (...args: string[]) => {
      const from = sandbox.requests.length;
      expect(await runProgram(['refresh', ...args], env)).toMatchObject({ code: 0, stderr: '' });
      await eventually(() => holds(sql, FILLED), { what: 'what was asked for' });
      return new Set(sandbox.requests.slice(from).flatMap(({ skus }) => skus));
    };
    const [one = '', two = ''] = sandbox.world.truth().keys();
    expect(await asked(one, two, 'UNHEARD-OF')).toEqual(new Set([one, two, 'UNHEARD-OF']));
    expect(await sql`select state from catalog.skus where sku = 'UNHEARD-OF'`).toMatchObject([
      { state: 'not_found' },
    ]);
    expect((await asked('--all')).size).toBe(121);
    expect((await asked('--metadata')).size).toBe(121);
    const files = sandbox.counts('file');
    expect(await runProgram(['refresh', '--manifest'], env)).toMatchObject({ code: 0 });
    await eventually(() => sandbox.counts('file') > files, { what: 'another manifest' });
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('plan estimates a catalog of any size, and uses the mirror’s own figures if none are given', async ({
    expect,
  }) => {
    const told = await runProgram(['plan', '--skus', '500000', '--live-share', '0.05', '--requests', '118']);
    expect(told.code).toBe(0);
    expect(told.stdout).toMatch(/^price changes: every 6.0h \(median live SKU, assumed\)/m);
    expect(told.stdout).toMatch(
      /^ {2}a watchlist of 100 of these SKUs, of weight 10 +97\.\d\d % of the time for these, - 0\.08 points/m,
    );
    expect(told.stdout).toMatch(/^initial load: calls +5,000 +5,000$/m);
    expect(told.stdout).toContain(
      'The budget is too small to refresh every live SKU within LIVE_INTERVAL (30m): that takes 167',
    );
    await using stack = await createStack({
      sandbox: { skus: 400, liveShare: 0.1, ghostShare: 0, seed: 93 },
    });
    await stack.once();
    const json = JSON.parse((await runProgram(['plan', '--json'], stack.env)).stdout) as {
      input: Record<string, unknown>;
      now: Record<string, unknown>;
      withTenMore: Record<string, unknown>;
    };
    expect(json.input).toMatchObject({ skus: 400, liveShare: 0.1, isLearned: false });
    await stack.sql`insert into catalog_internal.live_rates (sku, alpha, beta)
      select sku, 2, 20000 from catalog.skus where price_source = 'live' on conflict (sku) do update set alpha = 2, beta = 20000, long_alpha = 2, long_beta = 20000`;
    const learned = (await runProgram(['plan', '--watch', '7'], stack.env)).stdout;
    expect(learned).toMatch(/^price changes: every 7d \(median live SKU, as refreshes have shown\)/m);
    expect(learned).toContain('a watchlist of 7 of these SKUs');
    expect(json.now['meetsLiveInterval']).toBe(true);
    expect(Number(json.withTenMore['requestsPerMinute'])).toBe(Number(json.now['requestsPerMinute']) + 10);
    const slow = await runProgram(['plan', '--skus', '500000', '--requests', '118', '--answer-time', '1m']);
    expect(slow.stdout).toMatch(/^calls per minute with 32 under way +32 +32$/m);
    expect(slow.stdout).toContain('At answers of 1m a daemon makes 32 calls per minute');
    const small = ['plan', '--skus', '300', '--live-share', '0.05'];
    const few = await runProgram(small, { LIVE_INTERVAL: '1m' });
    expect(few.stdout).toMatch(
      /^ {2}a watchlist of 15 of these SKUs, of weight 10 +\d+\.\d\d % of the time for these$/m,
    );
    const gains = JSON.parse((await runProgram([...small, '--json'])).stdout) as { gains: object };
    expect(gains).toMatchObject({ gains: { watchedSkus: 15, others: null } });
    const wrong = await runProgram(
      'plan --skus x --requests 0 --live-moves-every soon --answer-time 0s'.split(' '),
    );
    expect(wrong.code).toBe(78);
    for (const option of ['--skus', '--requests', '--live-moves-every', '--answer-time'])
      expect(wrong.stderr).toContain(option);
  });

  test('status shows the mirror to people and to programs', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 30, liveShare: 0, ghostShare: 0, seed: 62 } });
    await stack.once();
    const env = { DATABASE_URL: stack.databaseUrl };
    const screen = await runProgram(['status'], env);
    expect(screen).toMatchObject({ code: 0, stderr: '' });
    expect(screen.stdout).toMatch(/^healthy: 30 SKUs, 0 due, delta checked \d+s ago\n\ncatalog {5}ok\n/);
    expect(screen.stdout).toMatch(/^snapshot {4}\S+; the partner's newest was built 20/m);
    expect(screen.stdout).toMatch(/^SKUs +30 priced\/snapshot$/m);
    const json = JSON.parse((await runProgram(['status', '--json'], env)).stdout) as Record<string, unknown>;
    expect(json).toMatchObject({
      snapshotId: stack.sandbox.world.newestSnapshot(),
      catalogState: 'ok',
      skus: [{ state: 'priced', priceSource: 'snapshot', count: 30 }],
      due: [],
      backlogMinutes: 0,
    });
  });
});
