import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { follow } from '../../src/client/follow.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((own) => own?.address === '::1');

/** Opens a port of ::1 that leads to the server of a URL. */
async function ipv6To({ hostname, port }: URL) {
  let connections = 0;
  const server = createServer((client) => {
    connections += 1;
    const up = connectTcp(Number(port), hostname);
    void pipeline(client, up, client).catch(() => {});
  });
  server.listen(0, '::1');
  await once(server, 'listening');
  return {
    host: `[::1]:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.skipIf(!hasIpv6).for(backends())(
  'a mirror is filled and followed over an IPv6 address: queues in %s',
  async (backend) => {
    await using stack = await createStack({ backend, sandbox: { skus: 60, seed: 17 } });
    const database = new URL(stack.databaseUrl);
    await using onward = await ipv6To(database);
    const url = stack.databaseUrl.replace(database.host, onward.host);
    const env = { ...stack.env, DATABASE_URL: url };

    const ran = await runProgram(['run', '--once', '--timeout', '2m'], env, { timeoutMs: 150_000 });
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    const doctor = await runProgram(['doctor'], env);
    expect(doctor.stdout).not.toMatch(/^(?:FAIL|WARN postgres encryption)/m);
    for await (const batch of follow({ url, position: 'start' })) {
      expect(batch.changes.length).toBeGreaterThan(0);
      break;
    }
    expect(onward.connections()).toBeGreaterThan(3);
  },
);

test.skipIf(!hasIpv6)('a Postgres that cannot be reached over IPv6 is reported as away', async () => {
  const status = await runProgram(['status'], { DATABASE_URL: 'postgres://u:p@[::1]:1/x' });
  expect(status.stdout + status.stderr).toContain('ECONNREFUSED');
});
