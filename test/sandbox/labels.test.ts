import { describe, it } from 'vitest';
import { HandClock, read, start, type Caller } from './support.ts';

const idOf = (caller: Caller, own: boolean): string =>
  [...caller.sandbox.orders].find((order) => order.own === own)?.id ?? '';

describe.concurrent('labels (partner rules 4.3, 7.4.2)', () => {
  it('hands out a URL that anyone can use until it expires', async ({ expect }) => {
    const clock = new HandClock();
    const caller = await start({ now: clock.now });
    await using _ = caller.sandbox;
    const { status, json } = await caller.send(`/partner/label/${idOf(caller, true)}`);
    expect([status, Object.keys(json)]).toEqual([200, ['url']]);
    const file = await fetch(json.url);
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'application/pdf']);
    clock.advance(3_599_999);
    expect((await fetch(json.url)).status).toBe(200);
    clock.advance(1);
    const expired = await read(await fetch(json.url));
    expect([expired.status, expired.text]).toEqual([403, expect.stringContaining('<Code>AccessDenied')]);
    expect(caller.sandbox.requests.at(-1)).toMatchObject({ route: 'label_file', authorization: false });
    expect(caller.sandbox.maxRequestsInWindow()).toBe(1);
  });

  it.for([
    [1000, 1000],
    [86_400_000, 3_600_000],
  ])(
    'limits the lifetime of URLs to the configured %d ms, and to an hour',
    async ([urlTtlMs, works], { expect }) => {
      const clock = new HandClock();
      const caller = await start({ now: clock.now, urlTtlMs: urlTtlMs ?? 0 });
      await using _ = caller.sandbox;
      const { url } = (await caller.send(`/partner/label/${idOf(caller, true)}`)).json;
      clock.advance((works ?? 0) - 1);
      expect((await fetch(url)).status).toBe(200);
      clock.advance(1);
      expect((await fetch(url)).status).toBe(403);
    },
  );

  it('serves nothing for an altered URL', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const [one = '', other = ''] = [...caller.sandbox.orders].filter(({ own }) => own).map(({ id }) => id);
    const { url } = (await caller.send(`/partner/label/${one}`)).json;
    for (const bent of [
      url.replace(one, other),
      url.replace(/expires=\d+/, 'expires=9999999999999'),
      url.replace(/signature=./, 'signature=_'),
      url.replace(/\?.*/, ''),
    ])
      expect([bent, (await fetch(bent)).status]).toEqual([bent, 403]);
  });

  it('are PDFs with correct offsets, a buyer, an address and a phone number', async ({ expect }) => {
    const caller = await start({ orders: 0 });
    await using _ = caller.sandbox;
    const { id } = caller.sandbox.orders.place({ sku: 'รองเท้า (1) \\', size: '9', price: 900 });
    const { url } = (await caller.send(`/partner/label/${id}`)).json;
    const text = Buffer.from(await (await fetch(url)).arrayBuffer()).toString('latin1');
    expect(text).toMatch(/^%PDF-1\.4\n[\s\S]*%%EOF\n$/);
    const table = Number(/startxref\n(\d+)/.exec(text)?.[1]);
    expect(text.slice(table, table + 4)).toBe('xref');
    const offsets = [...text.slice(table).matchAll(/(\d{10}) 00000 n \n/g)].map(([, offset]) =>
      Number(offset),
    );
    expect(offsets.map((offset) => text.slice(offset, offset + 7))).toEqual(
      [1, 2, 3, 4, 5].map((number) => `${number} 0 obj`),
    );
    const content = /\/Length (\d+) >>\nstream\n([\s\S]*)\nendstream/.exec(text);
    expect(content?.[2]).toHaveLength(Number(content?.[1]));
    for (const part of ['Buyer: ', 'Address: ', 'Phone: 000-000-', `Order ${id}`, String.raw`\(1\) \\`])
      expect(text).toContain(part);
    const again = Buffer.from(await (await fetch(url)).arrayBuffer()).toString('latin1');
    expect(again).toBe(text);
  });

  it('rejects a foreign order with a body that contradicts its status, and a missing one like every read', async ({
    expect,
  }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const theirs = idOf(caller, false);
    for (const [id, statusCode, message] of [
      [theirs, 403, `Unauthorized: order ${theirs} does not belong to this supplier`],
      ['O-999999', 400, 'not Found order ID: O-999999'],
    ] as const) {
      const seen = await caller.send(`/partner/label/${id}`);
      expect([seen.status, seen.json]).toEqual([400, { statusCode, message }]);
    }
  });
});
