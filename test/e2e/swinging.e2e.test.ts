import { expect, test } from 'vitest';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { createStack } from '../support/stack.ts';

/*
 * Found by a simulated history: a price that moves after one snapshot and is back before the next is in no report,
 * but a refresh in between has stored the other price.
 */
test('a price seen between two snapshots that went back before the second is asked for again', async () => {
  await using stack = await createStack({ sandbox: { skus: 20, liveShare: 0, noopShare: 0 } });
  const { sql } = stack;
  const { world } = stack.sandbox;
  await stack.once();
  const row = [...world.truth().values()].find(({ answer, listed }) => answer === 'record' && listed);
  const [size, price] = Object.entries(row?.sizeMap ?? {})[0] ?? ['', 0];
  const sku = row?.sku ?? '';
  const stored = async () =>
    (await sql`select price from catalog.prices where sku = ${sku} and size = ${size}`)[0]?.['price'];
  world.setPrice(sku, size, 999_999);
  await refreshSkus(sql, [sku]);
  await stack.once();
  expect(await stored()).toBe(999_999);
  world.setPrice(sku, size, price);
  // The first of them may have been under construction when the refresh was made.
  for (let i = 0; i < 2; i += 1) {
    world.buildSnapshot();
    await stack.once();
  }
  expect(await stored()).toBe(price);
});
