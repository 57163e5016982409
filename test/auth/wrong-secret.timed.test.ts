import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, vi } from 'vitest';
import { processSources } from '../../src/config/config.ts';
import { letBackoffEnd } from '../contract/backoff.ts';
import { logged, nextLog, readyz } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { createStack, type LogLine, type Stack } from '../support/stack.ts';
import { outsideTraffic, samples, seen, sqlView, views } from './views.ts';

// Daemons in this process, which mostly wait. Each holds several dozen of the server's 500 connections.
vi.setConfig({ maxConcurrency: 5 });

const SUSPECTED = 'the credential is suspected, or other traffic constantly fills the limit';
const timeOf = ({ time }: LogLine): number => Date.parse(String(time));
/** Repeats a check until it holds, with everything due meanwhile. */
async function atWork(stack: Stack, check: () => Promise<void> | void): Promise<void> {
  const look = async () => {
    await stack.everythingDue();
    await check();
  };
  await eventually(look, { every: 250 });
}

const refusedRequests = ({ sandbox }: Stack) => sandbox.requests.filter(({ status }) => status === 403);

describe.concurrent('a wrong secret', () => {
  test('for sixty back-offs: few half-open requests and lines, correctly explained, and recovery by itself', async ({
    expect,
  }) => {
    const backoffMs = 100;
    await using stack = await createStack({
      sandbox: { skus: 300, liveShare: 0, seed: 501 },
      env: { PARTNER_BACKOFF: `${backoffMs}ms`, PARTNER_RATE_WINDOW: '1s', DELTA_INTERVAL: '500ms' },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();

    const right = sandbox.secret;
    sandbox.rotateSecret('another');
    moveMarket(sandbox.world, 0);
    const asked = sandbox.counts();
    await stack.everythingDue();
    const first = await nextLog(stack, 'pace.silenced', 0);
    const lines = stack.logs.indexOf(first);
    await eventually(() => {
      expect(Date.now() - timeOf(first)).toBeGreaterThan(60 * backoffMs);
      expect(sandbox.counts() - asked).toBeGreaterThanOrEqual(4);
    });

    // As many as in an hour of the usual back-off (hour.test.ts), or fewer: the daemon only tries twice a second.
    const probes = sandbox.counts() - asked;
    expect(probes).toBeGreaterThanOrEqual(4);
    expect(probes).toBeLessThanOrEqual(7 + Math.ceil((Date.now() - timeOf(first)) / (10 * backoffMs)));
    expect(sandbox.requests.slice(-probes).map(({ status }) => status)).not.toContain(200);
    // A line for the back-off, and one for the task that sent the half-open request.
    expect(seen(stack.logs.slice(lines)).length).toBeLessThanOrEqual(2 * probes + 1);
    const said = logged(stack, 'pace.silenced').map(({ msg }) => String(msg));
    expect(said[0]).toContain('other traffic is heavy or the credential is wrong');
    expect(said.at(-1)).toContain(SUSPECTED);

    const during = await views(stack, app);
    expect(during.ready).toBe(200);
    for (const text of [...during.degraded, during.pace, during.refusal]) {
      expect(text).toContain(`throttled or refused; a 403 since ${during.refused?.since}`);
      expect(text).toContain(SUSPECTED);
    }
    expect(during.refused?.suspected).toBe('credential');
    expect(during.refused?.times).toBeGreaterThanOrEqual(4);
    expect(Math.abs(Date.parse(during.refused?.since ?? '') - timeOf(first))).toBeLessThan(10_000);
    expect(during.sql.refusals).toBeGreaterThanOrEqual(4);
    expect((await samples(app))('credential_suspected')).toBe(1);

    moveMarket(sandbox.world, 1);
    sandbox.rotateSecret(right);
    const healedAt = Date.now();
    const resumed = await nextLog(stack, 'pace.resumed', lines);
    // The longest back-off, and then a daemon must try; the rest is for a busy machine.
    expect(timeOf(resumed) - healedAt).toBeLessThan(10 * backoffMs + 9000);
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
    const after = await views(stack, app);
    expect(after).toMatchObject({ ready: 200, degraded: [], refusal: null, refused: null });
    expect(after.sql).toMatchObject({ refusals: 0, refusal: null, refused_since: null });
  });

  test('before the first baseline: once it is right, the manifest is fetched as soon as the pace allows', async ({
    expect,
  }) => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 502, secret: 'another' },
      env: {
        PARTNER_SECRET: 'right',
        PARTNER_BACKOFF: '100ms',
        PARTNER_RATE_WINDOW: '1s',
        DELTA_INTERVAL: '500ms',
      },
    });
    const app = await stack.start();
    await eventually(() => expect(logged(stack, 'pace.silenced').length).toBeGreaterThanOrEqual(3));
    expect(await readyz(app)).toMatchObject({
      status: 503,
      body: { reason: expect.stringMatching(/^no baseline yet/) as string },
    });
    stack.sandbox.rotateSecret('right');
    await nextLog(stack, 'pace.resumed', 0);
    await stack.caughtUp();
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  });

  test('ends `run --once` at its timeout with code 75 and what is still due, after one request', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 507 } });
    const env = { ...stack.env, PARTNER_SECRET: 'another', PARTNER_BACKOFF: '1m' };
    const { code, stdout } = await runProgram(['run', '--once', '--timeout', '3s'], env);
    expect(code).toBe(75);
    expect(stdout).toContain('still pending: a baseline');
    expect(stdout).toContain('other traffic is heavy or the credential is wrong');
    expect(stack.sandbox.counts()).toBe(1);
  });

  test('in one of two daemons: it pauses ever longer and says so, the other works, and a new file is enough', async ({
    expect,
    onTestFinished,
  }) => {
    const backoffMs = 400;
    const file = join(await temporaryFolder(onTestFinished), 'secret');
    writeFileSync(file, 'not-rotated-yet');
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 503 },
      env: { PARTNER_BACKOFF: `${backoffMs}ms`, PARTNER_RATE_WINDOW: '1s', DELTA_INTERVAL: '500ms' },
      readFile: processSources.readFile,
    });
    const { sandbox } = stack;
    const good = await stack.start();
    await stack.caughtUp();
    const bad = await stack.start({ PARTNER_SECRET: '', PARTNER_SECRET_FILE: file });
    const degraded = async (app: typeof bad) => String((await readyz(app)).body['degraded']);

    const failure = 'while those of other daemons succeeded: its own credential is suspected';
    await atWork(stack, async () => {
      expect(await degraded(bad)).toContain(failure);
    });
    expect(await degraded(good)).not.toContain(failure);
    expect(String(logged(stack, 'pace.silenced').at(-1)?.['msg'])).toContain(failure);

    // From the fourth on it stops sending for eight back-offs, then ten: the good one works meanwhile.
    await atWork(stack, () => {
      const silences = logged(stack, 'pace.silenced').map(timeOf);
      const good200 = sandbox.requests.filter(({ status }) => status === 200);
      const between = silences.map((at, i) => {
        const from = silences[i - 1] ?? at;
        const isLong = i >= 3 && at - from >= 7.5 * backoffMs;
        return isLong ? good200.filter((request) => request.at > from && request.at < at).length : 0;
      });
      expect(Math.max(...between)).toBeGreaterThanOrEqual(3);
    });
    expect((await views(stack, good)).refused?.suspected).not.toBe('credential');

    writeFileSync(file, sandbox.secret);
    await nextLog(stack, 'credential.changed', 0);
    await atWork(stack, async () => {
      expect(await degraded(bad)).toBe('');
    });
    const settled = refusedRequests(stack).length;
    await good.stop();
    await stack.everythingDue();
    await stack.caughtUp();
    expect(refusedRequests(stack)).toHaveLength(settled);
    await expectMirrorIsTrue(stack.sql, sandbox.world);
  });

  test('in one of two daemons, which pauses for long: a right secret in its file takes effect at once', async ({
    expect,
    onTestFinished,
  }) => {
    const file = join(await temporaryFolder(onTestFinished), 'secret');
    writeFileSync(file, 'not-rotated-yet');
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 506 },
      env: { PARTNER_BACKOFF: '10m', PARTNER_RATE_WINDOW: '1s', DELTA_INTERVAL: '500ms' },
      readFile: processSources.readFile,
    });
    const { sql } = stack;
    const good = await stack.start();
    await stack.caughtUp();
    await stack.start({ PARTNER_SECRET: '', PARTNER_SECRET_FILE: file });
    // Refused, then the other one let through, then refused again.
    const turns = () => stack.logs.filter(({ event }) => /^pace[.](silenced|resumed)$/.test(event));
    const heldBack = () => {
      const events = turns().map(({ event }) => event);
      const passed = events.indexOf('pace.resumed');
      return passed > 0 && events.indexOf('pace.silenced', passed) > 0;
    };
    await atWork(stack, async () => {
      if (!heldBack()) await letBackoffEnd(sql);
      expect(heldBack()).toBe(true);
    });
    // Now it leaves every half-open request to the other one.
    await atWork(stack, async () => {
      await letBackoffEnd(sql);
      expect(turns().at(-1)).toMatchObject({ event: 'pace.resumed' });
    });
    const refused = refusedRequests(stack).length;
    await stack.everythingDue();
    await stack.caughtUp();
    expect(refusedRequests(stack)).toHaveLength(refused);

    writeFileSync(file, stack.sandbox.secret);
    await good.stop();
    await stack.everythingDue();
    await stack.caughtUp();
    expect(logged(stack, 'credential.changed')).toHaveLength(1);
    expect(refusedRequests(stack)).toHaveLength(refused);
  });
});

describe.concurrent('other services of the account that are too fast,', () => {
  test('repeatedly: are never taken for a wrong credential, and the mirror works in between', async ({
    expect,
  }) => {
    let shiftMs = 0;
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 504, rateLimit: 100, now: () => Date.now() + shiftMs },
      env: { PARTNER_BACKOFF: '10m', PARTNER_RATE_WINDOW: '1s', DELTA_INTERVAL: '1s' },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    for (let storm = 1; storm <= 4; storm += 1) {
      shiftMs += 61_000;
      await outsideTraffic(sandbox, 120);
      await stack.everythingDue();
      await eventually(() => expect(logged(stack, 'pace.silenced')).toHaveLength(storm));
      const { degraded, refused } = await views(stack, app);
      expect(degraded[0]).toContain('other traffic is heavy or the credential is wrong');
      expect(refused).toMatchObject({ times: 1, suspected: 'other-traffic-or-credential' });
      shiftMs += 61_000;
      await letBackoffEnd(sql);
      await eventually(() => expect(logged(stack, 'pace.resumed')).toHaveLength(storm));
      await stack.caughtUp();
    }
    expect(JSON.stringify(stack.logs)).not.toContain('credential is suspected');
    expect((await sqlView(stack)).refusals).toBe(0);
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('in every window: both explanations are given, and the back-off ends with the traffic', async ({
    expect,
  }) => {
    let shiftMs = 0;
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 505, rateLimit: 100, now: () => Date.now() + shiftMs },
      env: { PARTNER_BACKOFF: '10m', PARTNER_RATE_WINDOW: '1s', DELTA_INTERVAL: '1s' },
    });
    const app = await stack.start();
    await stack.caughtUp();
    for (let times = 1; times <= 3; times += 1) {
      shiftMs += 61_000;
      await outsideTraffic(stack.sandbox, 120);
      // The windows pass for the mirror, too.
      await stack.sql`update catalog_internal.pace set refused_since = refused_since - interval '1 minute'`;
      await stack.everythingDue();
      await letBackoffEnd(stack.sql);
      await eventually(() => expect(logged(stack, 'pace.silenced')).toHaveLength(times));
    }
    expect(String((await readyz(app)).body['degraded'])).toContain(SUSPECTED);
    shiftMs += 61_000;
    await letBackoffEnd(stack.sql);
    await nextLog(stack, 'pace.resumed', 0);
    await stack.caughtUp();
    expect(await readyz(app)).toMatchObject({ status: 200, body: { degraded: [] } });
  });
});
