import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { runProgram } from '../support/process.ts';

test.each([404, 301, 503])('healthcheck: what answers %i on its port is not the daemon', async (status) => {
  const stranger = createServer((_, response) => response.writeHead(status).end()).listen(0, '127.0.0.1');
  onTestFinished(() => void stranger.close());
  await once(stranger, 'listening');
  const { port } = stranger.address() as AddressInfo;
  const ran = await runProgram(['healthcheck'], { HTTP_PORT: String(port) });
  expect(ran).toMatchObject({ code: 1, stdout: expect.stringContaining(`livez: ${status}`) as string });
});

test('refresh takes a SKU of 512 characters, and none that is longer', async () => {
  const database = await createDatabase('migrated');
  onTestFinished(() => database.drop());
  const sql = connect(database.url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 2 }));
  const longest = 'x'.repeat(512);
  expect(await runProgram(['refresh', longest], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
    stdout: '1 SKU is due now\n1 SKU was unknown and is mirrored from now on',
  });
  expect(await runProgram(['refresh', longest], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
    stdout: '1 SKU is due now',
  });
  expect([...(await sql`select sku, reason from catalog_internal.due`)]).toEqual([
    { sku: longest, reason: 'refresh' },
  ]);
  expect(await runProgram(['refresh', `${longest}x`], { DATABASE_URL: database.url })).toMatchObject({
    code: 78,
  });
});
