import { expect, test } from 'vitest';
import { refreshSkus } from '../../src/store/refresh.ts';
import { createStack } from '../support/stack.ts';

/*
 * Found by a history (SEED=567). The delta compares snapshots: a price that moved after one and was back before the next
 * is in no report. A look in between has stored the other price, and nothing asks again before the SKU's next sweep. Known,
 * not mended: this says so as long as it is so.
 */
test.fails('a price seen between two snapshots, which went back before the second, is asked again', async () => {
  await using stack = await createStack({ sandbox: { skus: 20, liveShare: 0, noopShare: 0 } });
  const { sql } = stack;
  const { world } = stack.sandbox;
  await stack.once();
  const row = [...world.truth().values()].find(({ answer, listed }) => answer === 'record' && listed);
  const [size, price] = Object.entries(row?.sizeMap ?? {})[0] ?? ['', 0];
  const sku = row?.sku ?? '';
  world.setPrice(sku, size, 999_999);
  await refreshSkus(sql, [sku]);
  await stack.once();
  world.setPrice(sku, size, price);
  world.buildSnapshot();
  await stack.once();
  expect(await sql`select price from catalog.prices where sku = ${sku} and size = ${size}`).toEqual([
    { price },
  ]);
});
