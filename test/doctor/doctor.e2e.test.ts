import { describe, inject, test } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { certificate, tlsProxyTo } from '../security/tls-proxy.ts';
import { createDatabase } from '../support/db.ts';
import { type Env, runProgram } from '../support/process.ts';
import { hasRedisServer, startRedisServer } from '../support/redis-server.ts';
import { createStack } from '../support/stack.ts';

type CheckResult = { check: string; level: string; text: string; todo: string | null };
interface Said {
  ok: boolean;
  checks: CheckResult[];
  requests: { most: number; sent: { route: string; outcome: string }[] };
  settings: { name: string; value: string }[];
  unknown: string[];
}

/** The limits of a default account, with which nothing is wrong. */
const USUAL = { PARTNER_RATE_LIMIT: '200', PARTNER_RATE_SHARE: '0.6' };

async function examined(
  sandbox: SandboxOptions,
  env: Env = {},
): Promise<{ code: number | null; findings: CheckResult[] }> {
  await using stack = await createStack({
    backend: 'postgres',
    sandbox: { skus: 60, liveShare: 0, seed: 71, ...sandbox },
  });
  const { code, stdout } = await runProgram(['doctor', '--json'], { ...stack.env, ...env });
  return { code, findings: (JSON.parse(stdout) as Said).checks };
}

const failures = (findings: readonly CheckResult[]) => findings.filter(({ level }) => level === 'FAIL');
const failure = (check: string, remedy: string) => (expect: { stringContaining(text: string): unknown }) => [
  { check, level: 'FAIL', todo: expect.stringContaining(remedy) },
];

describe.concurrent('doctor', () => {
  test('finds nothing to fail if all is well, and says so line by line', async ({ expect }) => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 60, seed: 71 } });
    const { code, stdout } = await runProgram(['doctor'], stack.env);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/^FAIL/m);
    for (const check of ['postgres', 'queues', 'credential', 'manifest', 'bulk body', 'prices', 'clock'])
      expect(stdout).toMatch(new RegExp(`^OK   ${check}`, 'm'));
    expect(stdout).not.toContain(stack.sandbox.secret);
  });

  test('ends the pause of bulk calls after an outage when the partner answers', async ({ expect }) => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 60, seed: 71 } });
    await stack.sql`
      update catalog_internal.tasks set failures = 8, outcome = 'network', next_at = now() + interval '5 minutes'
      where task = 'reprice'`;
    await runProgram(['doctor', '--requests', '1'], stack.env);
    expect(
      await stack.sql`select from catalog_internal.tasks where task = 'reprice' and next_at <= now()`,
    ).toHaveLength(1);
  });

  const cases: Record<string, { sandbox?: SandboxOptions; env?: Env; fails: ReturnType<typeof failure> }> = {
    'a wrong secret': { env: { PARTNER_SECRET: 'another' }, fails: failure('credential', 'PARTNER_SECRET') },
    'an unknown api_key': {
      env: { PARTNER_API_KEY: 'another' },
      fails: failure('credential', 'PARTNER_API_KEY'),
    },
    'an account that is not set up': {
      sandbox: { accountConfigured: false },
      fails: failure('credential', 'supplier account'),
    },
    'a wrong name of the bulk body': {
      sandbox: { dialect: { bulkBodyKey: 'sku_list' } },
      fails: failure('bulk body', 'PARTNER_BULK_BODY_KEY=sku_list'),
    },
    'a wrong name of the price': {
      sandbox: { dialect: { entries: 'object', priceField: 'thb' } },
      fails: failure('prices', 'PARTNER_PRICE_FIELDS=thb'),
    },
    'a wrong name of the manifest URL': {
      env: { PARTNER_MANIFEST_URL_FIELD: 'elsewhere' },
      fails: failure('manifest url', 'PARTNER_MANIFEST_URL_FIELD=url'),
    },
    'no snapshot yet': { sandbox: { initialSnapshot: false }, fails: failure('manifest', 'snapshot') },
    'a partner that is not there': {
      env: { PARTNER_BASE_URL: 'http://127.0.0.1:1' },
      fails: failure('base url', 'PARTNER_BASE_URL'),
    },
    'a Redis that is not there': {
      env: { REDIS_URL: 'redis://127.0.0.1:1' },
      fails: failure('redis', 'REDIS_URL'),
    },
  };
  for (const [name, { sandbox = {}, env = {}, fails }] of Object.entries(cases)) {
    test(`fails on ${name}, and says what to do`, async ({ expect }) => {
      const { code, findings } = await examined(sandbox, env);
      expect({ code, failures: failures(findings) }).toMatchObject({ code: 1, failures: fails(expect) });
    });
  }

  test('fails if Postgres is not there', async ({ expect }) => {
    const { code, findings } = await examined({}, { DATABASE_URL: 'postgres://x:y@127.0.0.1:1/x' });
    expect(code).toBe(1);
    expect(failures(findings)).toMatchObject([
      { check: 'postgres', todo: expect.stringContaining('DATABASE_URL') },
    ]);
    expect(findings.at(-1)).toMatchObject({
      check: 'partner',
      level: 'WARN',
      text: expect.stringContaining('skipped'),
    });
  });

  const withRedisServer = hasRedisServer ? test : test.skip;
  withRedisServer('fails on a Redis that may evict jobs, and takes one that may not', async ({ expect }) => {
    await using redis = await startRedisServer();
    const env = { REDIS_URL: redis.url };
    const { findings } = await examined({}, env);
    expect(failures(findings)).toEqual([]);
    expect(findings).toContainEqual(expect.objectContaining({ check: 'redis jobs', level: 'OK' }));
    expect(await redis.command('KEYS', '*')).toEqual([]);
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    const evicting = await examined({}, env);
    expect({ code: evicting.code, failures: failures(evicting.findings) }).toMatchObject({
      code: 1,
      failures: [{ check: 'redis policy', text: 'allkeys-lru', todo: expect.stringContaining('noeviction') }],
    });
  });

  withRedisServer('fails on a Redis that takes no job, however well it looks', async ({ expect }) => {
    await using redis = await startRedisServer();
    const asUser = async (...rules: string[]) => {
      await redis.command('ACL', 'SETUSER', 'mirror', 'reset', 'on', '>secret', ...rules);
      return await examined({}, { REDIS_URL: redis.url.replace('redis://', 'redis://mirror:secret@') });
    };
    const jobs = (text: string) => [{ check: 'redis jobs', text: expect.stringContaining(text) }];
    const mute = await asUser('~*', '+@all', '-@scripting');
    expect(failures(mute.findings)).toMatchObject(jobs('NOPERM'));
    const partly = await asUser('~*', '+@all', '-xadd');
    expect(failures(partly.findings)).toMatchObject(jobs("can't run this command"));
    const silent = await asUser('~*', '+@all', '-@blocking');
    expect(failures(silent.findings)).toMatchObject(jobs('bzpopmin'));
    const fenced = await asUser('~other:*', '+@all');
    expect(failures(fenced.findings)).toMatchObject(jobs('NOPERM'));
    const usual = await asUser('~catalog-mirror:*', '~test-*', '+@all', '-@dangerous');
    expect(failures(usual.findings)).toEqual([]);
    expect(usual.findings).toContainEqual(expect.objectContaining({ check: 'redis', level: 'WARN' }));
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    const full = await examined({}, { REDIS_URL: redis.url });
    expect(failures(full.findings)).toMatchObject(jobs('OOM'));
  });

  test('warns if its clock differs from the partner’s', async ({ expect }) => {
    const { code, findings } = await examined({ now: () => Date.now() - 600_000 });
    expect(code).toBe(0);
    expect(findings).toContainEqual(expect.objectContaining({ check: 'clock', level: 'WARN' }));
  });

  const DIALECTS: Record<string, NonNullable<SandboxOptions['dialect']>> = {
    'the defaults': {},
    'objects everywhere, and fields nobody knows': {
      elements: 'object',
      changedElements: 'object',
      entries: 'object',
      extraFields: true,
    },
    'numeric strings, other names found by shape': {
      entries: 'string',
      counts: 'string',
      urlField: 'download_link',
      snapshotIdField: 'snapshotId',
      gzipFile: 'encoding',
    },
    'names in no list': {
      bulkBodyKey: 'wanted_ones',
      elements: 'object',
      changedElements: 'object',
      skuField: 'code_of_it',
      entries: 'object',
      priceField: 'thb',
      urlField: 'where',
      snapshotIdField: 'rev',
      extraFields: true,
    },
  };
  for (const [name, dialect] of Object.entries(DIALECTS)) {
    test(`finds the names within five requests, and is content with them pinned: ${name}`, async ({
      expect,
    }) => {
      await using stack = await createStack({
        backend: 'postgres',
        sandbox: { skus: 120, liveShare: 0.1, seed: 72, dialect },
        env: USUAL,
      });
      const first = JSON.parse((await runProgram(['doctor', '--json'], stack.env)).stdout) as Said;
      const api = () => stack.sandbox.requests.filter(({ route }) => route !== 'file').length;
      expect(api()).toBe(first.requests.sent.length);
      expect(api()).toBeLessThanOrEqual(5);
      const pinned = Object.fromEntries(first.settings.map((setting) => [setting.name, setting.value]));
      expect(pinned).toMatchObject({
        PARTNER_BULK_BODY_KEY: dialect.bulkBodyKey ?? 'skus',
        PARTNER_MANIFEST_URL_FIELD: dialect.urlField ?? 'url',
        PARTNER_SNAPSHOT_ID_FIELD: dialect.snapshotIdField ?? 'snapshot_id',
      });
      expect(pinned['PARTNER_PRICE_FIELDS']).toBe(
        dialect.entries === 'object' ? (dialect.priceField ?? 'price') : undefined,
      );
      expect(pinned['PARTNER_SKU_FIELD']).toBe(
        dialect.elements === 'object' ? (dialect.skuField ?? 'sku') : undefined,
      );
      const again = await runProgram(['doctor', '--json'], { ...stack.env, ...pinned });
      const second = JSON.parse(again.stdout) as Said;
      expect({ code: again.code, bad: second.checks.filter(({ level }) => level !== 'OK') }).toEqual({
        code: 0,
        bad: [],
      });
      expect(second.settings.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual(
        first.settings.toSorted((a, b) => a.name.localeCompare(b.name)),
      );
    });
  }

  test('sends no more requests than allowed, and says what it could not determine', async ({ expect }) => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 60, seed: 73 } });
    const { stdout } = await runProgram(['doctor', '--json', '--requests', '1'], stack.env);
    const said = JSON.parse(stdout) as Said;
    expect(stack.sandbox.counts('manifest') + stack.sandbox.counts('bulk')).toBe(1);
    expect(said.requests).toEqual({ most: 1, sent: [{ route: 'manifest', outcome: 'ok' }] });
    expect(said.unknown.join()).toContain('all 1 requests are used');
    expect((await runProgram(['doctor', '--requests', '-1'], stack.env)).code).toBe(78);
  });

  test('counts its requests in the mirror’s ledger, next to a daemon', async ({ expect }) => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 60, seed: 74 } });
    await stack.start();
    await stack.caughtUp();
    const { code, stdout } = await runProgram(['doctor', '--json'], stack.env);
    const said = JSON.parse(stdout) as Said;
    const [{ sends }] = await stack.sql<[{ sends: number }]>`
      select count(*)::int as sends from catalog_internal.pace_sends where lane = 'doctor'`;
    expect({ code, sends }).toEqual({ code: 0, sends: said.requests.sent.length });
    expect(said.checks).toContainEqual(
      expect.objectContaining({ check: 'daemons', text: '1 running on this database' }),
    );
    const differing = (checks: Said['checks']) => checks.filter(({ check }) => check === 'settings');
    expect(differing(said.checks)).toEqual([]);
    const other = { ...stack.env, SWEEP_INTERVAL: '5d' };
    const { checks } = JSON.parse(
      (await runProgram(['doctor', '--json', '--requests', '0'], other)).stdout,
    ) as Said;
    expect(differing(checks)).toMatchObject([
      { level: 'WARN', text: expect.stringMatching(/: SWEEP_INTERVAL$/) as string },
    ]);
  });

  test('says after a wrong secret how long the back-off lasts, what was rejected, and what to do', async ({
    expect,
  }) => {
    await using stack = await createStack({
      backend: 'postgres',
      sandbox: { skus: 20, seed: 75 },
      env: { PARTNER_BACKOFF: '60s' },
    });
    await stack.start();
    await stack.caughtUp();
    const env = { ...stack.env, PARTNER_SECRET: 'another-secret' };
    const runs = [await runProgram(['doctor'], env), await runProgram(['doctor'], env)];
    expect(runs.map(({ code }) => code)).toEqual([1, 1]);
    expect(runs[0]?.stdout).toMatch(/^FAIL credential .*status 403.*requests are paused for/m);
    expect(runs[1]?.stdout).toMatch(
      /^FAIL credential .*requests are paused for another \d+s; .*a 403 since/m,
    );
    expect(runs[1]?.stdout).toMatch(
      /check PARTNER_API_KEY, PARTNER_SECRET and the other services.*run doctor again after \d{4}-/,
    );
    expect(runs[1]?.stdout).toContain('0 of at most 5 requests sent');
    expect(runs.map(({ stdout }) => stdout).join()).not.toContain('another-secret');
  });

  test('names a damaged secret, and never shows it', async ({ expect }) => {
    const cases: [string, number, RegExp][] = [
      ['hush-hush\n', 78, /PARTNER_SECRET: .*ends in a newline/],
      ['hush-hush\r\n', 78, /PARTNER_SECRET: .*ends in a newline \(CR LF\)/],
      ['\uFEFFhush-hush', 78, /PARTNER_SECRET: .*byte order mark/],
      ['"hush-hush"', 1, /WARN partner_secret +is wrapped in quotes/],
      ['hush-hush ', 1, /WARN partner_secret +begins or ends in white space/],
    ];
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 20 } });
    for (const [secret, expected, says] of cases) {
      const { code, stdout, stderr } = await runProgram(['doctor'], { ...stack.env, PARTNER_SECRET: secret });
      expect({ secret, code }).toEqual({ secret, code: expected });
      expect(`${stdout}${stderr}`).toMatch(says);
      expect(`${stdout}${stderr}`).not.toContain('hush-hush');
    }
  });

  test('accepts a trusted certificate over https, and sends nothing to an untrusted one', async ({
    expect,
  }) => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 40, seed: 76 } });
    await using proxy = await tlsProxyTo(stack.sandbox.url, { protocol: 'redis' });
    // The manifest file is not behind the proxy, and the sandbox knows nothing of the proxy's TLS.
    Object.assign(stack.sandbox.options, { publicUrl: stack.sandbox.url });
    const env = { ...stack.env, PARTNER_BASE_URL: `https://localhost:${proxy.port}` };
    const untrusted = await runProgram(['doctor'], env);
    expect(untrusted.code).toBe(1);
    expect(untrusted.stdout).toMatch(/^FAIL base url .*not trusted/m);
    expect(untrusted.stdout).toMatch(/^WARN partner +skipped: the base URL/m);
    expect(stack.sandbox.counts()).toBe(0);
    const trusted = await runProgram(['doctor'], { ...env, NODE_EXTRA_CA_CERTS: certificate('ca.pem') });
    expect(trusted.code).toBe(0);
    expect(trusted.stdout).toMatch(/^OK   tls .*valid until/m);
  });

  test('names the privileges that the role lacks', async ({ expect, onTestFinished }) => {
    const database = await createDatabase();
    const role = `poor_${new URL(database.url).pathname.slice(1)}`;
    const { default: postgres } = await import('postgres');
    const admin = postgres(database.url, { max: 1, onnotice: () => {} });
    onTestFinished(async () => {
      await database.drop();
      const server = postgres(inject('postgresUrl'), { max: 1 });
      await server.unsafe(`drop role ${role}`);
      await server.end();
    });
    await admin.unsafe(`create role ${role} login password 'pw'`);
    await admin.unsafe(`revoke temporary on database ${new URL(database.url).pathname.slice(1)} from public`);
    await admin.end();
    const url = new URL(database.url);
    url.username = role;
    url.password = 'pw';
    const { code, findings } = await examined({}, { DATABASE_URL: url.href });
    expect(code).toBe(1);
    expect(failures(findings)).toMatchObject([
      { check: 'rights', todo: expect.stringMatching(/^GRANT CREATE ON DATABASE/) },
      { check: 'rights', todo: expect.stringMatching(/^GRANT TEMPORARY ON DATABASE/) },
    ]);
  });
});
