import { describe, expect, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { askedSince, letAge, logged, metric } from './harness.ts';

async function skuRow(sql: Sql, sku: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await sql`
    select state, in_manifest, removed_at, (select count(*)::int from catalog.prices p where p.sku = s.sku) as prices
    from catalog.skus s where sku = ${sku}`;
  return row;
}

/** Returns how often the mirror asked for a SKU since the `from`th request. */
function timesAsked(stack: Stack, sku: string, from: number): number {
  return askedSince(stack, from).filter((skus) => skus.includes(sku)).length;
}

/** Returns the first snapshot-priced SKUs with at least two sizes. */
function somePriced(stack: Stack, count: number): string[] {
  return [...stack.sandbox.world.truth().values()]
    .filter((row) => row.priceSource === 'snapshot' && Object.keys(row.sizeMap).length >= 2)
    .slice(0, count)
    .map(({ sku }) => sku);
}

describe('Removed.', () => {
  test('Removed. The row stays without prices, is asked for once more, and after a 0009 is left alone', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 401, noopShare: 0 } });
    const { sandbox, sql } = stack;
    await stack.start();
    await stack.caughtUp();
    const [gone = ''] = somePriced(stack, 1);
    const sizes = Object.keys(sandbox.world.truth().get(gone)?.sizeMap ?? {}).length;
    sandbox.world.remove(gone);
    sandbox.world.buildSnapshot();
    const from = sandbox.requests.length;
    await stack.caughtUp();
    const row = await skuRow(sql, gone);
    expect(row).toMatchObject({ state: 'removed', in_manifest: false, prices: 0 });
    expect(row?.['removed_at']).toBeInstanceOf(Date);
    expect(timesAsked(stack, gone, from)).toBe(1);
    const history = await sql`select old_price, new_price from catalog.price_history where sku = ${gone}`;
    expect(history).toHaveLength(sizes);
    for (const move of history) expect(move).toMatchObject({ new_price: null });

    // A month later it has still been asked for only once: only a report would bring it up again.
    await letAge(sql, 30 * 86_400);
    await stack.caughtUp();
    expect(timesAsked(stack, gone, from)).toBe(1);
    expect(await sql`select from catalog.products where sku = ${gone}`).toHaveLength(1);
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('Removed. A record brings it back at once and clears removed_at: the price routes decide', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 402 } });
    const { sandbox, sql } = stack;
    await stack.start();
    await stack.caughtUp();
    const [kept = ''] = somePriced(stack, 1);
    sandbox.world.remove(kept, { priceable: true });
    sandbox.world.buildSnapshot();
    await stack.caughtUp();
    expect(await skuRow(sql, kept)).toMatchObject({ state: 'priced', in_manifest: false, removed_at: null });
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('Removed. A SKU that is reported again comes back, and can be removed again', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 403 } });
    const { sandbox, sql } = stack;
    await stack.start();
    await stack.caughtUp();
    const [sku = ''] = somePriced(stack, 1);
    for (const [act, state] of [
      ['remove', 'removed'],
      ['relist', 'priced'],
      ['remove', 'removed'],
      ['relist', 'priced'],
    ] as const) {
      sandbox.world[act](sku);
      sandbox.world.buildSnapshot();
      await stack.caughtUp();
      expect(await skuRow(sql, sku)).toMatchObject({ state, in_manifest: state === 'priced' });
    }
    expect((await skuRow(sql, sku))?.['removed_at']).toBeNull();
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('Absence is not deletion: transient answers never make a SKU removed or not found', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 404, liveShare: 0.2, liveBudget: 2, ghostShare: 0 },
      env: { DEFERRED_INTERVAL: '1s' },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    const failing = somePriced(stack, 5);
    for (const sku of failing) sandbox.world.setFailing(sku, true);
    await stack.everythingDue();
    const seen = new Set<string>();
    for (let look = 0; look < 10; look += 1) {
      for (const { state } of await sql`select distinct state from catalog.skus`) seen.add(String(state));
      await sql`select pg_sleep(0.2)`;
    }
    expect([...seen].filter((state) => state === 'removed' || state === 'not_found')).toEqual([]);
    for (const sku of failing) sandbox.world.setFailing(sku, false);
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
    expect(await metric(app, 'bulk_skus_total', 'outcome="not_found"')).toBe(0);
  });
});

describe('SKUs nobody lists.', () => {
  test('SKUs nobody lists. Known SKUs missing from a new manifest are asked for once at once, and later by age', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 405, noopShare: 0, liveShare: 0 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    await stack.start();
    await stack.caughtUp();
    const [kept = '', gone = ''] = somePriced(stack, 2);
    const before = await skuRow(sql, kept);
    world.remove(kept, { priceable: true });
    world.remove(gone);
    world.buildSnapshot();
    world.breakChain();
    const from = sandbox.requests.length;
    await stack.caughtUp();
    await eventually(() =>
      expect(logged(stack, 'manifest.done').at(-1)).toMatchObject({ absent: 2, because: 'chain-broken' }),
    );
    expect(await skuRow(sql, kept)).toEqual({ ...before, in_manifest: false });
    expect(await skuRow(sql, gone)).toMatchObject({
      state: 'not_found',
      in_manifest: false,
      removed_at: null,
    });
    expect([timesAsked(stack, kept, from), timesAsked(stack, gone, from)]).toEqual([1, 1]);
    const due = await sql`
      select sku, reason, round(extract(epoch from due_at - now()) / 3600)::int as hours
      from catalog_internal.due where sku in (${kept}, ${gone})`;
    expect(new Map(due.map(({ sku, reason, hours }) => [sku, [reason, hours]]))).toEqual(
      new Map([
        [kept, ['unlisted', 1]],
        [gone, ['metadata', 24 * 7]],
      ]),
    );
    await expectMirrorIsTrue(sql, world);
  });

  test('SKUs nobody lists. Their moves are seen as soon as live ones; their prices are not actionable for longer', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 407, liveShare: 0 },
      env: { LIVE_INTERVAL: '2s' },
    });
    const { sandbox, sql } = stack;
    sandbox.world.add('UNLISTED-1', { listed: false, sizes: { 'EU 40': 1000 }, sizeType: 'EU' });
    await stack.start();
    await stack.caughtUp();
    await sql`insert into catalog.watchlist (sku, weight) values ('UNLISTED-1', 10)`;
    const price = async () => {
      const [row] = await sql<{ price: number; actionable: boolean; late: boolean }[]>`
        select price, actionable, actionable and price_age > interval '2 seconds' as late
        from catalog.current_prices join catalog.sku_trust using (sku, priced_at, actionable) where sku = 'UNLISTED-1'`;
      return row;
    };
    await eventually(async () => (await price())?.price === 1000, { what: 'its first price' });
    sandbox.world.setPrice('UNLISTED-1', 'EU 40', 9999);
    await eventually(
      async () => {
        const seen = await price();
        expect(seen?.late).toBe(false);
        return seen?.price === 9999;
      },
      { what: 'its move to be seen' },
    );
    await expectMirrorIsTrue(sql, sandbox.world);
  });

  test('SKUs nobody lists. One inserted into catalog.watchlist is mirrored although no manifest lists it', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 406 } });
    const { sandbox, sql } = stack;
    sandbox.world.add('UNLISTED-1', {
      listed: false,
      sizes: { 'EU 40': 1500, 'EU 41': 1600 },
      sizeType: 'EU',
    });
    sandbox.world.add('UNLISTED-0', { listed: false, sizes: { '42': 900 }, sizeType: 'EU' });
    await migrateDatabase(stack.databaseUrl);
    await sql`insert into catalog.watchlist (sku) values ('UNLISTED-0')`;
    await stack.start();
    await stack.caughtUp();
    const early = await sql`select size, price from catalog.current_prices where sku = 'UNLISTED-0'`;
    expect([...early], 'watched before the first start').toEqual([{ size: '42', price: 900 }]);
    await sql`insert into catalog.watchlist (sku, note) values ('UNLISTED-1', 'mine')`;
    await stack.caughtUp();
    const prices =
      await sql`select size, price, size_type from catalog.current_prices where sku = 'UNLISTED-1' order by 1`;
    expect([...prices]).toEqual([
      { size: 'EU 40', price: 1500, size_type: 'EU' },
      { size: 'EU 41', price: 1600, size_type: 'EU' },
    ]);
    expect(await skuRow(sql, 'UNLISTED-1')).toMatchObject({ state: 'priced', in_manifest: false });
    await expectMirrorIsTrue(sql, sandbox.world);
    await sql`insert into catalog.watchlist (sku) values ('NO-SUCH-SKU')`;
    await stack.caughtUp();
    expect(await skuRow(sql, 'NO-SUCH-SKU')).toMatchObject({ state: 'not_found', in_manifest: false });
  });
});
