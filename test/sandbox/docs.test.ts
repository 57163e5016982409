import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { CONTROL_ROUTES } from '../../src/sandbox/control/routes.ts';
import { readOwnSkus, startSandbox } from '../../src/sandbox/index.ts';

const run = promisify(execFile);
const PAGE = readFileSync(new URL('../../docs/sandbox.md', import.meta.url), 'utf8');

/** The control routes in the page: route, members of the body and curl line. */
const ROWS = [
  ...PAGE.matchAll(/^\| `((?:GET|POST|PUT|DELETE) \/sandbox\/\S*)` \|(.*?)\|.*\| `(curl [^|]*)` \|$/gm),
].map(([, route = '', members = '', line = '']) => ({
  route,
  members: [...members.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  line,
}));

test('the page has a row for each control route', () => {
  expect(ROWS.map(({ route }) => route).toSorted()).toEqual(
    CONTROL_ROUTES.map(({ method, path }) => `${method} ${path}`).toSorted(),
  );
});

test('the page names the members that each body accepts', async () => {
  await using sandbox = await startSandbox({ skus: 20 });
  for (const { route, members } of ROWS) {
    const [method = '', path = ''] = route.split(' ');
    if (method === 'GET' || method === 'DELETE' || members.length === 0) continue;
    const url = sandbox.url + path.replace('{sku}', 'DD1391-100').replace('{order_id}', 'O-000001');
    const answer = await fetch(url, {
      method,
      headers: { 'content-type': 'application/json' },
      body: '{"no such": 1}',
    });
    const { message } = (await answer.json()) as { message: string };
    const [, takes = ''] = /\(it takes (.*)\)/.exec(message) ?? [];
    expect([route, new Set(members)]).toEqual([route, new Set(takes.split(', '))]);
  }
});

test.skipIf(spawnSync('curl', ['--version']).error !== undefined)(
  'each curl line succeeds as printed, one after another',
  async () => {
    await using sandbox = await startSandbox();
    for (const { route, line } of ROWS) {
      const here = line.replace('127.0.0.1:8080', new URL(sandbox.url).host);
      const { stdout } = await run('sh', ['-c', `${here} -sS -w '%{http_code}'`]);
      expect([route, stdout.slice(-3)]).toEqual([route, expect.toBeOneOf(['200', '201'])]);
    }
    expect(sandbox.requests).toEqual([]);
  },
);

test('the catalog file in the page is valid', () => {
  const [, file = ''] = /```json\n([\s\S]*?)```/.exec(PAGE) ?? [];
  const { skus, problems } = readOwnSkus(file);
  expect([skus.length, problems]).toEqual([4, []]);
});
