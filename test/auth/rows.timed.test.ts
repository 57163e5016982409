import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type ExpectStatic, test, vi } from 'vitest';
import { processSources } from '../../src/config/config.ts';
import type { App } from '../../src/daemon/app.ts';
import { everythingToDo, letBackoffEnd } from '../contract/backoff.ts';
import { contents, logged, nextLog, readyz } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { temporaryFolder } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { outsideTraffic, samples, seen, sqlView, views } from './views.ts';

// Daemons in this process, which mostly wait. Each holds several dozen of the server's 500 connections.
vi.setConfig({ maxConcurrency: 7 });

/** A daemon at work on a filled mirror, its api_key in a file, and the partner's clock, which tests can advance. */
interface Scene {
  readonly stack: Stack;
  readonly app: App;
  readonly keyFile: string;
  readonly forward: (ms: number) => void;
}

interface Row {
  readonly name: string;
  /** Causes the condition; returns the daemon that meets it. */
  failure(scene: Scene): App | Promise<App>;
  heal(scene: Scene): unknown;
  readonly outcome: string;
  /** What every view states as known. */
  readonly known: string;
  readonly suspected: string;
  /** The text of the suspicion. */
  readonly guess: string;
}

const FEW = 'other traffic is heavy or the credential is wrong';

function stays(act: (scene: Scene) => void): (scene: Scene) => App {
  return (scene) => {
    act(scene);
    return scene.app;
  };
}

const ROWS: readonly Row[] = [
  {
    name: 'Authorization header absent',
    failure: stays(({ stack }) =>
      stack.sandbox.faults.add({ route: '*', times: Infinity, authorization: null }),
    ),
    heal: ({ stack }) => stack.sandbox.faults.clear(),
    outcome: 'unauthorised',
    known: 'throttled or refused; a 401 (the Authorization header did not arrive)',
    suspected: 'other-traffic-or-credential',
    guess: FEW,
  },
  {
    name: 'header malformed',
    failure: stays(({ stack }) =>
      stack.sandbox.faults.add({ route: '*', times: Infinity, authorization: 'Basic %%%' }),
    ),
    heal: ({ stack }) => stack.sandbox.faults.clear(),
    outcome: 'authorizer-fault',
    known: "throttled or refused; the authorizer's 500",
    suspected: 'other-traffic-or-credential',
    guess: FEW,
  },
  {
    name: 'api_key not recognised',
    async failure({ stack, app, keyFile }) {
      await app.stop();
      writeFileSync(keyFile, 'another');
      return await stack.start();
    },
    heal: ({ stack, keyFile }) => writeFileSync(keyFile, stack.sandbox.apiKey),
    outcome: 'authorizer-fault',
    known: "throttled or refused; the authorizer's 500 (an unknown api_key",
    suspected: 'other-traffic-or-credential',
    guess: FEW,
  },
  {
    name: 'api_key recognised, secret wrong',
    failure: stays(({ stack }) => stack.sandbox.rotateSecret('another')),
    heal: ({ stack }) => stack.sandbox.rotateSecret(stack.env['PARTNER_SECRET'] ?? ''),
    outcome: 'throttled-or-forbidden',
    known: 'throttled or refused; a 403',
    suspected: 'other-traffic-or-credential',
    guess: FEW,
  },
  {
    name: 'rate limit exceeded, by other services of the account',
    async failure({ stack, app }) {
      await outsideTraffic(stack.sandbox, 120);
      return app;
    },
    heal: ({ forward }) => forward(61_000),
    outcome: 'throttled-or-forbidden',
    known: 'throttled or refused; a 403',
    suspected: 'other-traffic-or-credential',
    guess: FEW,
  },
  {
    name: 'rate limit exceeded, by requests of its own',
    async failure({ stack: { sql, sandbox }, app }) {
      // As if it had run at full speed for an hour.
      await sql`update catalog_internal.pace set raised_at = now() - interval '1 hour'`;
      await sql`insert into catalog_internal.pace_sends (sent_at, lane) select now(), 'reprice' from generate_series(1, 600)`;
      await outsideTraffic(sandbox, 120);
      return app;
    },
    async heal({ stack: { sql }, forward }) {
      forward(61_000);
      await sql`update catalog_internal.pace_sends set sent_at = sent_at - interval '61 s'`;
    },
    outcome: 'throttled-or-forbidden',
    known: 'throttled or refused; a 403',
    suspected: 'rate',
    guess: 'of 1000: the rate limit is suspected',
  },
  {
    name: 'credential valid but supplier account incomplete',
    failure: stays(({ stack }) => stack.sandbox.configureAccount(false)),
    heal: ({ stack }) => stack.sandbox.configureAccount(true),
    outcome: 'account-not-configured',
    known: 'supplier account not configured',
    suspected: 'account',
    guess: 'supplier account not configured',
  },
];

async function expectSaid(
  expect: ExpectStatic,
  row: Row,
  { stack, app, requests }: { stack: Stack; app: App; requests: number },
): Promise<void> {
  const now = await views(stack, app);
  expect(now.ready).toBe(200);
  expect(now.degraded).toHaveLength(1);
  for (const text of [now.degraded[0], now.pace, now.refusal]) {
    expect(text).toContain(row.known);
    expect(text).toContain(row.guess);
    expect(text).not.toContain('the credential is suspected');
  }
  expect(now.refused).toMatchObject({ outcome: row.outcome, times: 1, suspected: row.suspected });
  expect(now.sql).toMatchObject({ refusal: row.outcome, refusals: 1 });
  expect(now.sql.refused_since?.toISOString()).toBe(now.refused?.since);
  const sample = await samples(app);
  expect(sample('partner_requests_total', `outcome="${row.outcome}"`)).toBe(requests);
  expect(['backing_off', 'refusals', 'credential_suspected'].map((name) => sample(name))).toEqual([1, 1, 0]);
  const since = sample('refused_since_timestamp_seconds') ?? 0;
  expect(since).toBeCloseTo((now.sql.refused_since?.getTime() ?? 0) / 1000, 3);
}

async function expectHealthy(expect: ExpectStatic, stack: Stack, app: App): Promise<void> {
  expect(await readyz(app)).toMatchObject({ status: 200, body: { degraded: [] } });
  expect(await sqlView(stack)).toEqual({
    refusal: null,
    refused_since: null,
    refusals: 0,
    backing_off_until: null,
  });
  const { pace, refused } = await views(stack, app);
  expect(pace).toMatch(/^pace .* ceiling \d+ per minute$/);
  expect(refused).toBeNull();
  const sample = await samples(app);
  expect(['backing_off', 'refusals', 'credential_suspected'].map((name) => sample(name))).toEqual([0, 0, 0]);
  expect(sample('refused_since_timestamp_seconds')).toBeUndefined();
}

describe.concurrent('Partner rules 5.5:', () => {
  for (const row of ROWS) {
    test(`${row.name}: costs one back-off, is explained in every view, and ends with one half-open request`, async ({
      expect,
      onTestFinished,
    }) => {
      const keyFile = join(await temporaryFolder(onTestFinished), 'api-key');
      writeFileSync(keyFile, 'sandbox-key\n');
      let shiftMs = 0;
      await using stack = await createStack({
        sandbox: { skus: 60, seed: 301, rateLimit: 100, now: () => Date.now() + shiftMs },
        env: {
          PARTNER_API_KEY: '',
          PARTNER_API_KEY_FILE: keyFile,
          PARTNER_BACKOFF: '10m',
          PARTNER_RATE_LIMIT: '1000',
        },
        readFile: processSources.readFile,
      });
      const { sandbox, sql } = stack;
      const first = await stack.start();
      await stack.caughtUp();
      const before = await contents(sql);

      const scene: Scene = { stack, app: first, keyFile, forward: (ms) => (shiftMs += ms) };
      const app = await row.failure(scene);
      const asked = sandbox.counts();
      await stack.everythingDue();
      const line = await nextLog(stack, 'pace.silenced', 0);
      await everythingToDo(stack);
      expect(line).toMatchObject({ level: 'warn', outcome: row.outcome, episodes: 1 });
      expect(line['msg']).toContain(row.known);
      // One, or a few if others were in flight when it was refused. All of them are answered and counted here.
      let requests = 0;
      await eventually(async () => {
        const refused = (await samples(app))('partner_requests_total', `outcome="${row.outcome}"`);
        requests = sandbox.counts() - asked;
        expect(refused).toBe(requests);
      });
      expect(requests).toBeLessThanOrEqual(3);
      await expectSaid(expect, row, { stack, app, requests });
      expect(await contents(sql)).toEqual(before);
      expect(sandbox.counts() - asked).toBe(requests);

      await row.heal(scene);
      await letBackoffEnd(sql);
      await nextLog(stack, 'pace.resumed', 0);
      await stack.caughtUp();
      await expectHealthy(expect, stack, app);
      await expectMirrorIsTrue(sql, sandbox.world);
      expect(logged(stack, 'pace.silenced')).toHaveLength(1);
      expect(seen(stack.logs).filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    });
  }
});
