import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { adoptAccount, DaemonsRunning } from '../../src/store/setup/account.ts';
import { actingLogins } from '../support/acting-login.ts';
import { moveMarket } from '../support/market.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram, startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

const SANDBOX = { skus: 120, liveShare: 0.1 };

/** Returns the same partner's URL under another name: `localhost` in place of 127.0.0.1. */
function otherName(url: string): string {
  const other = new URL(url);
  other.hostname = 'localhost';
  return other.href;
}

/** Starts another account's catalog: the same SKUs with different prices. */
async function otherAccount(world: Stack['sandbox']['world']) {
  const sandbox = await startSandbox({ ...SANDBOX, rateLimit: 1_000_000, orders: 0, listings: 0 });
  for (const { sku, sizeMap } of sandbox.world.truth().values())
    for (const [size, price] of Object.entries(sizeMap))
      sandbox.world.setPrice(sku, size, (price ?? 0) + 100);
  sandbox.world.buildSnapshot();
  expect(new Set(sandbox.world.truth().keys())).toEqual(new Set(world.truth().keys()));
  return sandbox;
}

const actionable = async ({ sql }: Stack): Promise<number> =>
  Number((await sql`select count(*) from catalog.sku_trust where actionable`)[0]?.['count']);

describe.concurrent('a database that mirrors a partner', () => {
  test('refuses a daemon of another partner with exit code 78 and both names', async ({ expect }) => {
    await using stack = await createStack({ sandbox: SANDBOX });
    await stack.once();
    const other = otherName(stack.sandbox.url);
    await expect(stack.start({ PARTNER_BASE_URL: other })).rejects.toThrow(ConfigError);
    const { code, stderr } = await runProgram(['run', '--once'], {
      ...stack.env,
      PARTNER_BASE_URL: other,
    });
    expect(code).toBe(78);
    expect(stderr).toMatch(
      /PARTNER_BASE_URL: expected http:\/\/127\.0\.0\.1, .* got "http:\/\/localhost"; .*--adopt-account/,
    );
    expect(stderr).not.toContain(stack.sandbox.apiKey);
    const doctor = await runProgram(['doctor', '--requests', '0'], { ...stack.env, PARTNER_BASE_URL: other });
    expect(doctor.stdout).toMatch(/FAIL +account/);
  });

  test('switches to another account when told to: no price is trusted until it was asked for again', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: SANDBOX });
    await stack.once();
    expect(await actionable(stack)).toBeGreaterThan(0);
    await using other = Object.assign(await otherAccount(stack.sandbox.world), {
      [Symbol.asyncDispose]: () => other.close(),
    });
    const account = { baseUrl: otherName(other.url), apiKey: other.apiKey };
    const app = await stack.start();
    await expect(adoptAccount(stack.sql, account)).rejects.toThrow(DaemonsRunning);
    await app.stop();
    await adoptAccount(stack.sql, account);
    expect(await actionable(stack)).toBe(0);
    const asOther = {
      PARTNER_BASE_URL: account.baseUrl,
      PARTNER_API_KEY: other.apiKey,
      PARTNER_SECRET: other.secret,
    };
    const adopted = await stack.start(asOther);
    await stack.caughtUp();
    await adopted.stop();
    await expectMirrorIsTrue(stack.sql, other.world);
    await expectHistoryIsAChain(stack.sql);
  });

  test('ends a daemon that was suspended while the account was switched, before it writes anything', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: SANDBOX });
    await stack.once();
    await using away = startProgram(['run'], stack.env);
    await away.until('app.started');
    away.signal('SIGSTOP');
    // As if its host had not answered for some seconds. Its other sessions are still there when it comes back.
    await stack.sql`
      select pg_terminate_backend(pid, 10000) from pg_stat_activity
      where datname = current_database() and application_name = 'catalog-mirror instance'`;
    await using other = Object.assign(await otherAccount(stack.sandbox.world), {
      [Symbol.asyncDispose]: () => other.close(),
    });
    const account = { baseUrl: otherName(other.url), apiKey: other.apiKey };
    await adoptAccount(stack.sql, account);
    await stack.start({
      PARTNER_BASE_URL: account.baseUrl,
      PARTNER_API_KEY: other.apiKey,
      PARTNER_SECRET: other.secret,
    });
    await stack.caughtUp();
    const [{ position }] = await stack.sql<
      [{ position: string }]
    >`select catalog.changes_position() as position`;
    away.signal('SIGCONT');
    await stack.everythingDue();
    expect(await away.exited).toEqual({ code: 78, signal: null });
    expect(away.logged('app.other-account')).toHaveLength(1);
    expect(away.stderr.join('\n')).toMatch(/PARTNER_BASE_URL: expected .* mirrors by now/);
    await stack.caughtUp();
    expect(await stack.sql`select * from catalog.changes(${position})`).toEqual([]);
    await expectMirrorIsTrue(stack.sql, other.world);
  });

  test('accepts another api_key of the same partner, and logs that once', async ({ expect }) => {
    await using stack = await createStack({ sandbox: SANDBOX });
    await stack.once();
    const told = () => stack.logs.filter(({ event }) => event === 'credential.key-replaced').length;
    expect(told()).toBe(0);
    await (await stack.start({ PARTNER_API_KEY: 'another-key' })).stop();
    expect(told()).toBe(1);
    await (await stack.start({ PARTNER_API_KEY: 'another-key' })).stop();
    expect(told()).toBe(1);
    const { stdout } = await runProgram(['doctor', '--requests', '0'], {
      ...stack.env,
      PARTNER_API_KEY: 'another-key',
    });
    expect(stdout).toMatch(/WARN +account/);
  });

  test('refuses a replica of another partner even before the first baseline, and accepts it once it is empty', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: SANDBOX });
    stack.sandbox.faults.add({ route: 'manifest', status: 500 });
    const app = await stack.start();
    const other = { PARTNER_BASE_URL: otherName(stack.sandbox.url) };
    await expect(stack.start(other)).rejects.toThrow(ConfigError);
    await app.stop();
    await stack.sql`truncate catalog.skus`;
    await stack.sql`update catalog_internal.sync set manifest_applied_at = null`;
    await (await stack.start(other)).stop();
  });
});

test('sequences that are behind their rows when a daemon starts lose no price', async () => {
  await using stack = await createStack({ sandbox: SANDBOX });
  await stack.once();
  moveMarket(stack.sandbox.world, 1);
  await stack.everythingDue();
  await stack.once();
  await stack.sql`
    select setval((schemaname || '.' || sequencename)::regclass, start_value, false) from pg_sequences
    where schemaname in ('catalog', 'catalog_internal')`;
  moveMarket(stack.sandbox.world, 2);
  await stack.everythingDue();
  await stack.once();
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  await expectHistoryIsAChain(stack.sql);
});

test('a login that acts as another role fills a mirror owned by that role, and the next login continues it', async () => {
  await using stack = await createStack({ backend: 'postgres', database: 'empty', sandbox: SANDBOX });
  await using acting = await actingLogins(stack.sql, stack.databaseUrl);
  for (const turn of [1, 2]) {
    const env = { ...stack.env, DATABASE_URL: await acting.login() };
    const { code, stderr } = await runProgram(['run', '--once'], env);
    expect({ turn, code, stderr }).toMatchObject({ turn, code: 0 });
    moveMarket(stack.sandbox.world, turn);
    await stack.everythingDue();
  }
  expect(
    await stack.sql`select distinct tableowner::text as owner from pg_tables where schemaname = 'catalog'`,
  ).toEqual([{ owner: acting.owner }]);
});
