import { describe, it } from 'vitest';
import { ownOrder } from './calls.ts';
import { feesOf, orderIn } from './levers.ts';
import { HandClock, open, STATUSES, type Method, type Partner } from './support.ts';

const PATHS = new Set([
  'pending>process',
  'process>matched',
  'matched>settled',
  'pending>pre_order',
  'pre_order>process',
]);

const statusOf = async (partner: Partner, order: string): Promise<unknown> =>
  (await partner.get(`/partner/${order}`)).json['status'];

/** Returns the state of every order in the lists, and of those that were in them before. */
async function look(partner: Partner, before: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const pages = await Promise.all(
    ['processing', 'settled'].map((name) => partner.pages(`/partner/${name}/orders`)),
  );
  const orders = pages.flat().flatMap((page) => page.orders);
  const now = new Map(orders.map(({ order_id, status }) => [order_id, status]));
  for (const [id, status] of before) {
    if (!now.has(id)) now.set(id, status === 'failed' ? status : String(await statusOf(partner, id)));
  }
  return now;
}

const movesBetween = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] =>
  [...before].flatMap(([id, from]) => {
    const to = after.get(id) ?? 'gone';
    return to === from ? [] : [`${from}>${to}`];
  });

/** Returns the state of every order there is. */
const states = (partner: Partner): Map<string, string> =>
  new Map([...partner.sandbox.orders].map(({ id, status }) => [id, status]));

describe.concurrent('states and transitions', () => {
  it('3.states seeded orders have the six states and no others', async ({ expect }) => {
    await using partner = await open({ orders: 400, rateLimit: 10_000 });
    const seen = new Set((await look(partner, new Map())).values());
    expect([...seen].filter((status) => !STATUSES.includes(status))).toEqual([]);
    expect(seen.size).toBeGreaterThanOrEqual(5);
    expect(await statusOf(partner, orderIn(partner, 'failed'))).toBe('failed');
  });

  it('3.pending-process, 3.process-matched, 3.matched-settled, 3.pending-pre_order, 3.pre_order-process, 3.2 are the moves by themselves, and two states fail', async ({
    expect,
  }) => {
    await using partner = await open({ orders: 300, autoConfirm: true });
    const seen = new Set<string>();
    for (let step = 0, before = states(partner); step < 2500; step += 1) {
      partner.sandbox.orders.step();
      const after = states(partner);
      for (const move of movesBetween(before, after)) seen.add(move);
      before = after;
    }
    const failures = [...seen].filter((move) => move.endsWith('>failed'));
    expect([...seen].toSorted()).toEqual([...PATHS, ...failures].toSorted());
    expect(failures).toHaveLength(2);
    const mainPath = ['pending>failed', 'process>failed', 'matched>failed', 'settled>failed'];
    expect(mainPath).toEqual(expect.arrayContaining(failures));
  });

  it('3.2, 3.states a poller sees only these moves', async ({ expect }) => {
    await using partner = await open({ orders: 90, rateLimit: 10_000, autoConfirm: true });
    const seen = new Set<string>();
    let before = await look(partner, new Map());
    for (let step = 0; step < 60; step += 1) {
      partner.sandbox.orders.step();
      const after = await look(partner, before);
      for (const move of movesBetween(before, after)) seen.add(move);
      before = after;
    }
    expect(seen.size).toBeGreaterThan(2);
    expect([...seen].filter((move) => !PATHS.has(move) && !move.endsWith('>failed'))).toEqual([]);
    const own = [...partner.sandbox.orders].filter(({ own }) => own);
    expect(own.filter(({ id, status }) => (before.get(id) ?? 'failed') !== status)).toEqual([]);
  });

  it('3.3 no request of a partner can make an order fail', async ({ expect }) => {
    await using partner = await open();
    const { order_id } = await ownOrder(partner, 'process');
    const body = { order_id, status: 'failed', price: 100, tracking_number: 'TH1' };
    for (const method of ['PUT', 'POST', 'DELETE', 'PATCH'] as const satisfies Method[]) {
      for (const path of [`/partner/${order_id}`, '/partner/cancel/order', '/partner/order/status']) {
        const headers = { authorization: partner.basic(), 'content-type': 'application/json' };
        const answer = await partner.raw(method, path, headers, JSON.stringify(body));
        expect([method, path, answer.status]).toEqual([method, path, 404]);
      }
    }
    await partner.put('/partner/edit/listing', body);
    await partner.put('/partner/update/tracking', { status: 'failed', orders: [body] });
    await partner.put('/partner/confirm/order', body);
    expect(await statusOf(partner, order_id)).not.toBe('failed');
  });

  it('3.confirm, 3.4 a confirmed order stays for a while, then moves on; its fee applies at once', async ({
    expect,
  }) => {
    for (const [from, to] of [
      ['process', 'matched'],
      ['pre_order', 'process'],
    ] as const) {
      const clock = new HandClock();
      await using partner = await open({ now: clock.now, confirmDelayMs: 5000 });
      const order_id = orderIn(partner, from);
      expect((await partner.put('/partner/confirm/order', { order_id })).status).toBe(200);
      expect(feesOf(partner, order_id)).toBe(60);
      clock.advance(4999);
      expect(await statusOf(partner, order_id)).toBe(from);
      clock.advance(1);
      expect(await statusOf(partner, order_id)).toBe(to);
      const { orders } = await partner.page('/partner/processing/orders');
      expect(orders.find((order) => order.order_id === order_id)?.status).toBe(to);
    }
  });

  it('3.confirm, 3.2 only a confirmation moves an order on from process or pre_order; without one it fails at the deadline', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ orders: 0, now: clock.now, confirmDeadlineMs: 60_000 });
    const waiting = [orderIn(partner, 'process'), orderIn(partner, 'pre_order')];
    const confirmed = orderIn(partner, 'process');
    clock.advance(59_999);
    expect((await partner.put('/partner/confirm/order', { order_id: confirmed })).status).toBe(200);
    partner.sandbox.orders.step(500);
    for (const [at, from] of ['process', 'pre_order'].entries())
      expect(await statusOf(partner, waiting[at] ?? '')).toBe(from);
    clock.advance(1);
    for (const order_id of waiting) {
      expect(await statusOf(partner, order_id)).toBe('failed');
      const late = await partner.put('/partner/confirm/order', { order_id });
      expect([late.status, late.json['message']]).toEqual([400, 'status not allowed status: failed']);
      expect(feesOf(partner, order_id)).toBe(0);
    }
    clock.advance(5000);
    expect(await statusOf(partner, confirmed)).toBe('matched');
  });

  it('3.pre_order-process, 3.confirm a single confirmation is enough for a pre-order', async ({ expect }) => {
    const clock = new HandClock();
    await using partner = await open({ orders: 0, now: clock.now, confirmDeadlineMs: 60_000 });
    const order_id = orderIn(partner, 'pre_order');
    await partner.put('/partner/confirm/order', { order_id });
    clock.advance(3_600_000);
    expect(await statusOf(partner, order_id)).toBe('process');
    for (let step = 0; step < 500; step += 1) partner.sandbox.orders.step();
    expect(await statusOf(partner, order_id)).toBe('settled');
    expect(feesOf(partner, order_id)).toBe(60);
  });

  it('3.4, 7.4.3 confirm in any other status is rejected with its name, and records nothing', async ({
    expect,
  }) => {
    await using partner = await open();
    for (const status of ['pending', 'matched', 'settled', 'failed'] as const) {
      const order_id = orderIn(partner, status);
      const before = (await partner.get(`/partner/${order_id}`)).json;
      const fees = feesOf(partner, order_id);
      const answer = await partner.put('/partner/confirm/order', { order_id });
      expect([answer.status, answer.json]).toEqual([
        400,
        { statusCode: 400, message: `status not allowed status: ${status}` },
      ]);
      expect((await partner.get(`/partner/${order_id}`)).json).toEqual(before);
      expect(feesOf(partner, order_id)).toBe(fees);
    }
  });
});
