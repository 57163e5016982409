import { describe, it } from 'vitest';
import { skusWhere, start, type Caller } from './support.ts';

const ASK = '/partner/live/listings/ask';
const PREORDER = '/partner/live/listings/preorder';
const aSku = (caller: Caller): string => skusWhere(caller, (row) => row.answer === 'record')[9] ?? '';
const listed = async (caller: Caller, path: string) => (await caller.pages(path, 'listings')).flat();
const foreign = (caller: Caller, type: string): string =>
  [...caller.sandbox.listings].find(({ own, listingType }) => !own && listingType === type)?.id ?? '';

describe.concurrent('live listings (partner rules 2.3, 4.3)', () => {
  it.for([
    ['ask', [500, 40]],
    ['preorder', [60]],
  ] as const)(
    '%s: come in pages of 500, newest first, only those of the account',
    async ([type, sizes], { expect }) => {
      const caller = await start();
      await using _ = caller.sandbox;
      const path = `/partner/live/listings/${type}?limit=7`;
      expect((await caller.send(path)).json).toMatchObject({ type });
      const all = await caller.pages(`/partner/live/listings/${type}`, 'listings');
      expect(all.map((page) => page.length)).toEqual(sizes);
      const rows = all.flat();
      const times = rows.map((row) => row.created_at);
      expect(times).toEqual(times.toSorted().toReversed());
      const own = [...caller.sandbox.listings].filter((row) => row.own && row.listingType === type);
      expect(new Set(rows.map((row) => row.order_id))).toEqual(new Set(own.map(({ id }) => id)));
      expect(rows[0]).toEqual({
        order_id: expect.stringMatching(/^L-\d{6}$/),
        sku: expect.any(String),
        size: expect.any(String),
        price: expect.any(Number),
        quantity: expect.any(Number),
        created_at: expect.any(String),
        updated_at: expect.any(String),
      });
    },
  );

  it('reject an unknown type, and a cursor of the other type', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const { json } = await caller.send(ASK);
    for (const [path, message] of [
      ['/partner/live/listings/bid', 'invalid listing type'],
      ['/partner/live/listings/__proto__', 'invalid listing type'],
      [`${PREORDER}?cursor=${json.nextCursor}`, 'invalid cursor'],
    ]) {
      const seen = await caller.send(path ?? '');
      expect([seen.status, seen.json]).toEqual([400, { statusCode: 400, message }]);
    }
  });

  it('are the same for the same seed', async ({ expect }) => {
    const now = () => Date.UTC(2026, 10, 21);
    const [one, twin, other] = await Promise.all([3, 3, 4].map((seed) => start({ seed, now })));
    const all = (caller?: Caller) => [...(caller?.sandbox.listings ?? [])];
    expect(all(twin)).toEqual(all(one));
    expect(all(other)).not.toEqual(all(one));
    for (const caller of [one, twin, other]) await caller?.sandbox.close();
  });
});

describe.concurrent.for([
  ['ask', '/partner/list/ask', '/partner/edit/listing', ASK],
  ['preorder', '/partner/list/preorder', '/partner/edit/preorder', PREORDER],
] as const)('%s: writes (partner rules 4.4)', ([type, create, edit, read]) => {
  it('every create call adds a listing, and silently raises a price below 50', async ({ expect }) => {
    const caller = await start({ listings: 0 });
    await using _ = caller.sandbox;
    const sku = aSku(caller);
    for (const price of [-5, 49, 50, 1234]) {
      const seen = await caller.write('POST', create, { sku, size: '9', price, ignored: 1 });
      expect([seen.status, seen.json]).toEqual([
        201,
        { order_id: expect.stringMatching(/^L-\d{6}$/), status: 'created' },
      ]);
    }
    await caller.write('POST', create, { sku, size: '9', price: 1234, quantity: 7 });
    const rows = await listed(caller, read);
    expect(rows.map(({ price, quantity }) => [price, quantity])).toEqual([
      [1234, 7],
      [1234, 1],
      [50, 1],
      [50, 1],
      [50, 1],
    ]);
    expect(rows.every((row) => row['sku'] === sku && row['size'] === '9')).toBe(true);
    expect(await listed(caller, type === 'ask' ? PREORDER : ASK)).toEqual([]);
  });

  it('an edit silently raises a price below 100, and is visible', async ({ expect }) => {
    const caller = await start({ listings: 20 });
    await using _ = caller.sandbox;
    const id = (await listed(caller, read))[0]?.order_id;
    for (const [price, stored] of [
      [99, 100],
      [-1, 100],
      [101, 101],
    ]) {
      const seen = await caller.write('PUT', edit, { order_id: id, price });
      expect([seen.status, seen.json]).toEqual([200, { order_id: id, price: stored }]);
      expect((await listed(caller, read)).find((row) => row.order_id === id)?.price).toBe(stored);
    }
  });

  it('invalid bodies are rejected and change nothing', async ({ expect }) => {
    const caller = await start({ listings: 2 });
    await using _ = caller.sandbox;
    const sku = aSku(caller);
    const before = JSON.stringify([...caller.sandbox.listings]);
    const order_id = (await listed(caller, read))[0]?.order_id;
    const other = (await listed(caller, type === 'ask' ? PREORDER : ASK))[0]?.order_id;
    const theirs = foreign(caller, type);
    for (const [method, path, body, message] of [
      ['POST', create, '{', 'body must be valid JSON'],
      ['POST', create, [], 'body must be a JSON object'],
      ['POST', create, { size: '9', price: 100 }, 'sku must be a string that is not empty'],
      ['POST', create, { sku, size: 9, price: 100 }, 'size must be a string that is not empty'],
      ['POST', create, { sku, size: '9', price: '100' }, 'price must be a whole number'],
      ['POST', create, { sku, size: '9', price: 100.5 }, 'price must be a whole number'],
      [
        'POST',
        create,
        { sku, size: '9', price: 100, quantity: 0 },
        'quantity must be a whole number above 0',
      ],
      ['POST', create, { sku: 'NOPE', size: '9', price: 100 }, 'unknown sku: NOPE'],
      ['PUT', edit, { price: 100 }, 'order_id must be a string that is not empty'],
      ['PUT', edit, { order_id, price: null }, 'price must be a whole number'],
      ['PUT', edit, { order_id: 'L-999999', price: 100 }, 'not Found order ID: L-999999'],
      ['PUT', edit, { order_id: other, price: 100 }, `not Found order ID: ${other}`],
      ['PUT', edit, { order_id: theirs, price: 100 }, 'uid not match'],
    ] as const) {
      const seen = await caller.write(method, path, body);
      expect([body, seen.status, seen.json]).toEqual([body, 400, { statusCode: 400, message }]);
    }
    expect(JSON.stringify([...caller.sandbox.listings])).toBe(before);
  });
});

describe.concurrent('vacation mode (partner rules 4.4, 7.4.4)', () => {
  it('answers an ask with 201 and only a status, creates nothing, and affects neither pre-orders nor edits', async ({
    expect,
  }) => {
    const caller = await start({ listings: 2, vacation: true });
    await using _ = caller.sandbox;
    const body = { sku: aSku(caller), size: '9', price: 900 };
    const seen = await caller.write('POST', '/partner/list/ask', body);
    expect([seen.status, seen.json]).toEqual([201, { status: 'vacation mode' }]);
    expect(await listed(caller, ASK)).toHaveLength(1);
    expect((await caller.write('POST', '/partner/list/preorder', body)).json).toHaveProperty('order_id');
    const order_id = (await listed(caller, ASK))[0]?.order_id;
    expect((await caller.write('PUT', '/partner/edit/listing', { order_id, price: 777 })).status).toBe(200);
    caller.sandbox.account.setVacation(false);
    expect((await caller.write('POST', '/partner/list/ask', body)).json).toHaveProperty('order_id');
    expect(await listed(caller, ASK)).toHaveLength(2);
  });
});

describe.concurrent('listings in the market', () => {
  it('do not move a lowest price', async ({ expect }) => {
    const caller = await start({ liveShare: 0 });
    await using _ = caller.sandbox;
    const sku = aSku(caller);
    const before = (await caller.lowest(sku)).text;
    const size = Object.keys((await caller.lowest(sku)).json['size_map'] as object)[0] ?? '';
    await caller.write('POST', '/partner/list/ask', { sku, size, price: 50 });
    expect((await caller.lowest(sku)).text).toBe(before);
  });

  it('sell piece by piece into pending orders until none is left', async ({ expect }) => {
    const caller = await start({ listings: 20, orders: 0, marketMoves: 1 });
    await using _ = caller.sandbox;
    const { listings, orders } = caller.sandbox;
    const own = [...listings].filter((listing) => listing.own);
    const pieces = own.flatMap(({ sku, size, price, listingType, quantity }) =>
      Array.from({ length: quantity }, () => [sku, size, price, listingType].join()),
    );
    for (let n = 0; n < 2000; n += 1) caller.sandbox.step();
    expect([...listings].filter((listing) => listing.own)).toEqual([]);
    const sold = [...orders].filter((order) => order.own);
    expect(
      sold.map(({ sku, size, price, listingType }) => [sku, size, price, listingType].join()).toSorted(),
    ).toEqual(pieces.toSorted());
    expect(
      (await caller.write('PUT', '/partner/edit/listing', { order_id: own[0]?.id, price: 900 })).json,
    ).toEqual({
      statusCode: 400,
      message: `not Found order ID: ${own[0]?.id}`,
    });
  });
});
