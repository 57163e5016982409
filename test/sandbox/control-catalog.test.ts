import { describe, it } from 'vitest';
import { control, type Json, opened } from './control-support.ts';

describe.concurrent('control: catalog, clock, reset', () => {
  it('makes the catalog answer 0010, 0012, 0013 and 0014, enter an incident and revoke a URL', async ({
    expect,
  }) => {
    const caller = await opened({ deltaMaxChanges: null });
    await using _ = caller.sandbox;
    const since = (await caller.manifest()).json.snapshot_id;
    const url = (await caller.manifest()).json.url;
    const code = async () => (await caller.delta(since)).json['code'];
    await control(caller, 'POST', '/step', { steps: 5, snapshot: true });
    expect((await caller.delta(since)).json['to_snapshot']).toBe(
      (await caller.manifest()).json['snapshot_id'],
    );
    await control(caller, 'PUT', '/catalog', { delta_max_changes: 0 });
    expect(await code()).toBe('0013');
    await control(caller, 'PUT', '/catalog', { delta_max_changes: null, builder: 'stopped' });
    expect([await code(), (await caller.manifest()).json['code']]).toEqual(['0014', '0014']);
    await control(caller, 'PUT', '/catalog', { builder: 'running', break_chain: true, revoke_urls: true });
    expect(await code()).toBe('0010');
    expect((await fetch(url)).status).toBe(403);
    await control(caller, 'PUT', '/catalog', { incident: true });
    await control(caller, 'POST', '/snapshots');
    const { json } = await caller.manifest();
    expect(json['live_priced_sku_count']).toBe(json['sku_count']);
    await control(caller, 'DELETE', '/snapshots');
    expect((await caller.manifest()).json['code']).toBe('0012');
  });

  it.for(['size_type', ''])(
    'rejects a size with the key "%s", as a catalog file does',
    async (size, { expect }) => {
      const caller = await opened();
      await using _ = caller.sandbox;
      const before = await caller.lowest('DD1391-100');
      const refused = await control(caller, 'PUT', '/skus/DD1391-100', { sizes: { '9': 4100, [size]: 50 } });
      expect([refused.status, refused.json['message']]).toEqual([
        400,
        expect.stringContaining(`sizes must not have the key ${JSON.stringify(size)}`),
      ]);
      expect((await caller.lowest('DD1391-100')).json).toEqual(before.json);
    },
  );

  it('changes, adds and removes a SKU, and makes it fail or unknown', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const sku = 'DD1391-100';
    await control(caller, 'PUT', `/skus/${sku}`, {
      sizes: { '9': 4100, '12': null },
      size_type: 'UK',
      product: { name: 'N' },
    });
    expect((await caller.lowest(sku)).json).toMatchObject({
      size_map: { '9': 4100, '12': null, size_type: 'UK' },
      product: { name: 'N' },
    });
    expect(Object.keys((await caller.lowest(sku)).json['size_map'] as Json)).toEqual([
      '9',
      '12',
      'size_type',
    ]);
    const added = await control(caller, 'PUT', '/skus/a%2Fb', { sizes: { '1': 50 }, price_source: 'live' });
    expect([added.status, added.json]).toMatchObject([
      201,
      { sku: 'a/b', sizes: { '1': 50 }, listed: false },
    ]);
    await control(caller, 'POST', '/snapshots');
    expect((await control(caller, 'GET', '/skus/a%2Fb')).json).toMatchObject({
      listed: true,
      price_source: 'live',
    });
    await control(caller, 'PUT', `/skus/${sku}`, { failing: true });
    expect((await caller.bulk([sku])).json['errors']).toEqual([sku]);
    await control(caller, 'PUT', `/skus/${sku}`, { failing: false, refused: true });
    expect((await caller.bulk([sku])).status).toBe(400);
    await control(caller, 'PUT', `/skus/${sku}`, { refused: false, removed: true });
    expect((await caller.lowest(sku)).json['code']).toBe('0009');
    await control(caller, 'PUT', `/skus/${sku}`, { removed: false });
    expect((await caller.lowest(sku)).json['code']).toBe('0000');
    expect((await control(caller, 'GET', '/skus/none')).status).toBe(404);
  });

  it('a stopped clock that is advanced makes everything happen at its moment', async ({ expect }) => {
    const caller = await opened({ marketIntervalMs: 5000, snapshotIntervalMs: 60_000 });
    await using _ = caller.sandbox;
    const before = (await caller.manifest()).json;
    expect(before['generated_at']).toBe('2026-01-01T00:00:00.000Z');
    const { json } = await control(caller, 'POST', '/clock', { to: '2026-01-01T00:02:30Z' });
    expect(json).toEqual({ now: '2026-01-01T00:02:30.000Z', stands: true });
    const after = (await caller.manifest()).json;
    expect(after['generated_at']).toBe('2026-01-01T00:02:00.000Z');
    expect((await caller.delta(before.snapshot_id)).json['changed'].length).toBeGreaterThan(20);
    expect((await fetch(before.url)).status).toBe(200);
    await control(caller, 'POST', '/clock', { advance: '1h' });
    expect((await fetch(before.url)).status).toBe(403);
  });

  it('a running clock jumps ahead and keeps running', async ({ expect }) => {
    const caller = await opened({ startAt: null, confirmDeadlineMs: 60_000 });
    await using _ = caller.sandbox;
    const { json } = await control(caller, 'POST', '/clock', { advance: '1d' });
    expect(Date.parse(String(json['now'])) - Date.now()).toBeGreaterThan(86_300_000);
    expect(json['stands']).toBe(false);
    expect((await control(caller, 'GET', '/state')).json['orders']).not.toHaveProperty('process');
  });

  it('a reset restores the state at start, or with another seed a different world', async ({ expect }) => {
    const caller = await opened();
    await using _ = caller.sandbox;
    const all = async () => [
      (await control(caller, 'GET', '/state')).json,
      (await control(caller, 'GET', '/orders')).json,
      (await control(caller, 'GET', '/listings')).json,
      JSON.stringify([...caller.sandbox.world.truth()]),
    ];
    const before = await all();
    await caller.bulk(['DD1391-100']);
    await control(caller, 'POST', '/step', { steps: 50, snapshot: true });
    await control(caller, 'POST', '/clock', { advance: '1h' });
    await control(caller, 'POST', '/orders', {});
    await control(caller, 'POST', '/faults', { status: 500 });
    await control(caller, 'PUT', '/account', { configured: false, auto_confirm: true });
    await control(caller, 'PUT', '/catalog', { delta_max_changes: 0, builder: 'stopped' });
    await control(caller, 'POST', '/secret', { secret: 'next' });
    expect(await all()).not.toEqual(before);
    await control(caller, 'POST', '/reset');
    expect(await all()).toEqual(before);
    expect(caller.sandbox.secret).toBe('sandbox-secret');
    await control(caller, 'POST', '/reset', { seed: 2 });
    const [state, ...rest] = await all();
    expect(state).toMatchObject({ seed: 2 });
    expect(rest).not.toEqual(before.slice(1));
  });
});

describe.concurrent('control: calls that are rejected', () => {
  it.for<[string, string, object | string | undefined, number, RegExp]>([
    ['POST', '/step', { steps: 0 }, 400, /^steps must be a whole number from 1 to 10000$/],
    [
      'POST',
      '/step',
      { step: 1, snapshot: 'yes' },
      400,
      /^no such member: step \(it takes steps, snapshot\); snapshot must be true or false$/,
    ],
    ['POST', '/step', '{', 400, /^the body must be JSON$/],
    ['POST', '/step', '[]', 400, /^the body must be a JSON object$/],
    ['POST', '/clock', {}, 400, /^send either/],
    ['POST', '/clock', { advance: '5' }, 400, /^advance must be a duration/],
    ['POST', '/clock', { to: '2026-01-01T00:00:00' }, 400, /^to must be a moment with its zone/],
    [
      'POST',
      '/clock',
      { to: '2025-01-01T00:00:00Z' },
      400,
      /^the clock goes ahead only, and it is 2026-01-01T00:00:00.000Z$/,
    ],
    ['POST', '/clock', { advance: '300d' }, 400, /^too many market steps/],
    ['POST', '/orders', { listing: 'L-999999' }, 404, /^no listing L-999999/],
    ['POST', '/orders', { listing: 'L-000001', price: 5 }, 400, /^a listing has its own price$/],
    ['POST', '/orders', { status: 'lost' }, 400, /^status must be "pending" or /],
    ['GET', '/orders?status=lost', undefined, 400, /^status must be "pending" or /],
    ['PUT', '/orders/O-999999', { status: 'failed' }, 404, /^no order O-999999/],
    ['PUT', '/orders/O-000001', {}, 400, /^send status or confirm_within$/],
    ['PUT', '/orders/O-000001', { status: 'settled', confirm_within: '1s' }, 400, /^O-000001 does not wait/],
    ['POST', '/secret', {}, 400, /^send the new secret/],
    ['PUT', '/skus/x', { sizes: { '9': 1.5 } }, 400, /^sizes must be an object such as .* or null$/],
    ['PUT', '/skus/x', { sizes: [] }, 400, /^sizes must be an object/],
    ['POST', '/faults', {}, 400, /^send what is to go wrong/],
    ['POST', '/faults', { route: 'nowhere', status: 500 }, 400, /^route must be "\*" or "manifest" or /],
    ['POST', '/faults', { delay: '25d' }, 400, /^delay must be a duration of at most 24 days/],
    ['POST', '/faults', { hang: true, lost: 'reset' }, 400, /^hang and lost exclude each other$/],
    ['POST', '/faults', { status: 500, headers: { 'a b': 'c' } }, 400, /^headers: a b is no header/],
    ['GET', '/nowhere', undefined, 404, /^no such control route/],
    ['PATCH', '/orders/O-000001', undefined, 405, /takes PUT, not PATCH$/],
    ['GET', '/skus/%E0', undefined, 400, /^sku is not a valid path segment$/],
    ['POST', '/step', `{"steps":"${'x'.repeat(1_100_000)}"}`, 413, /^the body is too large$/],
  ])('%s %s %j', async ([method, path, body, status, message], { expect }) => {
    const caller = await opened({ marketIntervalMs: 5000 });
    await using _ = caller.sandbox;
    const before = JSON.stringify([...caller.sandbox.world.truth()]);
    const answer = await control(caller, method, path, body);
    expect([answer.status, answer.json['message']]).toEqual([status, expect.stringMatching(message)]);
    expect(JSON.stringify([...caller.sandbox.world.truth()])).toBe(before);
  });
});
