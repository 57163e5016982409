import { describe, inject, test } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { fakeRedis } from '../support/net.ts';
import { type Env, runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

type Finding = { check: string; level: string; text: string; todo?: string };

async function examined(
  sandbox: SandboxOptions,
  env: Env = {},
): Promise<{ code: number | null; findings: Finding[] }> {
  await using stack = await createStack({ sandbox: { skus: 60, liveShare: 0, seed: 71, ...sandbox } });
  const { code, stdout } = await runProgram(['doctor', '--json'], { ...stack.env, ...env });
  return { code, findings: JSON.parse(stdout) as Finding[] };
}

const failures = (findings: readonly Finding[]) => findings.filter(({ level }) => level === 'FAIL');
const failure = (check: string, todo: string) => (expect: { stringContaining(text: string): unknown }) => [
  { check, level: 'FAIL', todo: expect.stringContaining(todo) },
];

describe.concurrent('doctor', () => {
  test('has nothing to fail where all is well, and says so line by line', async ({ expect }) => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 71 } });
    const { code, stdout } = await runProgram(['doctor'], stack.env);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/^FAIL/m);
    for (const check of ['postgres', 'queues', 'credential', 'manifest', 'bulk body', 'prices', 'clock'])
      expect(stdout).toMatch(new RegExp(`^OK   ${check}`, 'm'));
    expect(stdout).not.toContain(stack.sandbox.secret);
  });

  const cases: Record<string, { sandbox?: SandboxOptions; env?: Env; fails: ReturnType<typeof failure> }> = {
    'a wrong secret': { env: { PARTNER_SECRET: 'another' }, fails: failure('credential', 'credential') },
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
      fails: failure('bulk', 'PARTNER_BULK_BODY_KEY'),
    },
    'a wrong name of the price': {
      sandbox: { dialect: { entries: 'object', priceField: 'thb' } },
      fails: failure('prices', 'PARTNER_PRICE_FIELDS'),
    },
    'a wrong name of the manifest URL': {
      env: { PARTNER_MANIFEST_URL_FIELD: 'elsewhere' },
      fails: failure('manifest', 'PARTNER_MANIFEST_URL_FIELD'),
    },
    'no snapshot yet': { sandbox: { initialSnapshot: false }, fails: failure('manifest', 'snapshot') },
    'a partner that is not there': {
      env: { PARTNER_BASE_URL: 'http://127.0.0.1:1' },
      fails: failure('manifest', 'PARTNER_BASE_URL'),
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

  test('fails on a Postgres that is not there', async ({ expect }) => {
    const { code, findings } = await examined({}, { DATABASE_URL: 'postgres://x:y@127.0.0.1:1/x' });
    expect(code).toBe(1);
    expect(failures(findings)).toMatchObject([
      { check: 'postgres', todo: expect.stringContaining('DATABASE_URL') },
    ]);
    expect(findings.at(-1)).toMatchObject({ check: 'partner', level: 'WARN', text: 'not asked' });
  });

  test('fails on a Redis that may evict jobs, and takes one that may not', async ({ expect }) => {
    await using evicting = await fakeRedis('allkeys-lru');
    const { code, findings } = await examined({}, { REDIS_URL: `redis://127.0.0.1:${evicting.port}` });
    expect({ code, failures: failures(findings) }).toMatchObject({
      code: 1,
      failures: [{ check: 'redis policy', text: 'allkeys-lru', todo: expect.stringContaining('noeviction') }],
    });
    const redis = inject('redisUrl');
    if (redis === null) return;
    expect((await examined({}, { REDIS_URL: redis })).findings).toContainEqual(
      expect.objectContaining({ check: 'redis', level: 'OK' }),
    );
  });

  test('warns of a clock that differs from the partner’s', async ({ expect }) => {
    const { code, findings } = await examined({ now: () => Date.now() - 600_000 });
    expect(code).toBe(0);
    expect(findings).toContainEqual(expect.objectContaining({ check: 'clock', level: 'WARN' }));
  });
});
