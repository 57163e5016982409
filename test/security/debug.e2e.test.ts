import { inject } from 'vitest';
import { expect, test } from 'vitest';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

const VARIABLES = [
  ['DEBUG', '*'],
  ['DEBUG', 'ioredis:*,bull*'],
  ['NODE_DEBUG', 'undici,fetch,http,http2,net,tls,stream,fs,worker,timer'],
] as const;

test.each(VARIABLES)('%s=%s makes libraries log a lot, but no secret', async (variable, value) => {
  await using stack = await createStack({ database: 'empty', backend: 'postgres', sandbox: { skus: 5 } });
  const redisUrl = new URL(inject('redisUrl') ?? 'redis://127.0.0.1:1');
  redisUrl.username = 'default';
  redisUrl.password = 'REDISpw12345';
  const env = { ...stack.env, REDIS_URL: redisUrl.href, LOG_LEVEL: 'error', [variable]: value };
  const { stderr } = await runProgram(['run', '--once', '--timeout', '3s'], env);
  expect(stderr.split('\n').length).toBeGreaterThan(5);
  const password = new URL(stack.databaseUrl).password;
  for (const secret of ['REDISpw12345', stack.sandbox.secret, ...(password === '' ? [] : [password])])
    expect(stderr).not.toContain(secret);
  expect(stderr).not.toMatch(/signature=(?!\[redacted\])[\w%]/i);
  const doctor = await runProgram(['doctor', '--requests', '0'], env);
  expect(doctor.stderr).not.toContain('REDISpw12345');
});
