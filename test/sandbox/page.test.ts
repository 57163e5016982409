import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { promisify } from 'node:util';
import { describe, it } from 'vitest';
import { CONTROL_ROUTES } from '../../src/sandbox/control/routes.ts';
import type { SandboxOptions } from '../../src/sandbox/index.ts';
import { ROUTES } from '../../src/sandbox/routes.ts';
import { type Caller, read, start } from './support.ts';

const run = promisify(execFile);
const unescape = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

const TOKEN = 'a-token-of-thirty-two-characters';

/** Splits each curl line into words, as a shell does. */
async function shellWords(lines: readonly string[]): Promise<string[][]> {
  const echo = String.raw`curl() { for word; do printf '%s\0' "$word"; done; printf '\n\0'; }`;
  const { stdout } = await run('sh', ['-c', [echo, ...lines].join('\n')], { env: { CONTROL_TOKEN: TOKEN } });
  return stdout
    .split('\n\0')
    .slice(0, -1)
    .map((words) => words.split('\0').slice(0, -1));
}

/** Does what curl would do with these words, and returns the status of the answer. */
async function curl(words: readonly string[]): Promise<number> {
  const headers: Record<string, string> = {};
  let method = 'GET';
  let body: string | undefined;
  for (const [at, word] of words.entries()) {
    const next = words[at + 1] ?? '';
    if (word === '-X') method = next;
    if (word === '-d') body = next;
    if (word === '-u') headers['authorization'] = `Basic ${Buffer.from(next).toString('base64')}`;
    if (word === '-H') headers[next.split(': ')[0] ?? ''] = next.split(': ')[1] ?? '';
  }
  const { status } = await fetch(words.at(-1) ?? '', {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  return status;
}

const pageOf = async ({ sandbox }: Caller) => read(await fetch(`${sandbox.url}/`));

/** Returns the rows of the table below a heading, as lists of cells. */
function tableBelow(html: string, heading: string): string[][] {
  const [, below = ''] = html.split(`<h2>${heading}`);
  const [table = ''] = below.split('</table>');
  return table
    .split('\n')
    .filter((line) => line.startsWith('<tr><td>'))
    .map((row) => [...row.matchAll(/<td>(.*?)<\/td>/g)].map(([, cell = '']) => unescape(cell)));
}

const lineIn = (cells: readonly string[]): string => /curl .*/.exec(cells.at(-1) ?? '')?.[0] ?? '';

/** Runs every line of the page in order; returns those that failed. */
async function runAll(caller: Caller): Promise<string[]> {
  const { text } = await pageOf(caller);
  const rows = [...tableBelow(text, 'Routes of the partner API'), ...tableBelow(text, 'Control routes')];
  const lines = rows.map(lineIn);
  const failed: string[] = [];
  for (const [at, words] of (await shellWords(lines)).entries()) {
    const status = await curl(words);
    if (status !== 200 && status !== 201) failed.push(`${lines[at]} -> ${status}`);
  }
  return failed;
}

describe.concurrent('the page', () => {
  it('has a row for each route, with a curl line that succeeds in a shell', async ({ expect }) => {
    const caller = await start({ apiKey: `it's & "k"`, secret: '<s>', skus: 30 });
    await using _ = caller.sandbox;
    const page = await pageOf(caller);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const rows = tableBelow(page.text, 'Routes of the partner API');
    expect(rows.map((cells) => [cells[0], cells[1], cells[3]])).toEqual(
      Object.values(ROUTES).map(({ method, path, cacheControl }) => [method, path, cacheControl ?? '–']),
    );
    expect(tableBelow(page.text, 'Control routes').map((cells) => cells.slice(0, 3))).toEqual(
      CONTROL_ROUTES.map(({ method, path, summary }) => [method, path, summary]),
    );
    const answered = caller.sandbox.counts();
    const statuses: number[] = [];
    for (const words of await shellWords(rows.map(lineIn))) statuses.push(await curl(words));
    expect(statuses.filter((status) => status !== 200 && status !== 201)).toEqual([]);
    const routes = caller.sandbox.requests.slice(answered).map(({ route }) => route);
    expect(new Set(routes).size).toBe(Object.keys(ROUTES).length);
  });

  it.for<[string, SandboxOptions]>([
    ['a usual account', {}],
    ['an account without orders and listings', { skus: 1, orders: 0, listings: 0, foreignOrders: 0 }],
    ['an empty catalog without a snapshot', { skus: 0, initialSnapshot: false }],
    ['a token', { controlToken: TOKEN, orders: 0 }],
    ['an account on vacation', { vacation: true, listings: 0 }],
  ])('has lines that succeed one after another, again and again: %s', async ([, options], { expect }) => {
    const caller = await start({ rateLimit: 10_000, ...options });
    await using _ = caller.sandbox;
    for (let round = 0; round < 3; round += 1) {
      expect(await runAll(caller)).toEqual([]);
      caller.sandbox.faults.add({ route: 'unknown' });
    }
  });

  it('shows orders with tracking, listings, intake, requests and the budget', async ({ expect }) => {
    const caller = await start({ orders: 0, listings: 0, rateLimit: 50 });
    await using _ = caller.sandbox;
    const { orders, world } = caller.sandbox;
    const { id } = orders.place({ sku: '<b>', size: '9', price: 1000 }, { status: 'process' });
    const [sku = ''] = [...world.truth().values()]
      .filter(({ answer }) => answer === 'record')
      .map((row) => row.sku);
    const put = (path: string, body: object, method = 'PUT') =>
      caller.send(path, { method, body: JSON.stringify(body) });
    await put('/partner/update/tracking', { orders: [{ order_id: id, tracking_number: 'TH<1>' }] });
    await put('/partner/list/ask', { sku, size: '42', price: 777 }, 'POST');
    await put('/partner/batch/r2s', { items: [{ sku, size: 9, price: -5, quantity: 'many' }] }, 'POST');
    const { text } = await pageOf(caller);
    expect(tableBelow(text, 'Orders')).toEqual([[id, 'process', '<b> 9', '1000', '900', '', 'TH<1>']]);
    expect(tableBelow(text, 'Live listings')).toEqual([[expect.any(String), 'ask', `${sku} 42`, '777', '1']]);
    expect(tableBelow(text, 'Intake')).toEqual([[sku, '9', '-5', '"many"']]);
    expect(text).toContain('47 of 50 requests are left');
    expect(tableBelow(text, 'Requests').map(([line = '']) => line.split(' ').slice(1, 4).join(' '))).toEqual([
      'POST /partner/batch/r2s 200',
      'POST /partner/list/ask 201',
      'PUT /partner/update/tracking 200',
    ]);
  });

  it('works with an empty catalog without a snapshot, needs no credential and is not counted', async ({
    expect,
  }) => {
    const caller = await start({ skus: 0, initialSnapshot: false, rateLimit: 1 });
    await using _ = caller.sandbox;
    for (let n = 0; n < 3; n += 1) expect((await fetch(caller.sandbox.url)).status).toBe(200);
    expect(caller.sandbox.maxRequestsInWindow()).toBe(0);
    expect((await caller.send('/partner/no/such')).status).toBe(404);
  });

  it('is withheld from a browser that used another host name, such as a rebound one', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const statuses = await Promise.all(
      ['evil.example', '127.0.0.1.evil.example', 'localhost:1', '[::1]:80'].map(
        async (host) =>
          new Promise((resolve, reject) => {
            request(caller.sandbox.url, { headers: { host } }, (answer) => {
              answer.resume();
              resolve(answer.statusCode);
            })
              .on('error', reject)
              .end();
          }),
      ),
    );
    expect(statuses).toEqual([403, 403, 200, 200]);
  });
});
