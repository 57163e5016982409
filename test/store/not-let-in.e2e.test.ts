import { expect, test } from 'vitest';
import { certificate, tlsProxyTo } from '../security/tls-proxy.ts';
import { refusingSettings, through } from '../support/net.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

/** As managed servers answer a connection without TLS. */
const NO_ENTRY = {
  S: 'FATAL',
  C: '28000',
  M: 'no pg_hba.conf entry for host "10.0.0.7", user "u", database "d", no encryption',
  R: 'ClientAuthentication',
};

test('a connection without TLS to a server that demands it gets a hint about sslmode, not the password', async () => {
  await using stack = await createStack({ sandbox: { skus: 20 } });
  await using server = await refusingSettings(stack.databaseUrl, NO_ENTRY);
  const env = { ...stack.env, DATABASE_URL: through(stack.databaseUrl, server) };
  const run = await runProgram(['run'], env, { timeoutMs: 20_000 });
  const doctor = await runProgram(['doctor'], env);
  const status = await runProgram(['status'], env);
  expect([run.code, doctor.code]).toEqual([1, 1]);
  for (const said of [run.stderr, doctor.stdout, status.stdout + status.stderr]) {
    expect(said).toContain("the server's pg_hba.conf lets no such connection in");
    expect(said).toContain('sslmode=verify-full');
    expect(said).not.toContain('password in DATABASE_URL');
  }
});

test('a rejected connection with TLS gets a hint about the pg_hba.conf entry', async () => {
  await using stack = await createStack({ sandbox: { skus: 20 } });
  await using server = await refusingSettings(stack.databaseUrl, NO_ENTRY);
  await using proxy = await tlsProxyTo(through(stack.databaseUrl, server), { protocol: 'postgres' });
  const url = new URL(through(stack.databaseUrl, proxy));
  url.hostname = 'localhost';
  url.searchParams.set('sslrootcert', certificate('ca.pem'));
  const doctor = await runProgram(['doctor'], { ...stack.env, DATABASE_URL: url.href });
  expect(doctor.stdout).toMatch(/^FAIL postgres .*pg_hba\.conf lets no such connection in/m);
  expect(doctor.stdout).toContain('an entry for this host, role and database');
  expect(doctor.stdout).not.toContain('add sslmode');
});
