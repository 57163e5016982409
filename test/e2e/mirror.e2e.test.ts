import { describe, expect, test } from 'vitest';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { backends, createStack } from '../support/stack.ts';

describe.each(backends())('the mirror, queues in %s', (backend) => {
  test('equals the truth in every table after a fill', async () => {
    await using stack = await createStack({ backend, sandbox: { skus: 1500, liveShare: 0.05, seed: 11 } });
    await stack.once();
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    const [status] = await stack.sql`select * from catalog.sync_status`;
    expect(status).toMatchObject({
      catalog_state: 'ok',
      pending_skus: '0',
      due_skus: '0',
      deferred_skus: '0',
    });
  });

  test('equals the truth after any history of changes, with no history row that changes nothing', async () => {
    await using stack = await createStack({
      backend,
      sandbox: { skus: 800, liveShare: 0.08, seed: 12, mislistedShare: 0.01 },
    });
    const { world } = stack.sandbox;
    await stack.start();
    await stack.caughtUp();
    for (let round = 0; round < 6; round += 1) {
      world.step(60);
      world.buildSnapshot();
      if (round % 2 === 0) world.step(30);
      world.buildSnapshot();
      await stack.caughtUp();
    }
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(stack.sql, world);
    const doubles = await stack.sql`
      select sku, size, old_price, new_price, lag(new_price) over w as before
      from catalog.price_history window w as (partition by sku, size order by id)`;
    for (const row of doubles) expect(row['old_price'] === row['new_price']).toBe(false);
  });

  test('updates every snapshot-priced SKU from a delta alone', async () => {
    await using stack = await createStack({
      backend,
      sandbox: { skus: 600, liveShare: 0, ghostShare: 0, seed: 13 },
    });
    const { world } = stack.sandbox;
    await stack.start();
    await stack.caughtUp();
    const asked = stack.sandbox.requests.length;
    const some = [...world.truth().values()]
      .filter((row) => row.listed && Object.keys(row.sizeMap).length > 0)
      .slice(0, 40);
    for (const row of some) world.setPrice(row.sku, Object.keys(row.sizeMap)[0] ?? '', 777_777);
    world.buildSnapshot();
    await stack.caughtUp();
    await expectMirrorIsTrue(stack.sql, world);
    const bulk = stack.sandbox.requests.slice(asked).filter((request) => request.route === 'bulk');
    expect(bulk.length).toBeLessThanOrEqual(2);
    const [history] =
      await stack.sql`select count(*)::int as moves from catalog.price_history where new_price = 777777`;
    expect(history).toEqual({ moves: 40 });
  });

  test('fills 3,000 SKUs with 4 % live in at most 1.10 times the fewest possible calls', async () => {
    await using stack = await createStack({ backend, sandbox: { skus: 3000, liveShare: 0.04, seed: 14 } });
    await stack.once();
    const live = [...stack.sandbox.world.truth().values()].filter((row) => row.priceSource === 'live').length;
    const least = Math.max(Math.ceil(3000 / 100), Math.ceil(live / 5));
    expect(stack.sandbox.counts('bulk')).toBeLessThanOrEqual(Math.floor(1.1 * least));
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  });
});
