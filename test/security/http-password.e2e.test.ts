import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { FILLED, holds, runProgram, startProgram, temporaryFolder } from '../support/process.ts';
import { createStack } from '../support/stack.ts';
import { canary, findings } from './canaries.ts';

test('a password file guards the daemon’s pages, leaves probes open, can be replaced, and is never logged', async () => {
  const [first, second] = [canary('the password'), canary('the password after it')];
  const file = join(await temporaryFolder(), 'password');
  await writeFile(file, `${first.core}\n`);
  await using stack = await createStack({ sandbox: { skus: 20 }, env: { LOG_LEVEL: 'trace' } });
  await using daemon = startProgram(['run'], { ...stack.env, HTTP_PASSWORD_FILE: file });
  const port = Number((await daemon.until('app.started'))['port']);
  await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
  const ask = async (path: string, password: string) => {
    const headers = { authorization: `Basic ${Buffer.from(`u:${password}`).toString('base64')}` };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    return { status: answer.status, body: await answer.text() };
  };
  const paths = ['/', '/status.json', '/metrics', '/readyz', '/livez'];
  const statuses = (password: string) =>
    Promise.all(paths.map(async (path) => (await ask(path, password)).status));

  expect(await statuses('wrong')).toEqual([401, 401, 401, 200, 200]);
  expect(await statuses(first.core)).toEqual([200, 200, 200, 200, 200]);
  // A healthcheck that cannot read the file does not need it.
  const env = { HTTP_PORT: String(port), HTTP_PASSWORD_FILE: '/gone' };
  expect(await runProgram(['healthcheck'], env)).toMatchObject({ code: 0 });

  await writeFile(file, `${second.core}\n`);
  await eventually(async () => (await ask('/metrics', second.core)).status === 200, { what: 'the new one' });
  expect((await ask('/metrics', first.core)).status).toBe(401);
  // The file is empty, as while it is being written: the last complete password stays valid.
  await writeFile(file, '');
  await eventually(async () => (await ask('/metrics', 'wrong')).status === 401);
  expect((await ask('/metrics', second.core)).status).toBe(200);

  const bodies = await Promise.all(paths.map(async (path) => (await ask(path, second.core)).body));
  expect(daemon.logged('http.wrong-password')).toHaveLength(1);
  const places = { http: bodies.join('\n'), log: daemon.stdout.join('\n'), stderr: daemon.stderr.join('\n') };
  expect(findings(places, [first, second])).toEqual([]);
});
