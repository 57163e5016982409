import { describe, it } from 'vitest';
import { list, quietSkus } from './calls.ts';
import { feesOf, foreignOrder, intake, orderIn, trackingOf } from './levers.ts';
import { HandClock, NO_ORDER, open, type Partner } from './support.ts';

interface Listing {
  order_id: string;
  sku: string;
  size: string;
  price: number;
}

const KINDS = ['ask', 'preorder'] as const;
type Kind = (typeof KINDS)[number];

const EDITS = { ask: '/partner/edit/listing', preorder: '/partner/edit/preorder' };

/** Returns the live listings of a type, newest first as sent. */
async function live(partner: Partner, kind: Kind): Promise<Listing[]> {
  const pages = await partner.pages<Listing>(`/partner/live/listings/${kind}`);
  return pages.flatMap(({ listings }) => listings);
}

async function priceOf(partner: Partner, kind: Kind, id: string): Promise<number | undefined> {
  return (await live(partner, kind)).find(({ order_id }) => order_id === id)?.price;
}

const tracked = (id: string, number = 'TH0001'): object => ({ order_id: id, tracking_number: number });

describe.concurrent('listings', () => {
  it('4.4.ask, 4.4.preorder, 4.4.reconcile, 7.1.201 each call creates a listing that a later read finds', async ({
    expect,
  }) => {
    await using partner = await open({ listings: 0 });
    const sku = quietSkus(partner)[0];
    for (const kind of KINDS) {
      const created = await partner.post(`/partner/list/${kind}`, { sku, size: '41', price: 1234 });
      expect([created.status, created.json]).toEqual([
        201,
        expect.objectContaining({ order_id: expect.any(String) }),
      ]);
      const { order_id } = created.json;
      expect(await live(partner, kind)).toEqual([
        expect.objectContaining({ order_id, sku, size: '41', price: 1234 }),
      ]);
    }
  });

  it('4.4.ask, 4.4.preorder, 8.create-floor, 7.4.5 less than 50 baht is stored as 50', async ({ expect }) => {
    await using partner = await open({ listings: 0, rateLimit: 1000 });
    for (const kind of KINDS) {
      for (const [sent, stored] of [
        [50, 50],
        [49, 50],
        [1, 50],
        [0, 50],
        [-700, 50],
        [51, 51],
      ] as const) {
        const id = await list(partner, kind, sent);
        expect([kind, sent, await priceOf(partner, kind, id)]).toEqual([kind, sent, stored]);
      }
    }
  });

  it('4.4.ask, 7.4.4 vacation mode answers 201 with only a status and creates nothing', async ({
    expect,
  }) => {
    await using partner = await open({ listings: 0 });
    partner.sandbox.account.setVacation(true);
    const body = { sku: quietSkus(partner)[0], size: '41', price: 1234 };
    const { status, json } = await partner.post('/partner/list/ask', body);
    expect([status, Object.keys(json)]).toEqual([201, ['status']]);
    expect(json['status']).toMatch(/vacation mode/i);
    expect(await live(partner, 'ask')).toEqual([]);
    partner.sandbox.account.setVacation(false);
    expect((await partner.post('/partner/list/ask', body)).json).toHaveProperty('order_id');
  });

  it('4.4.preorder ignores vacation mode', async ({ expect }) => {
    await using partner = await open({ listings: 0, vacation: true });
    await list(partner, 'preorder');
    expect(await live(partner, 'preorder')).toHaveLength(1);
  });

  it('4.4.ask, 4.4.preorder, 7.1.400 a listing with a missing member is a validation failure', async ({
    expect,
  }) => {
    await using partner = await open({ listings: 0 });
    const good = { sku: quietSkus(partner)[0], size: '41', price: 1234 };
    const bad = [
      {},
      [],
      null,
      'x',
      { ...good, sku: undefined },
      { ...good, size: 7 },
      { ...good, price: 'x' },
    ];
    for (const kind of KINDS) {
      for (const body of bad) {
        const { status, json } = await partner.post(`/partner/list/${kind}`, body);
        expect([kind, body, status]).toEqual([kind, body, 400]);
        expect(json).toMatchObject({ statusCode: 400 });
      }
      expect(await live(partner, kind)).toEqual([]);
    }
  });

  it('4.4.edit-listing, 4.4.edit-preorder, 8.edit-floor, 7.4.5 less than 100 baht is stored as 100', async ({
    expect,
  }) => {
    await using partner = await open({ listings: 0, rateLimit: 1000 });
    for (const kind of KINDS) {
      const order_id = await list(partner, kind, 700);
      for (const [sent, stored] of [
        [888, 888],
        [101, 101],
        [100, 100],
        [99, 100],
        [50, 100],
        [0, 100],
        [-1, 100],
      ] as const) {
        const { status } = await partner.put(EDITS[kind], { order_id, price: sent });
        expect([status, sent, await priceOf(partner, kind, order_id)]).toEqual([200, sent, stored]);
      }
      expect(await live(partner, kind)).toHaveLength(1);
    }
  });

  it('4.4.edit-listing, 4.4.edit-preorder, 7.4.1 a missing listing, or one of the other type, is not found', async ({
    expect,
  }) => {
    await using partner = await open({ listings: 0 });
    for (const kind of KINDS) {
      const other = await list(partner, kind === 'ask' ? 'preorder' : 'ask', 700);
      for (const order_id of [NO_ORDER, other]) {
        const { status, json } = await partner.put(EDITS[kind], { order_id, price: 800 });
        expect([status, json]).toEqual([
          400,
          { statusCode: 400, message: `not Found order ID: ${order_id}` },
        ]);
      }
      expect(await priceOf(partner, kind === 'ask' ? 'preorder' : 'ask', other)).toBe(700);
    }
  });

  it("4.4.edit-listing, 4.4.edit-preorder, 7.4.1 another supplier's listing is rejected and unchanged", async ({
    expect,
  }) => {
    await using partner = await open({ foreignOrders: 40 });
    for (const kind of KINDS) {
      const unexpected = [...partner.sandbox.listings].find(
        ({ own, listingType }) => !own && listingType === kind,
      );
      const before = { ...unexpected };
      const { status, json } = await partner.put(EDITS[kind], { order_id: unexpected?.id, price: 777 });
      expect([status, json]).toEqual([400, { statusCode: 400, message: 'uid not match' }]);
      expect(unexpected).toEqual(before);
      expect((await live(partner, kind)).map(({ order_id }) => order_id)).not.toContain(unexpected?.id);
    }
  });
});

describe.concurrent('orders', () => {
  it('4.4.confirm each accepted call records and deducts the fee again', async ({ expect }) => {
    await using partner = await open();
    const order_id = orderIn(partner, 'process');
    const payout = async (): Promise<number> =>
      Number((await partner.get(`/partner/${order_id}`)).json['expected_payout']);
    const before = await payout();
    for (const times of [1, 2, 3]) {
      expect((await partner.put('/partner/confirm/order', { order_id })).status).toBe(200);
      expect(feesOf(partner, order_id)).toBe(60 * times);
      expect(await payout()).toBe(before - 60 * times);
    }
  });

  it('4.4.confirm overlapping calls are all accepted, and each costs a fee', async ({ expect }) => {
    await using partner = await open();
    const order_id = orderIn(partner, 'pre_order');
    const calls = Array.from({ length: 4 }, () => partner.put('/partner/confirm/order', { order_id }));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(feesOf(partner, order_id)).toBe(240);
  });

  it('4.4.confirm once the status has changed, a repeat is rejected and records nothing', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now });
    const order_id = orderIn(partner, 'process');
    await partner.put('/partner/confirm/order', { order_id });
    clock.advance(60_000);
    const { status, json } = await partner.put('/partner/confirm/order', { order_id });
    expect([status, json['message']]).toEqual([400, 'status not allowed status: matched']);
    expect(feesOf(partner, order_id)).toBe(60);
  });

  it('4.4.confirm without seller shipping records the fee and does not deduct it', async ({ expect }) => {
    await using partner = await open({ sellerShipping: false });
    const order_id = orderIn(partner, 'process');
    const before = (await partner.get(`/partner/${order_id}`)).json['expected_payout'];
    await partner.put('/partner/confirm/order', { order_id });
    expect(feesOf(partner, order_id)).toBe(60);
    expect((await partner.get(`/partner/${order_id}`)).json['expected_payout']).toBe(before);
  });

  it('4.4.confirm, 7.4.1 missing and foreign orders are rejected, and get no fee', async ({ expect }) => {
    await using partner = await open();
    const unexpected = foreignOrder(partner);
    for (const [order_id, message] of [
      [NO_ORDER, `not Found order ID: ${NO_ORDER}`],
      [unexpected, 'uid not match'],
    ] as const) {
      const { status, json } = await partner.put('/partner/confirm/order', { order_id });
      expect([status, json]).toEqual([400, { statusCode: 400, message }]);
    }
    expect(feesOf(partner, unexpected)).toBe(0);
  });

  it('4.4.tracking, 7.4.6 unknown orders are silently skipped, and the others written', async ({
    expect,
  }) => {
    await using partner = await open();
    const [first, last] = [orderIn(partner, 'matched'), orderIn(partner, 'process')];
    const { status } = await partner.put('/partner/update/tracking', {
      orders: [tracked(first, 'TH-A'), tracked(NO_ORDER), tracked(last, 'TH-B')],
    });
    expect(status).toBe(200);
    expect([first, last].map((id) => trackingOf(partner, id))).toEqual(['TH-A', 'TH-B']);
    const none = await partner.put('/partner/update/tracking', { orders: [tracked(NO_ORDER)] });
    expect(none.status).toBe(200);
  });

  it('4.4.tracking, 7.4.2 a foreign order stops the call, and earlier rows stay written', async ({
    expect,
  }) => {
    await using partner = await open();
    const [before, after] = [orderIn(partner, 'matched'), orderIn(partner, 'matched')];
    const unexpected = foreignOrder(partner);
    const { status, json } = await partner.put('/partner/update/tracking', {
      orders: [tracked(before), tracked(NO_ORDER), tracked(unexpected), tracked(after)],
    });
    expect([status, json]).toEqual([
      400,
      { statusCode: 403, message: `Unauthorized: order ${unexpected} does not belong to this supplier` },
    ]);
    expect([before, unexpected, after].map((id) => trackingOf(partner, id))).toEqual(['TH0001', null, null]);
  });

  it('4.4.tracking a later call overwrites an earlier one, because no write is idempotent', async ({
    expect,
  }) => {
    await using partner = await open();
    const id = orderIn(partner, 'matched');
    for (const number of ['TH-A', 'TH-B'])
      await partner.put('/partner/update/tracking', { orders: [tracked(id, number)] });
    expect(trackingOf(partner, id)).toBe('TH-B');
  });
});

describe.concurrent('intake', () => {
  it('4.4.r2s price, quantity and size are stored as sent', async ({ expect }) => {
    await using partner = await open();
    const sku = quietSkus(partner)[0];
    const items = [
      { sku, size: '42', price: -5, quantity: 1_000_000_000 },
      { sku, size: 'no such size', price: 0, quantity: -3 },
      { sku, size: '', price: 12.5, quantity: 0 },
    ];
    const { status, json } = await partner.post('/partner/batch/r2s', { items });
    expect(status).toBe(200);
    expect(json).not.toHaveProperty('success');
    expect(intake(partner)).toEqual(items);
  });

  it('4.4.r2s sending the same call twice records it twice', async ({ expect }) => {
    await using partner = await open();
    const items = [{ sku: quietSkus(partner)[0], size: '42', price: 900, quantity: 1 }];
    for (const times of [1, 2]) {
      await partner.post('/partner/batch/r2s', { items });
      expect(intake(partner)).toHaveLength(times);
    }
  });

  it('4.4.r2s, 7.2.r2s a SKU that is rejected answers success false', async ({ expect }) => {
    await using partner = await open();
    const good = { sku: quietSkus(partner)[0], size: '42', price: 900, quantity: 1 };
    const { status, json } = await partner.post('/partner/batch/r2s', {
      items: [good, { ...good, sku: 'NOPE-1' }],
    });
    expect([status, json]).toEqual([400, { success: false, message: expect.any(String) }]);
    expect(intake(partner)).toEqual([]);
  });
});
