import { describe, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { control, type Json, opened } from './control-support.ts';

describe.concurrent('control: orders and account', () => {
  it('places an order of a listing, which sells a piece, and moves the order', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const { json: listings } = await control(caller, 'GET', '/listings');
    const listing = (listings['listings'] as Json[]).find((each) => each['own']) ?? {};
    const placed = await control(caller, 'POST', '/orders', {
      listing: listing['order_id'],
      status: 'process',
    });
    expect([placed.status, placed.json]).toMatchObject([
      201,
      { sku: listing['sku'], price: listing['price'], status: 'process' },
    ]);
    const id = String(placed.json['order_id']);
    expect((await caller.send(`/partner/${id}`)).json['status']).toBe('process');
    const moved = await control(caller, 'PUT', `/orders/${id}`, { status: 'failed' });
    expect(moved.json['status']).toBe('failed');
    expect((await caller.send(`/partner/${id}`)).json['status']).toBe('failed');
    const after = await control(caller, 'GET', '/listings');
    const left = (after.json['listings'] as Json[]).find((each) => each['order_id'] === listing['order_id']);
    expect(left?.['quantity'] ?? 0).toBe(Number(listing['quantity']) - 1);
  });

  it('places an order of another supplier', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const { json } = await control(caller, 'POST', '/orders', { own: false, sku: 'X', size: '9', price: 10 });
    expect((await caller.send(`/partner/${String(json['order_id'])}`)).json['message']).toBe('uid not match');
  });

  it('sets the deadline of one order, and of all future ones', async ({ expect }) => {
    const caller = await opened({ confirmDeadlineMs: 3_600_000 });
    await using _ = caller.sandbox;
    const { json } = await control(caller, 'POST', '/orders', { status: 'process' });
    expect(json['confirm_by']).toBe('2026-01-01T01:00:00.000Z');
    const id = String(json['order_id']);
    await control(caller, 'PUT', `/orders/${id}`, { confirm_within: '10s' });
    await control(caller, 'PUT', '/account', { confirm_deadline: '30s' });
    const other = await control(caller, 'POST', '/orders', { status: 'pre_order' });
    expect(other.json['confirm_by']).toBe('2026-01-01T00:00:30.000Z');
    const statuses = async () =>
      Promise.all(
        [id, String(other.json['order_id'])].map(
          async (each) => (await caller.send(`/partner/${each}`)).json['status'],
        ),
      );
    await control(caller, 'POST', '/clock', { advance: '10s' });
    expect(await statuses()).toEqual(['failed', 'pre_order']);
    await control(caller, 'POST', '/clock', { advance: '20s' });
    expect(await statuses()).toEqual(['failed', 'failed']);
  });

  it('leaves an order unchanged if it rejects the call', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const { json: placed } = await control(caller, 'POST', '/orders', { status: 'process' });
    const path = `/orders/${String(placed['order_id'])}`;
    await caller.send('/partner/confirm/order', {
      method: 'PUT',
      body: JSON.stringify({ order_id: placed['order_id'] }),
    });
    const order = async () => {
      const { json } = await control(caller, 'GET', '/orders');
      return (json['orders'] as Json[]).find((each) => each['order_id'] === placed['order_id']);
    };
    const before = await order();
    for (const body of [{ confirm_within: '5m' }, { status: 'settled', confirm_within: '5m' }]) {
      const refused = await control(caller, 'PUT', path, body);
      expect([refused.status, refused.json['message']]).toEqual([
        400,
        expect.stringContaining('does not wait for a confirmation'),
      ]);
      expect(await order()).toEqual(before);
    }
    const moved = await control(caller, 'PUT', path, { status: 'process', confirm_within: '5m' });
    expect(moved.json).toMatchObject({ confirmed: false, confirm_by: '2026-01-01T00:05:00.000Z' });
  });

  it('while confirmation is automatic, no order fails for lack of one', async ({ expect }) => {
    const caller = await opened({ orders: 0, confirmDeadlineMs: 60_000 });
    await using _ = caller.sandbox;
    const { json } = await control(caller, 'POST', '/orders', { status: 'process' });
    await control(caller, 'PUT', '/account', { auto_confirm: true });
    await control(caller, 'POST', '/clock', { advance: '2m' });
    const path = `/partner/${String(json['order_id'])}`;
    expect((await caller.send(path)).json['status']).toBe('process');
    await control(caller, 'PUT', '/account', { auto_confirm: false });
    expect((await caller.send(path)).json['status']).toBe('failed');
  });

  it('shows tracking and intake as written, which rows were skipped and where a call stopped', async ({
    expect,
  }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const place = async (body: Json) =>
      String((await control(caller, 'POST', '/orders', body)).json['order_id']);
    const [first, foreign, last] = [await place({}), await place({ own: false }), await place({})];
    const row = (order_id: string) => ({ order_id, tracking_number: `TH-${order_id}` });
    const orders = ['O-999999', first, foreign, last].map(row);
    expect(
      (await caller.send('/partner/update/tracking', { method: 'PUT', body: JSON.stringify({ orders }) }))
        .status,
    ).toBe(400);
    const { json } = await control(caller, 'GET', '/orders?limit=3');
    expect((json['orders'] as Json[]).map((order) => [order['order_id'], order['tracking_number']])).toEqual([
      [last, null],
      [foreign, null],
      [first, `TH-${first}`],
    ]);
    const sku = 'DD1391-100';
    const items = [{ sku, size: 9, price: -1, quantity: 1e9 }];
    await caller.send('/partner/batch/r2s', { method: 'POST', body: JSON.stringify({ items }) });
    expect((await control(caller, 'GET', '/intake')).json).toEqual({ total: 1, items });
  });

  it('sets vacation, shipping and an unconfigured account, and rotates the secret', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    await control(caller, 'PUT', '/account', { vacation: true, seller_shipping: false });
    const body = JSON.stringify({ sku: 'DD1391-100', size: '9', price: 900 });
    expect((await caller.send('/partner/list/ask', { method: 'POST', body })).json).toEqual({
      status: 'vacation mode',
    });
    await control(caller, 'PUT', '/account', { configured: false });
    expect((await caller.manifest()).json).toEqual({
      statusCode: 403,
      message: 'Supplier account not configured',
    });
    await control(caller, 'PUT', '/account', { configured: true });
    const old = { authorization: caller.basic() };
    await control(caller, 'POST', '/secret', { secret: 'next', overlap: '5m' });
    const withOld = async () => (await caller.send('/partner/catalog/manifest', { headers: old })).status;
    expect([await withOld(), (await caller.manifest()).status]).toEqual([200, 200]);
    await control(caller, 'POST', '/clock', { advance: '5m' });
    expect([await withOld(), (await caller.manifest()).status]).toEqual([403, 200]);
  });
});

describe.concurrent('control: faults and requests', () => {
  it('loses the answer of a confirmation that took effect', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const { json } = await control(caller, 'POST', '/orders', { status: 'process' });
    const order_id = String(json['order_id']);
    await control(caller, 'POST', '/faults', { route: 'confirm_order', lost: 'reset' });
    const confirm = () =>
      caller.send('/partner/confirm/order', { method: 'PUT', body: JSON.stringify({ order_id }) });
    await expect(confirm()).rejects.toThrow('fetch failed');
    const { json: all } = await control(caller, 'GET', '/orders?limit=1');
    expect(all['orders']).toMatchObject([
      { order_id, status: 'process', confirmed: true, shipping_fees: 60 },
    ]);
    await control(caller, 'POST', '/clock', { advance: '5s' });
    expect((await caller.send(`/partner/${order_id}`)).json['status']).toBe('matched');
    const seen = await control(caller, 'GET', '/requests?route=confirm_order');
    expect(seen.json['requests']).toMatchObject([
      { method: 'PUT', status: 200, fault: 'lost', counted: true, body: JSON.stringify({ order_id }) },
    ]);
    expect((await confirm()).status).toBe(400);
  });

  it('never answers a write that took effect, if the answer hangs', async ({ expect }) => {
    const caller = await opened({ listings: 0 });
    await using _ = caller.sandbox;
    await control(caller, 'POST', '/faults', { route: 'list_ask', lost: 'hang' });
    const body = JSON.stringify({ sku: 'DD1391-100', size: '9', price: 900 });
    const client = new AbortController();
    const asked = caller.send('/partner/list/ask', { method: 'POST', body, signal: client.signal });
    const gone = expect(asked).rejects.toThrow('aborted');
    await eventually(async () =>
      expect((await control(caller, 'GET', '/listings')).json['listings']).toContainEqual(
        expect.objectContaining({ price: 900, own: true }),
      ),
    );
    // An answer would have arrived before that of this later request.
    expect((await control(caller, 'GET', '/requests?route=list_ask')).json['requests']).toMatchObject([
      { status: 201, fault: 'lost' },
    ]);
    client.abort();
    await gone;
  });

  it('answers with armed faults: a service 500, a status, a delay, a cut; lists and clears them', async ({
    expect,
  }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const armed = await control(caller, 'POST', '/faults', {
      route: 'manifest',
      status: 500,
      times: 2,
      after: 1,
    });
    expect([armed.status, armed.json]).toEqual([
      201,
      { id: 1, route: 'manifest', status: 500, after: 1, times: 2, hits: 0 },
    ]);
    const seen = [];
    for (let n = 0; n < 4; n += 1) seen.push((await caller.manifest()).text);
    expect(seen.slice(1, 3)).toEqual([
      '{"errorMessage":"Internal Server Error"}',
      '{"errorMessage":"Internal Server Error"}',
    ]);
    expect([seen[0], seen[3]].map((text) => text?.includes('snapshot_id'))).toEqual([true, true]);
    expect((await control(caller, 'GET', '/faults')).json['faults']).toMatchObject([{ id: 1, hits: 2 }]);
    await control(caller, 'POST', '/faults', {
      status: 503,
      body: { code: '0012' },
      headers: { 'x-a': 'b' },
      delay: '1ms',
    });
    const bent = await caller.manifest();
    expect([bent.status, bent.text, bent.headers.get('x-a')]).toEqual([503, '{"code":"0012"}', 'b']);
    await control(caller, 'POST', '/faults', { route: 'delta', truncate_at: 5, clean: true });
    expect((await control(caller, 'DELETE', '/faults/1')).json['faults']).toMatchObject([
      { id: 2 },
      { id: 3 },
    ]);
    expect((await caller.delta('x')).text).toHaveLength(5);
    expect((await control(caller, 'DELETE', '/faults')).json).toEqual({ faults: [] });
    expect((await control(caller, 'DELETE', '/faults/9')).status).toBe(404);
  });

  it('does not record its own calls, or count them against the budget', async ({ expect }) => {
    const caller = await opened({ rateLimit: 3 });
    await using _ = caller.sandbox;
    for (let n = 0; n < 5; n += 1) await control(caller, 'GET', '/state');
    expect((await control(caller, 'GET', '/state')).json['budget']).toEqual({ limit: 3, used: 0, left: 3 });
    for (let n = 0; n < 4; n += 1) await caller.manifest();
    expect((await control(caller, 'GET', '/state')).json).toMatchObject({
      budget: { used: 4, left: 0 },
      requests: 4,
    });
    await control(caller, 'POST', '/clock', { advance: '1m' });
    expect((await control(caller, 'GET', '/state')).json['budget']).toEqual({ limit: 3, used: 0, left: 3 });
    expect((await control(caller, 'GET', '/requests?limit=1')).json).toMatchObject({
      total: 4,
      requests: [{ status: 403 }],
    });
    expect((await control(caller, 'DELETE', '/requests')).json).toEqual({ total: 0, requests: [] });
    expect((await control(caller, 'GET', '/requests')).json).toEqual({ total: 0, requests: [] });
  });
});
