import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { everyCall, list, quietSkus, send } from './calls.ts';
import { open, type Json } from './support.ts';

/** Members that hold an amount, wherever they occur. */
const AMOUNTS = new Set(['price', 'expected_payout', 'commission_fee', 'shipping_fee']);

function amountsIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    AMOUNTS.has(key) ? [member as unknown] : amountsIn(member),
  );
}

describe('conventions', () => {
  it('1.1 every endpoint rejects a request without a credential', async () => {
    await using partner = await open();
    for (const { endpoint, method, path, body } of await everyCall(partner)) {
      const answer = await partner.raw(method, path, {}, body && JSON.stringify(body));
      expect([endpoint, answer.status]).toEqual([endpoint, 401]);
    }
  });

  it('1.2 every endpoint answers a success with a JSON object without an envelope', async () => {
    await using partner = await open();
    for (const call of await everyCall(partner)) {
      const { status, json } = await send(partner, call);
      expect([call.endpoint, status]).toEqual([call.endpoint, expect.toBeOneOf([200, 201])]);
      const members = Object.keys(json);
      expect(members).not.toEqual([]);
      expect([call.endpoint, members.filter((name) => ['data', 'success'].includes(name))]).toEqual([
        call.endpoint,
        [],
      ]);
    }
  });

  it('1.3 a success is gzipped only for a client that accepts it', async () => {
    await using partner = await open();
    for (const call of await everyCall(partner)) {
      const plain = await send(partner, call);
      const zipped = await send(partner, call, { 'accept-encoding': 'gzip' });
      expect([call.endpoint, plain.headers['content-encoding']]).toEqual([call.endpoint, undefined]);
      expect([call.endpoint, zipped.headers['content-encoding']]).toEqual([call.endpoint, 'gzip']);
      const refused = await send(partner, call, { 'accept-encoding': 'gzip;q=0' });
      expect([call.endpoint, refused.headers['content-encoding']]).toEqual([call.endpoint, undefined]);
      const unzipped = JSON.parse(gunzipSync(zipped.bytes).toString('utf8')) as Json;
      expect(Object.keys(unzipped)).toEqual(Object.keys(plain.json));
    }
  });

  it('1.6 sending a write twice makes two writes, even with an idempotency key', async () => {
    await using partner = await open({ listings: 0 });
    const body = { sku: quietSkus(partner)[0], size: '42', price: 900 };
    for (const kind of ['ask', 'preorder']) {
      const headers = { 'idempotency-key': 'once' };
      const first = await partner.post(`/partner/list/${kind}`, body, headers);
      const second = await partner.post(`/partner/list/${kind}`, body, headers);
      expect(first.json['order_id']).not.toBe(second.json['order_id']);
      expect((await partner.page(`/partner/live/listings/${kind}`)).listings).toHaveLength(2);
    }
  });

  it('1.7 every amount is a whole number of baht', async () => {
    await using partner = await open();
    await list(partner, 'ask', 1234.56).catch(() => null);
    const sku = quietSkus(partner)[0] ?? '';
    const prices = Object.values((await partner.lowest(sku)).json['size_map'] as Json);
    expect(prices.filter((price) => typeof price === 'number' && !Number.isInteger(price))).toEqual([]);
    for (const call of await everyCall(partner)) {
      const amounts = amountsIn((await send(partner, call)).json);
      expect([call.endpoint, amounts.filter((amount) => !Number.isInteger(amount))]).toEqual([
        call.endpoint,
        [],
      ]);
    }
    const { orders } = await partner.page('/partner/processing/orders');
    expect(amountsIn(orders).length).toBeGreaterThan(100);
  });

  it('1.8 any origin may read answers, rejections included', async () => {
    await using partner = await open();
    const answers = [
      await partner.raw('GET', '/partner/catalog/manifest', {}),
      await partner.get('/partner/catalog/delta'),
      await partner.get('/nothing'),
    ];
    for (const call of await everyCall(partner)) answers.push(await send(partner, call));
    expect(answers.map(({ headers }) => headers['access-control-allow-origin'])).toEqual(
      answers.map(() => '*'),
    );
  });
});
