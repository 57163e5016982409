import { afterEach, describe, expect, it } from 'vitest';
import { skusWhere, start, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

describe('refusals of the delta (partner rules 4.2, 7.3)', () => {
  it('answers 0011 without since, and 0010 for a token it never issued', async () => {
    caller = await start();
    expect(await caller.send('/partner/catalog/delta')).toMatchObject({
      status: 400,
      json: { code: '0011' },
    });
    expect(await caller.delta('')).toMatchObject({ status: 400, json: { code: '0011' } });
    expect(await caller.delta('cs-unknown')).toMatchObject({ status: 400, json: { code: '0010' } });
  });

  it('answers 0010 for a broken chain and an expired snapshot, but not for the newest', async () => {
    caller = await start({ snapshotRetention: 3 });
    const { world } = caller.sandbox;
    const first = world.newestSnapshot() ?? '';
    const second = world.buildSnapshot();
    const third = world.buildSnapshot();
    expect((await caller.delta(first)).status).toBe(200);
    const fourth = world.buildSnapshot();
    expect(await caller.delta(first)).toMatchObject({ status: 400, json: { code: '0010' } });
    world.expireSnapshots(2);
    expect(await caller.delta(second)).toMatchObject({ status: 400, json: { code: '0010' } });
    expect((await caller.delta(third)).status).toBe(200);
    world.breakChain();
    expect(await caller.delta(third)).toMatchObject({ status: 400, json: { code: '0010' } });
    expect((await caller.delta(fourth)).status).toBe(200);
  });

  it('answers 0013 if the next change set is too large, and stops before a later one', async () => {
    caller = await start({ deltaMaxChanges: 2 });
    const { world } = caller.sandbox;
    const skus = skusWhere(caller, (row) => row.priceSource === 'snapshot');
    const first = world.newestSnapshot() ?? '';
    world.setPrice(skus[0] ?? '', '7', 11);
    const second = world.buildSnapshot();
    for (const sku of skus.slice(0, 3)) world.setPrice(sku, '7', 12);
    const third = world.buildSnapshot();
    expect((await caller.delta(first)).json).toEqual({
      changed: [skus[0]],
      removed: [],
      now_live: [],
      to_snapshot: second,
    });
    expect(await caller.delta(second)).toMatchObject({ status: 400, json: { code: '0013' } });
    expect((await caller.delta(third)).status).toBe(200);
  });
});
