import { describe, it } from 'vitest';
import { list } from './calls.ts';
import { foreignOrder, GOODS, orderIn } from './levers.ts';
import { HandClock, NO_ORDER, open } from './support.ts';

const HOUR = 3_600_000;
const PROCESSING = '/partner/processing/orders';
const SETTLED = '/partner/settled/orders';
const ASKS = '/partner/live/listings/ask';
const PREORDERS = '/partner/live/listings/preorder';

interface Listing {
  order_id: string;
  sku: string;
  price: number;
}

describe.concurrent('orders and listings', () => {
  it('4.3.processing, 4.3.settled each order of the account is in the list of its status', async ({
    expect,
  }) => {
    await using partner = await open({ orders: 300 });
    const ids = async (path: string): Promise<string[]> =>
      (await partner.pages(path)).flatMap(({ orders }) => orders.map(({ order_id }) => order_id));
    const [processing, settled] = [await ids(PROCESSING), await ids(SETTLED)];
    const own = [...partner.sandbox.orders].filter(({ own }) => own);
    const idsOf = (fits: (status: string) => boolean): string[] =>
      own.filter(({ status }) => fits(status)).map(({ id }) => id);
    expect(processing.toSorted()).toEqual(
      idsOf((status) => !['settled', 'failed'].includes(status)).toSorted(),
    );
    expect(settled.toSorted()).toEqual(idsOf((status) => status === 'settled').toSorted());
  });

  it('4.3.listings every live listing of the account is in the list of its type', async ({ expect }) => {
    await using partner = await open({ listings: 1300 });
    const seen: string[] = [];
    for (const path of [ASKS, PREORDERS]) {
      const pages = await partner.pages<Listing>(path);
      expect(pages.slice(0, -1).map(({ listings }) => listings.length)).toEqual(
        pages.slice(1).map(() => 500),
      );
      seen.push(...pages.flatMap(({ listings }) => listings.map(({ order_id }) => order_id)));
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toHaveLength(1300);
  });

  it('4.3.listings an unknown type is a validation failure', async ({ expect }) => {
    await using partner = await open();
    for (const type of ['sold', 'asks', 'ASK', '__proto__']) {
      const { status, json } = await partner.get(`/partner/live/listings/${type}`);
      expect([type, status, json]).toEqual([type, 400, { statusCode: 400, message: expect.any(String) }]);
    }
  });

  it('4.3.order, 7.4.1, 7.2.400 an own order is answered, and missing and foreign ones return 400', async ({
    expect,
  }) => {
    await using partner = await open();
    const own = orderIn(partner, 'pending');
    const found = await partner.get(`/partner/${own}`);
    expect([found.status, found.json]).toEqual([
      200,
      expect.objectContaining({ order_id: own, status: 'pending', expected_payout: expect.any(Number) }),
    ]);
    const missing = await partner.get(`/partner/${NO_ORDER}`);
    expect([missing.status, missing.json]).toEqual([
      400,
      { statusCode: 400, message: `not Found order ID: ${NO_ORDER}` },
    ]);
    const foreign = await partner.get(`/partner/${foreignOrder(partner)}`);
    expect([foreign.status, foreign.json]).toEqual([400, { statusCode: 400, message: 'uid not match' }]);
  });

  it('4.3.order names a missing order exactly as requested', async ({ expect }) => {
    await using partner = await open();
    for (const id of ['processing', 'a b', 'ü/ü', '__proto__', '0']) {
      const { status, json } = await partner.get(`/partner/${encodeURIComponent(id)}`);
      expect([status, json['message']]).toEqual([400, `not Found order ID: ${id}`]);
    }
  });

  it('4.3.payout is the payout after fees, as in the order', async ({ expect }) => {
    await using partner = await open();
    const order_id = orderIn(partner, 'process');
    const payouts = async (): Promise<unknown[]> => [
      (await partner.get(`/partner/payout/${order_id}`)).json['expected_payout'],
      (await partner.get(`/partner/${order_id}`)).json['expected_payout'],
    ];
    const [before, same] = (await payouts()) as [number, number];
    expect(before).toBe(same);
    expect(before).toBeLessThanOrEqual(GOODS.price);
    await partner.put('/partner/confirm/order', { order_id });
    expect(await payouts()).toEqual([before - 60, before - 60]);
  });

  it('4.3.payout, 7.4.1 missing and foreign orders are rejected like the order itself', async ({
    expect,
  }) => {
    await using partner = await open();
    for (const id of [NO_ORDER, foreignOrder(partner)]) {
      const order = await partner.get(`/partner/${id}`);
      const payout = await partner.get(`/partner/payout/${id}`);
      expect([payout.status, payout.text]).toEqual([order.status, order.text]);
    }
  });

  it('4.3.label, 8.label-url the URL gives a PDF to anyone, for at most an hour', async ({ expect }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now, urlTtlMs: 10 * HOUR });
    const { status, json } = await partner.get(`/partner/label/${orderIn(partner, 'matched')}`);
    expect(status).toBe(200);
    const url = String(json['url']);
    const label = await partner.raw('GET', url, {});
    expect([label.status, label.headers['content-type'], label.text.slice(0, 5)]).toEqual([
      200,
      'application/pdf',
      '%PDF-',
    ]);
    expect(label.text.trimEnd().endsWith('%%EOF')).toBe(true);
    clock.advance(HOUR + 1);
    expect((await partner.raw('GET', url, {})).status).toBe(403);
  });

  it('4.3.label the URL is valid only for its label and its time', async ({ expect }) => {
    await using partner = await open();
    const [first, second] = [orderIn(partner, 'matched'), orderIn(partner, 'process')];
    const url = new URL(String((await partner.get(`/partner/label/${first}`)).json['url']));
    for (const key of url.searchParams.keys()) {
      const altered = new URL(url);
      altered.searchParams.set(key, `${altered.searchParams.get(key) ?? ''}1`);
      expect([key, (await partner.raw('GET', altered.href, {})).status]).toEqual([key, 403]);
    }
    const other = new URL(String((await partner.get(`/partner/label/${second}`)).json['url']));
    expect((await partner.raw('GET', other.pathname + url.search, {})).status).toBe(403);
    expect((await partner.raw('GET', url.origin + url.pathname, {})).status).toBe(403);
  });

  it('4.3.label, 7.4.2 a foreign order returns 400 with a body that says 403, and a missing one is missing', async ({
    expect,
  }) => {
    await using partner = await open();
    const id = foreignOrder(partner);
    const foreign = await partner.get(`/partner/label/${id}`);
    expect([foreign.status, foreign.json]).toEqual([
      400,
      { statusCode: 403, message: `Unauthorized: order ${id} does not belong to this supplier` },
    ]);
    const missing = await partner.get(`/partner/label/${NO_ORDER}`);
    expect([missing.status, missing.json['message']]).toEqual([400, `not Found order ID: ${NO_ORDER}`]);
  });
});

describe.concurrent('pagination', () => {
  it('4.3.1 pages follow each other without gaps or repetitions until nextCursor is null', async ({
    expect,
  }) => {
    await using partner = await open({ orders: 700, listings: 0 });
    for (const path of [PROCESSING, SETTLED]) {
      const ids = (await partner.pages(path)).flatMap(({ orders }) => orders.map(({ order_id }) => order_id));
      expect(ids.length).toBeGreaterThan(100);
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  it('4.3.1 the same cursor gives the same page again', async ({ expect }) => {
    await using partner = await open({ orders: 300 });
    const { nextCursor } = await partner.page(PROCESSING);
    const second = await partner.page(PROCESSING, nextCursor);
    expect(await partner.page(PROCESSING, nextCursor)).toEqual(second);
    expect(second).not.toEqual(await partner.page(PROCESSING));
  });

  it('4.3.2 page size is fixed: limit has no effect', async ({ expect }) => {
    await using partner = await open({ orders: 500, listings: 1400 });
    for (const path of [PROCESSING, SETTLED, ASKS, PREORDERS]) {
      const plain = await partner.page(path);
      for (const limit of ['1', '1000', '0', '-1', 'x'])
        expect(await partner.page(path, null, { limit })).toEqual(plain);
    }
  });

  it('4.3.3 a cursor is base64, and stays valid while rows come and go', async ({ expect }) => {
    const clock = new HandClock();
    await using partner = await open({ orders: 320, now: clock.now });
    const all = (await partner.pages(PROCESSING)).flatMap(({ orders }) =>
      orders.map(({ order_id }) => order_id),
    );
    const first = await partner.page(PROCESSING);
    expect(first.nextCursor).toMatch(/^[\w+/-]+={0,2}$/);
    clock.advance(1000);
    for (let count = 0; count < 7; count += 1) orderIn(partner, 'pending');
    partner.sandbox.orders.setStatus(first.orders[3]?.order_id ?? '', 'failed');
    partner.sandbox.orders.setStatus(first.orders[99]?.order_id ?? '', 'failed');
    const second = await partner.page(PROCESSING, first.nextCursor);
    expect(second.orders.map(({ order_id }) => order_id)).toEqual(all.slice(100, 200));
  });

  it('4.3.1, 4.3.3 rows of the same moment are all found, and a full last page has no successor', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ orders: 0, now: clock.now });
    for (const [more, lengths] of [
      [99, [99]],
      [1, [100]],
      [100, [100, 100]],
      [1, [100, 100, 1]],
    ] as const) {
      for (let count = 0; count < more; count += 1) orderIn(partner, 'process');
      const pages = await partner.pages(PROCESSING);
      expect(pages.map(({ orders }) => orders.length)).toEqual(lengths);
      const ids = pages.flatMap(({ orders }) => orders.map(({ order_id }) => order_id));
      const own = [...partner.sandbox.orders].filter(({ own }) => own).map(({ id }) => id);
      expect(ids.toSorted()).toEqual(own.toSorted());
    }
  });

  it('4.3.3 a cursor of another endpoint, or an invalid one, is a validation failure', async ({ expect }) => {
    await using partner = await open({ orders: 700, listings: 1400 });
    const cursors = new Map<string, string>();
    for (const path of [PROCESSING, SETTLED, ASKS])
      cursors.set(path, (await partner.page(path)).nextCursor ?? '');
    for (const path of cursors.keys()) {
      const bad = [...cursors].filter(([from]) => from !== path).map(([, cursor]) => cursor);
      for (const cursor of [...bad, 'x', '!!!', 'bnVsbA==', 'e30=', 'W10=']) {
        const { status, json } = await partner.get(`${path}?cursor=${encodeURIComponent(cursor)}`);
        expect([path, cursor, status]).toEqual([path, cursor, 400]);
        expect(json).toEqual({ statusCode: 400, message: expect.any(String) });
      }
    }
  });

  it('4.3.3 an order that is created between two pages of listings does not shift them', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ listings: 1200, now: clock.now });
    const before = (await partner.pages(ASKS)).flatMap(({ listings }) => listings);
    const first = await partner.page(ASKS);
    clock.advance(1000);
    await list(partner, 'ask');
    const second = await partner.page(ASKS, first.nextCursor);
    expect(second.listings).toEqual(before.slice(500, 1000));
  });
});
