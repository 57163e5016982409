import { describe, it } from 'vitest';
import { HandClock, skusWhere, start, type Caller } from './support.ts';

const CONFIRM = '/partner/confirm/order';
const TRACKING = '/partner/update/tracking';
const R2S = '/partner/batch/r2s';
const GOODS = { sku: 'A', size: '9', price: 1000 };
const foreign = (caller: Caller): string => [...caller.sandbox.orders].find(({ own }) => !own)?.id ?? '';

describe.concurrent('confirm (partner rules 4.4, 3.4)', () => {
  it.for([
    ['process', 'ask', 'matched'],
    ['pre_order', 'preorder', 'process'],
  ] as const)('of %s moves the order, with a delay', async ([status, listingType, to], { expect }) => {
    const clock = new HandClock();
    const caller = await start({ orders: 0, now: clock.now, confirmDelayMs: 5000 });
    await using _ = caller.sandbox;
    const { id } = caller.sandbox.orders.place(GOODS, { status, listingType });
    const seen = await caller.write('PUT', CONFIRM, { order_id: id });
    expect([seen.status, seen.json]).toEqual([200, { order_id: id, status }]);
    clock.advance(4999);
    expect((await caller.send(`/partner/${id}`)).json.status).toBe(status);
    clock.advance(1);
    expect((await caller.send(`/partner/${id}`)).json.status).toBe(to);
    clock.advance(60_000);
    expect((await caller.send(`/partner/${id}`)).json.status).toBe(to);
  });

  it('costs the fee again at each repeat until the status changes, and moves the order once', async ({
    expect,
  }) => {
    const clock = new HandClock();
    const caller = await start({ orders: 0, now: clock.now });
    await using _ = caller.sandbox;
    const { id } = caller.sandbox.orders.place(GOODS, { status: 'process' });
    const payouts: unknown[] = [];
    for (const pause of [0, 3000, 2000]) {
      clock.advance(pause);
      const seen = await caller.write('PUT', CONFIRM, { order_id: id });
      const { json } = await caller.send(`/partner/payout/${id}`);
      payouts.push([seen.status, json['shipping_fee'], json['expected_payout']]);
    }
    expect(payouts).toEqual([
      [200, 60, 840],
      [200, 120, 780],
      // The move that the first call started has happened in between.
      [400, 120, 780],
    ]);
    expect((await caller.send(`/partner/${id}`)).json).toMatchObject({
      status: 'matched',
      expected_payout: 780,
    });
  });

  it('records the fee and deducts nothing if the account does not ship', async ({ expect }) => {
    const caller = await start({ orders: 0, sellerShipping: false });
    await using _ = caller.sandbox;
    const { id } = caller.sandbox.orders.place(GOODS, { status: 'process' });
    await caller.write('PUT', CONFIRM, { order_id: id });
    const payout = { price: 1000, commission_fee: 100, shipping_fee: 60, expected_payout: 900 };
    expect((await caller.send(`/partner/payout/${id}`)).json).toEqual({ order_id: id, ...payout });
    caller.sandbox.account.setSellerShipping(true);
    await caller.write('PUT', CONFIRM, { order_id: id });
    expect((await caller.send(`/partner/payout/${id}`)).json['expected_payout']).toBe(840);
  });

  it('rejects orders in other states by name, missing and foreign orders, and invalid bodies', async ({
    expect,
  }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const before = JSON.stringify([...caller.sandbox.orders]);
    const cases: [unknown, string][] = (['pending', 'matched', 'settled', 'failed'] as const).map(
      (status) => [
        { order_id: [...caller.sandbox.orders].find((order) => order.own && order.status === status)?.id },
        `status not allowed status: ${status}`,
      ],
    );
    cases.push(
      [{ order_id: 'O-999999' }, 'not Found order ID: O-999999'],
      [{ order_id: foreign(caller) }, 'uid not match'],
      [{ order_id: 7 }, 'order_id must be a string that is not empty'],
      [{}, 'order_id must be a string that is not empty'],
      ['nonsense', 'body must be valid JSON'],
    );
    for (const [body, message] of cases) {
      const seen = await caller.write('PUT', CONFIRM, body);
      expect([body, seen.status, seen.json]).toEqual([body, 400, { statusCode: 400, message }]);
    }
    expect(JSON.stringify([...caller.sandbox.orders])).toBe(before);
  });

  it('makes an order wait for its move, whatever else happens, unless it is moved by hand', async ({
    expect,
  }) => {
    const clock = new HandClock();
    const caller = await start({ orders: 0, now: clock.now });
    await using _ = caller.sandbox;
    const { orders } = caller.sandbox;
    const [kept, cancelled] = [1, 2].map(() => orders.place(GOODS, { status: 'process' }).id);
    for (const order_id of [kept, cancelled]) await caller.write('PUT', CONFIRM, { order_id });
    orders.step(500);
    expect([kept, cancelled].map((id) => orders.find(id ?? '')?.status)).toEqual(['process', 'process']);
    orders.setStatus(cancelled ?? '', 'failed');
    clock.advance(5000);
    expect([kept, cancelled].map((id) => orders.find(id ?? '')?.status)).toEqual(['matched', 'failed']);
  });
});

describe.concurrent('tracking (partner rules 4.4, 7.4.2 and 7.4.6)', () => {
  const row = (order_id: string, tracking_number: string) => ({ order_id, tracking_number });

  it('skips missing orders, and stops at a foreign one with the earlier rows written', async ({ expect }) => {
    const caller = await start({ orders: 0 });
    await using _ = caller.sandbox;
    const { orders } = caller.sandbox;
    const ids = [1, 2, 3].map(() => orders.place(GOODS, { status: 'matched' }).id);
    const [one = '', two = '', three = ''] = ids;
    const theirs = foreign(caller);
    const tracked = () => ids.map((id) => orders.find(id)?.tracking?.number);
    const skipped = await caller.write('PUT', TRACKING, {
      orders: [row('O-999999', 'T0'), { ...row(one, 'T1'), courier: 'Flash' }],
    });
    expect([skipped.status, skipped.json, tracked()]).toEqual([
      200,
      { message: 'success' },
      ['T1', undefined, undefined],
    ]);
    expect(orders.find(one)?.tracking).toEqual({ number: 'T1', courier: 'Flash' });
    const stopped = await caller.write('PUT', TRACKING, {
      orders: [row(one, 'T1b'), row(two, 'T2'), row(theirs, 'T3'), row(three, 'T4')],
    });
    expect([stopped.status, stopped.json, tracked()]).toEqual([
      400,
      { statusCode: 403, message: `Unauthorized: order ${theirs} does not belong to this supplier` },
      ['T1b', 'T2', undefined],
    ]);
    expect(orders.find(theirs)?.tracking).toBeNull();
  });

  it('rejects a malformed body before anything is written', async ({ expect }) => {
    const caller = await start({ orders: 0 });
    await using _ = caller.sandbox;
    const { id } = caller.sandbox.orders.place(GOODS);
    for (const [body, message] of [
      [[], 'body must be a JSON object'],
      [{}, 'orders must be an array'],
      [{ orders: [row(id, 'T'), null] }, 'must be a JSON object'],
      [{ orders: [row(id, 'T'), { order_id: id }] }, 'tracking_number must be a string that is not empty'],
      [{ orders: [{ ...row(id, 'T'), courier: 7 }] }, 'courier must be a string that is not empty'],
    ] as const) {
      const seen = await caller.write('PUT', TRACKING, body);
      expect([body, seen.status, seen.json]).toEqual([body, 400, { statusCode: 400, message }]);
    }
    expect(caller.sandbox.orders.find(id)?.tracking).toBeNull();
    expect((await caller.write('PUT', TRACKING, { orders: [] })).status).toBe(200);
  });
});

describe.concurrent('ready-to-ship batch (partner rules 4.4, 7.2)', () => {
  it('stores price, quantity and size as sent', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const [sku = '', other = ''] = skusWhere(caller, (row) => row.listed);
    const items = [
      { sku, size: '9', price: -1, quantity: 1e9 },
      { sku: other, size: { odd: true }, price: 'free', quantity: null },
    ];
    const seen = await caller.write('POST', R2S, { items });
    expect([seen.status, seen.json]).toEqual([200, { message: 'success', count: 2 }]);
    expect([...caller.sandbox.intake]).toEqual(items);
  });

  it('rejects the whole call for one bad SKU with its own body, and stores nothing', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const [sku = ''] = skusWhere(caller, (row) => row.listed);
    for (const [bad, message] of [
      ['NOPE', 'unknown sku: NOPE'],
      [7, 'sku must be a string that is not empty'],
    ]) {
      const seen = await caller.write('POST', R2S, { items: [{ sku }, { sku: bad }] });
      expect([seen.status, seen.json]).toEqual([400, { success: false, message }]);
    }
    const shapeless = await caller.write('POST', R2S, { items: 'all' });
    expect(shapeless.json).toEqual({ statusCode: 400, message: 'items must be an array' });
    expect([...caller.sandbox.intake]).toEqual([]);
  });
});

describe.concurrent('a rejected write', () => {
  it('changes nothing, whether throttled or sent with a wrong secret', async ({ expect }) => {
    const caller = await start({ rateLimit: 1 });
    await using _ = caller.sandbox;
    const { orders, listings, intake } = caller.sandbox;
    const state = () => JSON.stringify([[...orders], [...listings], [...intake]]);
    const before = state();
    const order_id = [...orders].find((order) => order.own && order.status === 'process')?.id;
    const [sku = ''] = skusWhere(caller, (row) => row.listed);
    await caller.manifest();
    for (const [method, path, body] of [
      ['PUT', CONFIRM, { order_id }],
      ['PUT', TRACKING, { orders: [{ order_id, tracking_number: 'T' }] }],
      ['POST', R2S, { items: [{ sku }] }],
      ['POST', '/partner/list/ask', { sku, size: '9', price: 100 }],
    ] as const) {
      const seen = await caller.write(method, path, body);
      expect([path, seen.status, seen.text]).toEqual([path, 403, '{"message":"Forbidden"}']);
    }
    expect(state()).toBe(before);
  });
});
