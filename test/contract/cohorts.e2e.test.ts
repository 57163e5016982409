import { describe, expect, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { contents, letAge, logged, metric, runNow } from './harness.ts';

async function cohortOf(sql: Sql, sku: string): Promise<unknown> {
  const [row] = await sql`
    select price_source, hash is null as no_hash, round(extract(epoch from d.due_at - now()) / 60)::int as minutes
    from catalog.skus join catalog_internal.due d using (sku) where sku = ${sku}`;
  return row;
}

function some(stack: Stack, source: 'snapshot' | 'live'): string {
  const found = [...stack.sandbox.world.truth().values()].find(
    (row) => row.priceSource === source && Object.keys(row.sizeMap).length > 0,
  );
  return found?.sku ?? '';
}

describe('cohorts are followed:', () => {
  test('now_live overrides the stored manifest, and a changed SKU that it does not name is snapshot-priced', async () => {
    await using stack = await createStack({
      sandbox: { skus: 80, seed: 1001, liveShare: 0.1, noopShare: 0 },
    });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    await stack.start();
    await stack.caughtUp();
    const [leaves, comes] = [some(stack, 'snapshot'), some(stack, 'live')];
    world.cross(leaves, 'live');
    world.cross(comes, 'snapshot');
    world.buildSnapshot();
    await stack.caughtUp();
    // LIVE_INTERVAL is one hour here. A reported SKU without news is refreshed again after 17 minutes.
    expect(await cohortOf(sql, leaves)).toEqual({ price_source: 'live', no_hash: true, minutes: 60 });
    expect(await cohortOf(sql, comes)).toEqual({ price_source: 'snapshot', no_hash: true, minutes: 17 });
    expect(logged(stack, 'delta.applied').at(-1)).toMatchObject({ crossedToLive: 1, crossedToSnapshot: 1 });
    await expectMirrorIsTrue(sql, world);
    world.cross(leaves, 'snapshot');
    world.buildSnapshot();
    await stack.caughtUp();
    expect(await cohortOf(sql, leaves)).toMatchObject({ price_source: 'snapshot' });
    await expectMirrorIsTrue(sql, world);
  });

  test('live prices are refreshed by the mirror itself, because no delta reports them', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 1002, liveShare: 0.2 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    await stack.start();
    await stack.caughtUp();
    const live = [...world.truth().values()].filter(
      (row) => row.priceSource === 'live' && Object.keys(row.sizeMap).length > 0,
    );
    for (const row of live) world.setPrice(row.sku, Object.keys(row.sizeMap)[0] ?? '', 515_151);
    world.buildSnapshot();
    await stack.caughtUp();
    const moved = async () =>
      (await sql<[{ n: number }]>`select count(*)::int as n from catalog.prices where price = 515151`)[0].n;
    expect(await moved()).toBe(0);
    await letAge(sql, 3600);
    await eventually(async () => expect(await moved()).toBe(live.length));
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, world);
  });

  test('an incident that makes the whole catalog live-priced, and its end, lose no price', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 1003 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    await stack.start();
    await stack.caughtUp();
    for (const on of [true, false]) {
      world.setIncident(on);
      world.step(10);
      world.buildSnapshot();
      await stack.caughtUp();
    }
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, world);
  });
});

describe('replays are harmless:', () => {
  test('asking for everything again while nothing moved writes no price row and no history', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 1004, liveShare: 0.05 } });
    const { sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const rows = () => sql`select p.*, p.xmin::text as version from catalog.prices p order by sku, size`;
    const before = await rows();
    await stack.everythingDue();
    await stack.caughtUp();
    expect(await rows()).toEqual(before);
    const { moves, corrections } = (await contents(sql)) as Record<string, unknown>;
    expect({ moves, corrections }).toEqual({ moves: [], corrections: [] });
    expect(await metric(app, 'price_changes_total')).toBe(0);
    expect(await metric(app, 'metadata_changes_total')).toBe(0);
  });

  test('a delta that is applied twice leaves the same rows and no second history entry', async () => {
    await using stack = await createStack({
      sandbox: { skus: 80, seed: 1005, liveShare: 0.05, noopShare: 0 },
    });
    const { sandbox, sql } = stack;
    const app = await stack.start();
    await stack.caughtUp();
    const [{ id: first }] = await sql<[{ id: string }]>`select snapshot_id as id from catalog_internal.sync`;
    sandbox.world.step(40);
    sandbox.world.remove(some(stack, 'snapshot'));
    sandbox.world.buildSnapshot();
    await stack.caughtUp();
    const seen = async () => ({
      skus: await sql`select sku, state, price_source, in_manifest from catalog.skus order by sku`,
      prices: await sql`select * from catalog.prices order by sku, size`,
      moves: await sql`select * from catalog.price_history order by id`,
      corrections: await sql`select * from catalog.product_history order by id`,
    });
    const before = await seen();
    expect(before.moves.length).toBeGreaterThan(0);
    await sql`update catalog_internal.sync set snapshot_id = ${first}`;
    await runNow(stack, app, 'delta');
    expect(logged(stack, 'delta.applied')).toHaveLength(2);
    await stack.caughtUp();
    expect(await seen()).toEqual(before);
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
  });
});
