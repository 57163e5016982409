import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRng } from '../../src/sandbox/rng.ts';
import { canary, findings } from '../security/canaries.ts';
import { allRows } from '../security/sinks.ts';
import { eventually } from '../support/eventually.ts';
import { type HttpProxy, type Mood, startHttpProxy } from '../support/http-proxy.ts';
import { deafPort } from '../support/net.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { FILLED, holds, runProgram, startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

const password = canary("the proxy's password");
const partnerSecret = canary("the partner's secret");
/**
 * Each may fail a whole run of a task, and the scheduler starts the next one five seconds later: this bounds the
 * wait below.
 */
const MAX_BAD = 6;
const LOGIN = `ann:${password.core}`;
let stack: Stack;
let proxy: HttpProxy;
let env: Readonly<Record<string, string>>;

beforeEach(async () => {
  proxy = await startHttpProxy(LOGIN);
  stack = await createStack({
    sandbox: { skus: 120, seed: 17, secret: partnerSecret.around('s/', 'é') },
    env: { PARTNER_TIMEOUT: '1s', http_proxy: proxy.url, LOG_LEVEL: 'trace' },
  });
  env = stack.env;
});
afterEach(async () => {
  await stack[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
});

const requests = () => stack.sandbox.counts('*');
const text = ({ stdout, stderr }: Record<'stdout' | 'stderr', string | readonly string[]>) =>
  [stdout, stderr].flat().join('\n');

describe('a mirror behind a proxy', () => {
  test('fills with `run --once` only through the proxy, which is never asked for a private address', async () => {
    await using trap = await deafPort();
    stack.sandbox.faults.add({
      route: 'manifest',
      mutate: (json) => ({ ...json, url: `https://10.0.0.1:${trap.port}/m.gz?X-Amz-Signature=x` }),
    });
    await using refused = startProgram(['run'], env);
    await eventually(() => refused.stdout.join('\n').includes('url-refused'), { what: 'a refused URL' });
    await refused.end('SIGTERM');
    await stack.sql`update catalog_internal.tasks set next_at = now(), failures = 0 where task = 'manifest'`;
    const ran = await runProgram(['run', '--once'], env, { timeoutMs: 150_000 });
    expect({ code: ran.code, said: ran.code === 0 ? '' : text(ran) }).toEqual({ code: 0, said: '' });
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);

    const { host } = new URL(stack.sandbox.url);
    expect(new Set(proxy.asked.map(({ authority }) => authority))).toEqual(new Set([host]));
    expect(proxy.forwarded).toEqual([]);
    // Each request that the sandbox has seen went through a tunnel.
    expect(proxy.carried.match(/(?:GET|POST) \/\S* HTTP\/1\.1/g)).toHaveLength(requests());
    expect(stack.sandbox.counts('file')).toBe(1);
    expect(proxy.heads).not.toContain('"authorization"');
    expect(proxy.carried).not.toMatch(/proxy-auth/i);

    const doctor = await runProgram(['doctor'], env);
    expect(doctor.stdout).toContain(`through proxy http://127.0.0.1:${proxy.port}`);
    const shown = await runProgram(['config'], env);
    expect(shown.stdout).toContain(`http://ann:********@127.0.0.1:${proxy.port}`);
    const direct = await runProgram(['doctor'], { ...env, NO_PROXY: '127.0.0.1' });
    expect(direct.stdout).not.toContain('through proxy');
    const outputs = { refused: text(refused), ran: text(ran), doctor: text(doctor), shown: text(shown) };
    expect(findings({ ...outputs, rows: await allRows(stack.sql) }, [password, partnerSecret])).toEqual([]);
    expect(findings({ heads: proxy.heads }, [partnerSecret])).toEqual([]);
  });

  test('treats a refusing proxy as an outage, without a back-off; doctor and the log quote its answer', async () => {
    await using daemon = startProgram(['run'], { ...env, http_proxy: proxy.url.replace('ann', 'bob') });
    const failed = await daemon.until('manifest.failed');
    expect(failed).toMatchObject({ because: 'network' });
    const doctor = await runProgram(['doctor'], { ...env, http_proxy: proxy.url.replace('ann', 'bob') });
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(/FAIL +base url .*answered 407 to CONNECT/);
    expect(requests()).toBe(0);
    const metrics = (await daemon.get('/metrics')).body;
    expect(metrics).toMatch(/partner_requests_total\{route="manifest",outcome="network"\} [1-9]/);
    expect(metrics).not.toMatch(
      /outcome="(?:throttled-or-forbidden|unauthorised|account-not-configured)"\} [1-9]/,
    );
    expect(
      await holds(
        stack.sql,
        `(select refused_at is null and backoff_until is null from catalog_internal.pace)`,
      ),
    ).toBe(true);
    await daemon.end('SIGTERM');
    const said = { stdout: daemon.stdout.join('\n'), stderr: daemon.stderr.join('\n'), doctor: text(doctor) };
    expect(said.stdout).toContain(`the proxy http://127.0.0.1:${proxy.port} answered 407`);
    expect(findings({ ...said, rows: await allRows(stack.sql) }, [password, partnerSecret])).toEqual([]);
  });

  test.each([1, 3, 8])(
    'fills whatever the proxy does, and never blames the partner: seed %i',
    async (seed) => {
      const random = createRng(seed);
      const moods: [Mood, ...Mood[]] = [
        403,
        407,
        502,
        302,
        'garbage',
        'cut',
        'silent',
        { cutAfter: 300 },
        { stallAfter: 100 },
      ];
      let bad = 0;
      proxy.mood = () => {
        // At least one: the number of tunnels does not depend on the seed.
        if (bad >= MAX_BAD || (bad > 0 && random.chance(0.5))) return 'pass';
        bad += 1;
        return random.pick(moods);
      };
      await using daemon = startProgram(['run'], env);
      await daemon.until('app.started');
      await eventually(
        async () => {
          await stack.sql`update catalog_internal.tasks set next_at = least(next_at, now()), failures = 0 where outcome <> 'done'`;
          // Idle tunnels would hide the next mood.
          if (bad < MAX_BAD && random.chance(0.2)) proxy.cutAll();
          return holds(stack.sql, FILLED);
        },
        { what: `the fill, seed ${seed}`, within: 90_000 },
      );
      const metrics = (await daemon.get('/metrics')).body;
      expect(metrics).not.toMatch(
        /outcome="(?:throttled-or-forbidden|unauthorised|account-not-configured|url-expired)"\} [1-9]/,
      );
      expect(bad).toBeGreaterThan(0);
      await daemon.end('SIGTERM');
      const said = { stdout: daemon.stdout.join('\n'), stderr: daemon.stderr.join('\n') };
      expect(
        findings({ ...said, metrics, rows: await allRows(stack.sql) }, [password, partnerSecret]),
      ).toEqual([]);
      await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    },
  );

  test('exits with 78 for an invalid proxy URL, without printing it', async () => {
    const ran = await runProgram(['run'], {
      ...env,
      http_proxy: '',
      HTTPS_PROXY: `socks5://${LOGIN}@127.0.0.1:1`,
    });
    expect(ran.code).toBe(78);
    expect(ran.stderr).toContain('HTTPS_PROXY: expected an http:// or https:// URL');
    expect(findings({ said: text(ran) }, [password])).toEqual([]);
  });

  test('runs demo without a proxy, whatever the environment sets', async () => {
    const elsewhere = { DATABASE_URL: stack.databaseUrl, http_proxy: proxy.url, HTTPS_PROXY: 'none' };
    const ran = await runProgram(['demo', '--once', '--skus', '100'], elsewhere);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
    expect(proxy.asked).toEqual([]);
  });
});
