import { describe, it } from 'vitest';
import { control, opened } from './control-support.ts';

describe.concurrent('control: releases', () => {
  it('moves most sizes of most SKUs of a model line, and nothing else', async ({ expect }) => {
    const caller = await opened({ skus: 600 });
    await using _ = caller.sandbox;
    const { world } = caller.sandbox;
    const before = world.truth();
    const { status, json } = await control(caller, 'POST', '/releases', { brand: 'Nike', model: 'Dunk Low' });
    expect([status, json['brand'], json['model']]).toEqual([200, 'Nike', 'Dunk Low']);
    const [inLine, moved] = [new Set<string>(), new Set<string>()];
    for (const [sku, now] of world.truth()) {
      const product = world.find(sku)?.product;
      if (product?.brand === 'Nike' && product.model === 'Dunk Low') inLine.add(sku);
      const was = before.get(sku)?.sizeMap ?? {};
      const sizes = Object.entries(now.sizeMap ?? {});
      const different = sizes.filter(([size, price]) => was[size] !== price).length;
      if (different === 0) continue;
      moved.add(sku);
      expect(different / sizes.length).toBeGreaterThanOrEqual(0.5);
    }
    expect(moved.size).toBe(json['skus']);
    expect([...moved].filter((sku) => !inLine.has(sku))).toEqual([]);
    expect(moved.size / inLine.size).toBeGreaterThan(0.4);
    expect(moved.size / inLine.size).toBeLessThan(1);
  });

  it('takes the line with most live SKUs if none is named, and answers 404 for an unknown one', async ({
    expect,
  }) => {
    const caller = await opened({ skus: 600, liveShare: 0.5 });
    await using _ = caller.sandbox;
    const { json } = await control(caller, 'POST', '/releases', {});
    expect(Number(json['skus'])).toBeGreaterThan(3);
    expect((await control(caller, 'POST', '/releases', { brand: 'Nobody' })).status).toBe(404);
    expect((await control(caller, 'POST', '/releases', { brand: 7 })).status).toBe(400);
  });
});
