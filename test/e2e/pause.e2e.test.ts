import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readyz } from '../contract/harness.ts';
import { eventually, pause as wait } from '../support/eventually.ts';
import { FILLED, holds, runProgram, startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

/** Longer than a daemon, by its schedules, takes to ask for something that is due. */
const LONG_ENOUGH_MS = 4000;
let stack: Stack;
const mirror = (...args: string[]) => runProgram(args, { DATABASE_URL: stack.databaseUrl });
const ledgerWide = () => stack.sandbox.counts('*') - stack.sandbox.counts('file');

beforeEach(async () => {
  stack = await createStack({
    sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 81 },
    env: { DELTA_INTERVAL: '1s', CATALOG_CHECK_INTERVAL: '2s' },
  });
});
afterEach(() => stack[Symbol.asyncDispose]());

/** Makes everything due that can be asked for, and returns a SKU. */
async function everythingDue(): Promise<string> {
  await stack.everythingDue();
  await stack.sql`update catalog_internal.tasks set next_at = now() where task in ('delta', 'catalog-check', 'manifest')`;
  const [row] = await stack.sql<[{ sku: string }]>`select sku from catalog.skus order by sku limit 1`;
  await refreshSkus(stack.sql, [row.sku]);
  return row.sku;
}

async function expectNoRequests(): Promise<void> {
  const before = ledgerWide();
  await wait(LONG_ENOUGH_MS);
  expect(ledgerWide()).toBe(before);
}

/** Waits until requests in flight at the pause are answered and no earlier permit is left. */
const settled = () => wait(2500);

describe('catalog-mirror pause', () => {
  test('stops every request of two replicas, also after a restart, but nothing else, until resume', async () => {
    const { sql, env } = stack;
    await using one = startProgram(['run'], env);
    await eventually(() => holds(sql, FILLED), { what: 'the fill' });
    await using two = startProgram(['run'], env);
    await two.until('app.started');

    expect(await mirror('resume')).toMatchObject({ code: 0, stdout: 'requests are not paused' });
    expect(await mirror('pause')).toMatchObject({
      code: 0,
      stdout:
        'requests to the partner are paused until `catalog-mirror resume`; those under way are finished',
    });
    await settled();
    const sku = await everythingDue();
    await expectNoRequests();
    const [paused] = [await one.until('requests.paused'), await two.until('requests.paused')];
    expect(paused).toMatchObject({ by: expect.stringContaining('@') as string, pausedUntil: null });

    // Everything but requests continues, and reports the pause.
    const ready = await one.get('/readyz');
    expect([ready.status, JSON.parse(ready.body)]).toMatchObject([200, { ok: true, state: 'paused' }]);
    expect((await one.get('/livez')).status).toBe(200);
    expect((await one.get('/metrics')).body).toContain('catalog_mirror_paused 1\n');
    expect((await one.get('/')).body).toContain('all requests to the partner are paused');
    expect(JSON.parse((await one.get('/status.json')).body)).toMatchObject({
      pace: { paused: { until: null } },
    });
    expect(await sql`select paused_until = 'infinity' as paused from catalog.sync_status`).toEqual([
      { paused: true },
    ]);
    expect(await mirror('status')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^paused: all requests/) as string,
    });
    expect(await mirror('refresh', sku)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('requests to the partner are paused') as string,
    });
    expect(await mirror('verify')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('so nothing would be asked') as string,
    });
    const doctor = await runProgram(['doctor', '--json'], env);
    expect(JSON.parse(doctor.stdout)).toMatchObject({ requests: { sent: [] } });
    expect(doctor.stdout).toContain('requests to the partner are paused');

    await one.end('SIGTERM');
    await using again = startProgram(['run'], env);
    expect(await again.until('requests.paused')).toMatchObject({ pausedUntil: null });
    await expectNoRequests();

    const [bulks, deltas] = [stack.sandbox.counts('bulk'), stack.sandbox.counts('delta')];
    expect(await mirror('resume')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^requests to the partner go again; they were paused by /) as string,
    });
    await eventually(() => stack.sandbox.counts('bulk') > bulks && stack.sandbox.counts('delta') > deltas, {
      what: 'bulk calls and deltas again',
    });
    await again.until('requests.resumed');
    await eventually(() => holds(sql, FILLED), { what: 'the backlog' });
    await eventually(async () => expect(await mirror('status')).toMatchObject({ code: 0 }));
  });

  test('--for ends by itself, and a second one replaces its end', async () => {
    const app = await stack.start();
    await stack.caughtUp();
    expect(await mirror('pause', '--for', '1h')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^requests to the partner are paused until 20.+Z \(1h\); those/,
      ) as string,
    });
    await eventually(async () =>
      expect(await readyz(app)).toMatchObject({ status: 200, body: { state: 'paused' } }),
    );
    expect(await mirror('pause', '--for', '8s')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^requests were paused already, and are now until 20.+Z \(8s\)$/,
      ) as string,
    });
    const { sql, sandbox } = stack;
    await everythingDue();
    const [{ set_at: setAt, until }] = await sql<[{ set_at: Date; until: Date }]>`
      select set_at, until from catalog_internal.pause`;
    await eventually(() => holds(sql, FILLED), { what: 'all that is due' });
    const sent = sandbox.requests.map(({ at }) => at);
    expect(sent.filter((at) => at > setAt.getTime() + 2500 && at < until.getTime() - 500)).toEqual([]);
    expect(sent.some((at) => at >= until.getTime() - 500)).toBe(true);
    await eventually(async () => expect((await readyz(app)).body).toMatchObject({ state: 'healthy' }));
    await eventually(() =>
      expect(stack.logs.map(({ event }) => event)).toEqual(
        expect.arrayContaining(['requests.paused', 'requests.resumed']),
      ),
    );
  });

  test.each(['', '0', 'soon', '-5m', '400d'])('refuses --for %j, with exit code 78', async (length) => {
    expect(await mirror('pause', `--for=${length}`)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('--for: expected a duration such as 30m or 2h') as string,
    });
    expect(await stack.sql`select from catalog_internal.pause`).toHaveLength(0);
  });
});
