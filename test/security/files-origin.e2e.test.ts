import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { eventually } from '../support/eventually.ts';
import { deafPort } from '../support/net.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { canary, findings } from './canaries.ts';

const signature = canary('the presigned signature');

/** Makes the sandbox's next manifest answer contain this URL. */
function name(stack: Stack, url: string): void {
  stack.sandbox.faults.add({
    route: 'manifest',
    mutate: (json) => ({ ...json, url: `${url}?X-Amz-Signature=${signature.core}` }),
  });
}

/** Fetches the manifest now, and waits for the log line that ends it. */
async function nextEnd(stack: Stack, app: App): Promise<Record<string, unknown>> {
  const ends = () => stack.logs.filter(({ event }) => /^manifest\.(?:failed|done)$/.test(event));
  const before = ends().length;
  await stack.sql`update catalog_internal.tasks set next_at = now(), failures = 0 where task = 'manifest'`;
  await app.wake('manifest');
  await eventually(() => ends().length > before, { what: 'the end of a manifest' });
  return ends()[before] ?? {};
}

test.concurrent('a refused file URL is logged and counted without its signature, and the next manifest is applied', async ({
  expect,
}) => {
  await using listener = await deafPort();
  await using stack = await createStack({ sandbox: { skus: 40, seed: 5 } });
  const { port } = listener;
  const urls = [
    'https://10.0.0.1/m.gz',
    'https://169.254.169.254/latest/meta-data/',
    'https://[fd00:ec2::254]/m.gz',
    'https://[::ffff:10.0.0.1]/m.gz',
    'https://2852039166/m.gz',
    'http://files.example.com/m.gz',
    `https://0.0.0.0:${port}/m.gz`,
    `http://user:pass@127.0.0.1:${port}/m.gz`,
  ];
  name(stack, urls[0] ?? '');
  const app = await stack.start();
  await eventually(() => stack.logs.some(({ event }) => event === 'manifest.failed'), {
    what: 'the first refusal',
  });
  const ends = stack.logs.filter(({ event }) => event === 'manifest.failed');
  for (const url of urls.slice(1)) {
    name(stack, url);
    ends.push((await nextEnd(stack, app)) as (typeof ends)[number]);
  }
  expect(ends.map(({ because }) => because)).toEqual(urls.map(() => 'url-refused'));
  for (const { hint } of ends) expect(hint).toContain('PARTNER_FILES_ORIGINS');
  const metrics = await (await fetch(`http://127.0.0.1:${app.httpPort}/metrics`)).text();
  expect(metrics).toContain(
    `catalog_mirror_partner_requests_total{route="manifest-file",outcome="url-refused"} ${urls.length}`,
  );
  await nextEnd(stack, app);
  await stack.caughtUp();
  await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  expect(findings({ logs: JSON.stringify(stack.logs), metrics }, [signature])).toEqual([]);
  expect(listener.connections).toBe(0);
});

test.concurrent('no redirect is followed from any route, and no files origin sees the credential', async ({
  expect,
}) => {
  await using listener = await deafPort();
  const seen: NodeJS.Dict<string | string[]>[] = [];
  const files = createServer((request, response) => {
    seen.push(request.headers);
    response.writeHead(302, { location: `http://127.0.0.1:${listener.port}/` }).end();
  });
  files.listen(0, '127.0.0.1');
  await using stack = await createStack({ sandbox: { skus: 40, seed: 6 } });
  const location = { Location: `http://127.0.0.1:${listener.port}/partner` };
  name(stack, `http://127.0.0.1:${(files.address() as AddressInfo).port}/m.gz`);
  stack.sandbox.faults.add({ route: 'bulk', status: 307, headers: location, body: {} });
  stack.sandbox.faults.add({ route: 'delta', status: 301, headers: location, body: {} });
  const app = await stack.start();
  await eventually(() => seen.length > 0, { what: 'the redirect of the file' });
  await eventually(() => stack.logs.some(({ because }) => because === 'file-fault'), { what: 'its end' });
  expect(stack.logs.find(({ because }) => because === 'file-fault')).toMatchObject({
    event: 'manifest.failed',
    httpStatus: 302,
    problem: 'manifest-file: file-fault (status 302)',
  });
  stack.sandbox.faults.add({ route: 'manifest', status: 308, headers: location, body: {} });
  expect(await nextEnd(stack, app)).toMatchObject({ event: 'manifest.failed' });
  await nextEnd(stack, app);
  await eventually(() => stack.logs.some(({ event }) => event === 'bulk.failed'), {
    what: 'the redirect of bulk',
  });
  await stack.sql`update catalog_internal.tasks set next_at = now() where task = 'delta'`;
  await app.wake('delta');
  await eventually(() => stack.logs.some(({ event }) => event === 'delta.failed'), {
    what: 'the redirect of the delta',
  });
  await new Promise((done) => files.close(done));
  expect(listener.connections).toBe(0);
  expect(seen).toHaveLength(1);
  expect(Object.keys(seen[0] ?? {}).toSorted()).toEqual(['accept-encoding', 'connection', 'host']);
  const downloads = stack.sandbox.requests.filter(({ route }) => route === 'file');
  expect(downloads.length).toBeGreaterThan(0);
  expect(downloads.filter(({ authorization }) => authorization)).toEqual([]);
});
