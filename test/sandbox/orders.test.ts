import { describe, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { HandClock, start, type Caller } from './support.ts';

const ofStatus = (caller: Caller, status: string, own = true): string =>
  [...caller.sandbox.orders].find((order) => order.status === status && order.own === own)?.id ?? '';

describe.concurrent('order lists (partner rules 2.1, 4.3)', () => {
  it.for([
    ['processing', '/partner/processing/orders', ['pending', 'pre_order', 'process', 'matched'], [100, 36]],
    ['settled', '/partner/settled/orders', ['settled'], [100, 6]],
  ] as const)(
    '%s: come in pages of 100, newest first, only those of the account',
    async ([type, path, statuses, sizes], { expect }) => {
      const caller = await start();
      await using _ = caller.sandbox;
      const { json } = await caller.send(path);
      expect(json).toMatchObject({ type, nextCursor: expect.stringMatching(/^[A-Za-z0-9]+=*$/) });
      const all = await caller.pages(path, 'orders');
      expect(all.map((page) => page.length)).toEqual(sizes);
      const rows = all.flat();
      expect(new Set(rows.map((row) => row.status))).toEqual(new Set(statuses));
      expect(rows.map((row) => row.created_at)).toEqual(
        rows
          .map((row) => row.created_at)
          .toSorted()
          .toReversed(),
      );
      const own = [...caller.sandbox.orders].filter((order) => order.own);
      expect(new Set(rows.map((row) => row.order_id))).toEqual(
        new Set(
          own.filter(({ status }) => (statuses as readonly string[]).includes(status)).map(({ id }) => id),
        ),
      );
    },
  );

  it('a full page may also be the last one', async ({ expect }) => {
    const clock = new HandClock();
    const caller = await start({ orders: 0, now: clock.now });
    await using _ = caller.sandbox;
    const { orders } = caller.sandbox;
    const place = () => orders.place({ sku: 'A', size: '7', price: 900 }).id;
    const ids = Array.from({ length: 100 }, place);
    const path = '/partner/processing/orders';
    expect((await caller.pages(path, 'orders')).map((page) => page.length)).toEqual([100]);
    ids.push(place());
    // All have the same millisecond, so their number decides.
    const all = await caller.pages(path, 'orders');
    expect(all.map((page) => page.map((row) => row.order_id))).toEqual([
      ids.slice(1).toReversed(),
      ids.slice(0, 1),
    ]);
  });

  it('orders that come or go between two pages do not shift the others', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const path = '/partner/processing/orders';
    const before = (await caller.pages(path, 'orders')).flat().map((row) => row.order_id);
    const { json } = await caller.send(path);
    caller.sandbox.orders.place({ sku: 'A', size: '7', price: 900 });
    caller.sandbox.orders.setStatus(before[3] ?? '', 'settled');
    const next = await caller.send(`${path}?cursor=${String(json.nextCursor)}`);
    expect(next.json.orders.map((row) => row.order_id)).toEqual(before.slice(100));
  });

  it('an invalid cursor or that of another endpoint is rejected, and limit has no effect', async ({
    expect,
  }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const { json } = await caller.send('/partner/processing/orders?limit=3');
    expect(json.orders).toHaveLength(100);
    const cursor = String(json.nextCursor);
    for (const target of [
      `/partner/settled/orders?cursor=${cursor}`,
      '/partner/processing/orders?cursor=',
      '/partner/processing/orders?cursor=null',
      `/partner/processing/orders?cursor=${cursor.slice(0, -4)}`,
      `/partner/processing/orders?cursor=${Buffer.from('["processing",null,1]').toString('base64')}`,
      `/partner/processing/orders?cursor=${Buffer.from('{"a":1}').toString('base64')}`,
    ]) {
      const { status, text } = await caller.send(target);
      expect([target, status, text]).toEqual([target, 400, '{"statusCode":400,"message":"invalid cursor"}']);
    }
  });
});

describe.concurrent('one order (partner rules 2.2, 4.3, 7.4)', () => {
  it('is read with its payout', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const { id } = caller.sandbox.orders.place({ sku: 'A/1', size: 'EU 40', price: 1005 });
    expect((await caller.send(`/partner/${id}`)).json).toEqual({
      order_id: id,
      status: 'pending',
      expected_payout: 904,
      sku: 'A/1',
      size: 'EU 40',
      price: 1005,
      listing_type: 'ask',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    expect((await caller.send(`/partner/payout/${id}`)).json).toEqual({
      order_id: id,
      price: 1005,
      commission_fee: 101,
      shipping_fee: 0,
      expected_payout: 904,
    });
    expect(caller.sandbox.requests.map(({ route }) => route)).toEqual(['order', 'payout']);
  });

  it.for(['/partner/', '/partner/payout/'])(
    '%s{id}: missing and foreign orders are 400, never 404',
    async (path, { expect }) => {
      const caller = await start();
      await using _ = caller.sandbox;
      const foreign = ofStatus(caller, 'process', false);
      for (const [id, message] of [
        ['O-999999', 'not Found order ID: O-999999'],
        ['%E0%B8%81%2Fx', 'not Found order ID: ก/x'],
        ['__proto__', 'not Found order ID: __proto__'],
        ['%E0', 'order_id is not a valid path segment'],
        [foreign, 'uid not match'],
      ] as const) {
        const { status, json } = await caller.send(path + id);
        expect([id, status, json]).toEqual([id, 400, { statusCode: 400, message }]);
      }
    },
  );

  it('shows undocumented members if the dialect sends them', async ({ expect }) => {
    const caller = await start({ dialect: { extraFields: true } });
    await using _ = caller.sandbox;
    const id = ofStatus(caller, 'process');
    expect((await caller.send(`/partner/${id}`)).json).toHaveProperty('tracking_number', null);
  });
});

describe.concurrent('seeded orders', () => {
  const facts = ({ sandbox }: Caller) =>
    [...sandbox.orders].map(({ createdAt: _c, updatedAt: _u, ...rest }) => rest);

  it('are the same for the same seed, and differ for another', async ({ expect }) => {
    const { now } = new HandClock();
    const callers = await Promise.all([7, 7, 8].map((seed) => start({ seed, now })));
    for (const { sandbox } of callers) sandbox.orders.step(500);
    const [one, twin, other] = callers.map(facts);
    expect(twin).toEqual(one);
    expect(other).not.toEqual(one);
    await Promise.all(callers.map(({ sandbox }) => sandbox.close()));
  });

  it('show every status if there are at least six, and there are none in an empty catalog', async ({
    expect,
  }) => {
    const caller = await start({ orders: 6, foreignOrders: 0 });
    await using _ = caller.sandbox;
    expect(new Set([...caller.sandbox.orders].map(({ status }) => status)).size).toBe(6);
    const empty = await start({ skus: 0 });
    await using __ = empty.sandbox;
    expect([...empty.sandbox.orders]).toEqual([]);
  });
});

describe.concurrent('life of orders (partner rules 3)', () => {
  const ALLOWED = new Set([
    'pending>process',
    'pending>pre_order',
    'pending>failed',
    'pre_order>process',
    'process>matched',
    'process>failed',
    'matched>settled',
  ]);

  it('follows only the documented moves, until every order has ended', async ({ expect }) => {
    const caller = await start({ orders: 0, foreignOrders: 5, autoConfirm: true });
    await using _ = caller.sandbox;
    const { orders } = caller.sandbox;
    const foreign = [...orders].filter(({ own }) => !own).map(({ status }) => status);
    for (let n = 0; n < 150; n += 1)
      orders.place({ sku: 'A', size: '7', price: 900 }, { listingType: n % 2 === 0 ? 'ask' : 'preorder' });
    let before = new Map([...orders].map(({ id, status }) => [id, status]));
    const seen = new Set<string>();
    for (let n = 0; n < 2500; n += 1) {
      orders.step();
      for (const { id, status } of orders)
        if (before.get(id) !== status) seen.add(`${before.get(id)}>${status}`);
      before = new Map([...orders].map(({ id, status }) => [id, status]));
    }
    expect(seen).toEqual(ALLOWED);
    expect(new Set([...orders].filter(({ own }) => own).map(({ status }) => status))).toEqual(
      new Set(['settled', 'failed']),
    );
    expect([...orders].filter(({ own }) => !own).map(({ status }) => status)).toEqual(foreign);
  });

  it('stays in process and pre_order without a confirmation if there is no deadline, however long', async ({
    expect,
  }) => {
    const clock = new HandClock();
    const caller = await start({ orders: 40, now: clock.now });
    await using _ = caller.sandbox;
    const waiting = () =>
      [...caller.sandbox.orders]
        .filter(({ own, status }) => own && (status === 'process' || status === 'pre_order'))
        .map(({ id, shippingFees }) => [id, shippingFees] as const);
    const before = waiting();
    expect(before.length).toBeGreaterThan(5);
    clock.advance(90 * 86_400_000);
    caller.sandbox.orders.step(1000);
    expect(waiting()).toEqual(expect.arrayContaining(before));
    expect(new Set(waiting().map(([, fees]) => fees))).toEqual(new Set([0]));
  });

  it('gives seeded orders the whole deadline, and lets a state last at least three steps', async ({
    expect,
  }) => {
    const clock = new HandClock();
    const caller = await start({ now: clock.now, confirmDeadlineMs: 60_000 });
    await using _ = caller.sandbox;
    const { orders } = caller.sandbox;
    const counts = (status: string) =>
      [...orders].filter((each) => each.own && each.status === status).length;
    const [failed, waiting] = [counts('failed'), counts('process') + counts('pre_order')];
    clock.advance(59_999);
    expect(counts('process') + counts('pre_order')).toBe(waiting);
    clock.advance(1);
    expect([counts('process'), counts('pre_order'), counts('failed')]).toEqual([0, 0, failed + waiting]);
    const { id } = orders.place({ sku: 'A', size: '7', price: 900 });
    const lasted: string[] = [];
    for (let step = 0; step < 2000 && lasted.at(-1) !== 'process'; step += 1) {
      orders.step();
      lasted.push(orders.find(id)?.status ?? '');
      if (lasted.at(-1) === 'failed') break;
    }
    expect(lasted.slice(0, 2)).toEqual(['pending', 'pending']);
  });

  it('charges an automatically confirmed order the fee exactly once', async ({ expect }) => {
    const caller = await start({ orders: 200, autoConfirm: true });
    await using _ = caller.sandbox;
    const { orders } = caller.sandbox;
    orders.step(4000);
    const fees = [...orders]
      .filter((order) => order.own && order.status === 'settled')
      .map((o) => o.shippingFees);
    expect(new Set(fees)).toEqual(new Set([60]));
  });

  it('has asks and pre-orders at start', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const kinds = new Set([...caller.sandbox.orders].map((order) => `${order.status} ${order.listingType}`));
    expect([...kinds].toSorted()).toEqual([
      'failed ask',
      'matched ask',
      'matched preorder',
      'pending ask',
      'pending preorder',
      'pre_order preorder',
      'process ask',
      'process preorder',
      'settled ask',
      'settled preorder',
    ]);
  });

  it('advances by itself with the market', async ({ expect }) => {
    const caller = await start({ marketIntervalMs: 2 });
    await using _ = caller.sandbox;
    const statuses = () => JSON.stringify([...caller.sandbox.orders].map(({ status }) => status));
    const before = statuses();
    await eventually(() => expect(statuses() !== before).toBe(true));
  });
});
