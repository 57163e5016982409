import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { pauseRequests } from '../../src/store/sellers/pause.ts';
import { createDatabase } from '../support/db.ts';
import { runProgram } from '../support/process.ts';

test.each([404, 301, 503])('healthcheck fails if whatever listens on its port answers %i', async (status) => {
  const stranger = createServer((_, response) => response.writeHead(status).end()).listen(0, '127.0.0.1');
  onTestFinished(() => void stranger.close());
  await once(stranger, 'listening');
  const { port } = stranger.address() as AddressInfo;
  const ran = await runProgram(['healthcheck'], { HTTP_PORT: String(port) });
  expect(ran).toMatchObject({ code: 1, stdout: expect.stringContaining(`livez: ${status}`) as string });
});

test('refresh accepts a SKU of 512 characters, and none that is longer', async () => {
  const database = await createDatabase('migrated');
  onTestFinished(() => database.drop());
  const sql = connect(database.url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 2 }));
  const longest = 'x'.repeat(512);
  expect(await runProgram(['refresh', longest], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 SKU is due now\n1 SKU was unknown and is mirrored from now on: xxx'),
  });
  expect(await runProgram(['refresh', longest], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^1 SKU is due now\n(?!.*unknown)/),
  });
  expect([...(await sql`select sku, reason from catalog_internal.due`)]).toEqual([
    { sku: longest, reason: 'refresh' },
  ]);
  expect(await runProgram(['refresh', `${longest}x`], { DATABASE_URL: database.url })).toMatchObject({
    code: 78,
  });
});

test('refresh names unknown SKUs, and says why nothing is fetched now', async () => {
  const database = await createDatabase('migrated');
  onTestFinished(() => database.drop());
  const sql = connect(database.url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 2 }));
  const refresh = async (...args: string[]) =>
    (await runProgram(['refresh', ...args], { DATABASE_URL: database.url })).stdout.split('\n');
  expect(await refresh('A1', 'A2', 'A3', 'A4', 'A5', 'A6')).toEqual([
    '6 SKUs are due now',
    '6 SKUs were unknown and are mirrored from now on: A1, A2, A3, A4, A5, …',
    'nothing is fetched now: no daemon is running',
  ]);
  expect(await refresh('--manifest')).toEqual([
    'a new manifest is requested',
    'nothing is fetched now: no daemon is running',
  ]);
  await sql`
    insert into catalog_internal.instances (number, pid, backend_start)
    select 1, pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`;
  expect(await refresh('A1')).toEqual(['1 SKU is due now']);
  await pauseRequests(sql, { forMs: null, by: 'somebody' });
  expect(await refresh('A1')).toEqual([
    '1 SKU is due now',
    'nothing is fetched now: requests to the partner are paused until `catalog-mirror resume` (by somebody)',
  ]);
});
