import { describe, expect, test } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { through } from '../support/net.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import { type Proxy, proxyTo, when } from '../support/proxy.ts';
import { createStack } from '../support/stack.ts';
import { expectWhole, get, untilLogged, untilSql, untilWhole } from './harness.ts';

const SANDBOX = { skus: 400, liveShare: 0.05 };
const ENV = { DELTA_INTERVAL: '1s', PARTNER_TIMEOUT: '2s', MANIFEST_INTERVAL: '1h' };

/** Puts the sandbox, including its files, behind a proxy. */
async function behindProxy(sandbox: Sandbox): Promise<{ proxy: Proxy; url: string }> {
  const proxy = await proxyTo(sandbox.url);
  const url = through(sandbox.url, proxy).replace(/\/$/u, '');
  // Its file URLs then point to the proxy, too.
  Object.assign(sandbox, { url });
  return { proxy, url };
}

/** Where to cut a connection: at a pattern, or after a number of bytes. */
const CUTS: [string, Parameters<typeof when>[1], 'to-server' | 'to-client'][] = [
  ['a request for the manifest', { pattern: 'GET /' }, 'to-server'],
  ['the head of an answer', { bytes: 20 }, 'to-client'],
  ['the first answer’s body', { bytes: 400 }, 'to-client'],
  ['the manifest file', { bytes: 12_000 }, 'to-client'],
  ['a bulk request', { pattern: 'POST /' }, 'to-server'],
];

describe('the connection to the partner', () => {
  test.concurrent.each(CUTS)(
    'may be reset in %s, three times, and nothing is lost',
    async (_, place, direction) => {
      await using stack = await createStack({ sandbox: { ...SANDBOX, seed: 131 }, env: ENV });
      const { sql, sandbox } = stack;
      const { proxy, url } = await behindProxy(sandbox);
      await using _proxy = proxy;
      const cut = when(direction, place, 'cut', 3);
      proxy.watch(cut.watcher);
      await stack.start({ PARTNER_BASE_URL: url });
      await untilWhole(sql, sandbox.world);
      moveMarket(sandbox.world, 0);
      await expectCursorNotAhead(sql, sandbox.world);
      await untilWhole(sql, sandbox.world);
      await expectWhole(sql, sandbox.world);
      expect(cut.hits()).toBe(3);
    },
  );

  test.concurrent.each<[string, (proxy: Proxy) => void]>([
    ['late and in slices of a few bytes', (proxy) => proxy.set({ latencyMs: 2, sliceBytes: 97 })],
    ['of little bandwidth', (proxy) => proxy.set({ bytesPerSecond: 200_000 })],
    ['reset', (proxy) => void proxy.reset()],
    ['half-closed by the partner', (proxy) => proxy.halfClose('to-client')],
    ['half-closed towards the partner', (proxy) => proxy.halfClose('to-server')],
    ['a black hole for a while', (proxy) => proxy.set({ blackHole: true })],
    [
      'refused for a while',
      (proxy) => {
        proxy.set({ refuse: true });
        proxy.reset();
      },
    ],
  ])('may be %s, during a fill and a delta, and the mirror ends up complete', async (name, disturb) => {
    await using stack = await createStack({ sandbox: { ...SANDBOX, latencyMs: 20, seed: 132 }, env: ENV });
    const { sql, sandbox } = stack;
    const { proxy, url } = await behindProxy(sandbox);
    await using _proxy = proxy;
    const app = await stack.start({ PARTNER_BASE_URL: url });
    const strike = async () => {
      const from = stack.logs.length;
      disturb(proxy);
      if (!name.endsWith('for a while')) return;
      const failed = await untilLogged(stack, 'partner.request', ({ outcome }) => outcome !== 'ok', from);
      expect(failed).toMatchObject({ outcome: expect.stringMatching(/^(timeout|network)$/u) as string });
      expect((await get(app, '/livez')).status).toBe(200);
      proxy.heal();
    };
    await untilSql(sql, 'lines', '(select count(*) from catalog.skus) > 0');
    await strike();
    await untilSql(sql, 'half a fill', `(select count(*) from catalog.skus where state = 'priced') > 150`);
    await strike();
    await untilWhole(sql, sandbox.world);
    moveMarket(sandbox.world, 0);
    await strike();
    await expectCursorNotAhead(sql, sandbox.world);
    await untilWhole(sql, sandbox.world);
    await expectWhole(sql, sandbox.world);
    await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
  });
});
