import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { follow } from '../../src/client/follow.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

/** Opens a Unix socket that leads to the Postgres of a URL, as Cloud SQL's proxy does. */
async function socketTo(url: URL) {
  const directory = await mkdtemp(join(tmpdir(), 'pg:socket-'));
  let connections = 0;
  const server = createServer((client) => {
    connections += 1;
    const up = connect(Number(url.port), url.hostname);
    void pipeline(client, up, client).catch(() => {});
  });
  await new Promise<void>((resolve) => void server.listen(join(directory, '.s.PGSQL.5432'), resolve));
  return {
    directory,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}

test.for(backends())('a mirror is filled and followed over a Unix socket: queues in %s', async (backend) => {
  await using stack = await createStack({ backend, sandbox: { skus: 60, seed: 17 } });
  const tcp = new URL(stack.databaseUrl);
  await using socket = await socketTo(tcp);
  const login = `${tcp.username}${tcp.password === '' ? '' : `:${tcp.password}`}`;
  const url = `postgres://${login}@${tcp.pathname}?host=${socket.directory}`;
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
  expect(socket.connections()).toBeGreaterThan(3);
});

test('a missing Unix socket is named', async () => {
  const env = { DATABASE_URL: 'postgres://u@/x?host=/nowhere' };
  const status = await runProgram(['status'], env);
  expect(status.stdout + status.stderr).toContain('/nowhere/.s.PGSQL.5432');
});
