import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { runProgram, startProgram } from '../support/process.ts';

const TOKEN = 'a-token-of-thirty-two-characters';
const basic = `Basic ${Buffer.from('sandbox-key:sandbox-secret').toString('base64')}`;

async function catalogFile(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-sandbox-'));
  const file = join(folder, 'catalog.ndjson');
  await writeFile(file, text);
  return { file, [Symbol.asyncDispose]: async () => rm(folder, { recursive: true }) };
}

test('the command accepts own SKUs, a time and a token, and logs each request on stderr', async ({
  expect,
}) => {
  await using catalog = await catalogFile('{"sku": "MY-1", "sizes": {"9": 4800}}\n{"sku": "MY-2"}\n');
  const options = ['--port', '0', '--now', '2026-01-01T00:00:00Z', '--catalog', catalog.file];
  await using program = startProgram(['sandbox', ...options, '--control-token', TOKEN, '--log']);
  await eventually(() => program.stdout.length > 3, { what: 'its address' });
  const url = /http:\/\/\S+/.exec(program.stdout[0] ?? '')?.[0] ?? '';
  expect(program.stdout.at(-1)).toContain('the clock stands');
  const lowest = await fetch(`${url}/partner/lowest/MY-1`, { headers: { authorization: basic } });
  expect([lowest.headers.get('date'), await lowest.json()]).toMatchObject([
    'Thu, 01 Jan 2026 00:00:00 GMT',
    { size_map: { '9': 4800 } },
  ]);
  const manifest = await fetch(`${url}/partner/catalog/manifest`, { headers: { authorization: basic } });
  expect(await manifest.json()).toMatchObject({ sku_count: 2 });
  expect((await fetch(`${url}/sandbox/state`)).status).toBe(401);
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const moved = await fetch(`${url}/sandbox/clock`, { method: 'POST', headers, body: '{"advance":"90s"}' });
  expect(await moved.json()).toEqual({ now: '2026-01-01T00:01:30.000Z', stands: true });
  await eventually(() => program.stderr.length === 4);
  expect(program.stderr).toEqual([
    '2026-01-01T00:00:00.000Z GET /partner/lowest/MY-1 200',
    '2026-01-01T00:00:00.000Z GET /partner/catalog/manifest 200',
    '2026-01-01T00:00:00.000Z GET /sandbox/state 401 (control)',
    '2026-01-01T00:01:30.000Z POST /sandbox/clock 200 (control)',
  ]);
  expect(await program.end('SIGTERM')).toMatchObject({ code: 0 });
});

test('if its port is taken, it says what to do', async ({ expect, onTestFinished }) => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, stderr } = await runProgram(['sandbox', '--port', String(port)]);
  expect(code).toBe(1);
  expect(stderr).toContain(`port ${port} is taken`);
  expect(stderr).toContain('what to do: use --port');
});

test('a catalog file with invalid lines prevents the start, and each is named with the invalid options', async ({
  expect,
}) => {
  await using catalog = await catalogFile('{"sku": "A"}\nnonsense\n{"sku": "A", "sizes": {"9": "5"}}\n');
  const { code, stdout, stderr } = await runProgram([
    'sandbox',
    '--catalog',
    catalog.file,
    '--port',
    'x',
    '--foo',
  ]);
  expect([code, stdout]).toEqual([78, '']);
  for (const problem of [
    '--foo: no such option',
    '--port: ',
    `--catalog: ${catalog.file}: line 2: is not JSON`,
    `--catalog: ${catalog.file}: line 3: sizes: the price of "9" must be a whole number of baht, or null`,
    `--catalog: ${catalog.file}: line 3: sku "A" is on line 1 already`,
  ])
    expect(stderr).toContain(problem);
});
