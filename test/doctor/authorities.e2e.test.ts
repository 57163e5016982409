import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { certificate, tlsProxyTo } from '../security/tls-proxy.ts';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

test('--env-file may set NODE_EXTRA_CA_CERTS', async () => {
  await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 40, seed: 76 } });
  await using proxy = await tlsProxyTo(stack.sandbox.url, { protocol: 'redis' });
  // The manifest file is not behind the proxy, and the sandbox knows nothing of the proxy's TLS.
  Object.assign(stack.sandbox.options, { publicUrl: stack.sandbox.url });
  const env = { ...stack.env, PARTNER_BASE_URL: `https://localhost:${proxy.port}` };
  const file = join(await temporaryFolder(onTestFinished), 'mirror.env');
  await writeFile(file, `NODE_EXTRA_CA_CERTS=${certificate('ca.pem')}\n`);
  const { code, stdout } = await runProgram(['doctor', '--env-file', file], env);
  expect(stdout).toMatch(/^OK   tls .*valid until/m);
  expect(code).toBe(0);
  await writeFile(file, 'NODE_EXTRA_CA_CERTS=/nowhere/ca.pem\n');
  expect(await runProgram(['doctor', '--env-file', file], env)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('NODE_EXTRA_CA_CERTS: expected the path') as unknown,
  });
});
