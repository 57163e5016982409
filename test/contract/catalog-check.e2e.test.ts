import { describe, expect, test } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { catalogState, logged, metric, readyz, runNow } from './harness.ts';

const SKUS = 150;
const sandbox = (seed: number) => ({ skus: SKUS, seed, liveShare: 0.04 });

/** Starts a mirror that catches up, and whose manifest route has named its snapshot. */
async function following(stack: Stack): Promise<App> {
  const app = await stack.start();
  await stack.caughtUp();
  await runNow(stack, app, 'catalog-check');
  return app;
}

async function health(app: App): Promise<unknown> {
  return (await readyz(app)).body['degraded'];
}

/** Moves the price of a snapshot-priced SKU. */
function move({ sandbox: { world } }: Stack): { sku: string; size: string } {
  const [found] = [...world.truth().values()].filter(
    (row) => row.priceSource === 'snapshot' && Object.keys(row.sizeMap).length > 0,
  );
  const moved = { sku: found?.sku ?? '', size: Object.keys(found?.sizeMap ?? {})[0] ?? '' };
  world.setPrice(moved.sku, moved.size, 424_242);
  return moved;
}

async function knowsTheMove({ sql }: Stack): Promise<boolean> {
  const [row] = await sql<
    [{ known: boolean }]
  >`select exists (select from catalog.prices where price = 424242) as known`;
  return row.known;
}

/** Waits for the last line of a merged manifest, which is written after the merge is in Postgres. */
async function untilDone(stack: Stack, line: object): Promise<void> {
  await eventually(() => expect(logged(stack, 'manifest.done').at(-1)).toMatchObject(line));
}

/** Makes the manifest file fail to download until the returned function is called. */
function withhold({ sandbox: { faults } }: Stack): () => void {
  const { id } = faults.arm({ route: 'file', times: Infinity, status: 500 });
  return () => faults.disarm(id);
}

describe('the manifest route against the delta', () => {
  test('A delta that stands still makes the catalog stale until a downloaded manifest makes it healthy again', async () => {
    await using stack = await createStack({ sandbox: sandbox(1801) });
    const { sql } = stack;
    const { faults, world } = stack.sandbox;
    const app = await following(stack);
    const [{ token }] = await sql<
      [{ token: string }]
    >`select snapshot_id as token from catalog_internal.sync`;
    const stuck = { changed: [], removed: [], now_live: [], to_snapshot: token };
    faults.add({ route: 'delta', times: Infinity, status: 200, body: stuck });
    const restore = withhold(stack);
    move(stack);
    world.buildSnapshot();
    await runNow(stack, app, 'delta');
    await runNow(stack, app, 'catalog-check');
    await runNow(stack, app, 'delta');
    expect([await health(app), await catalogState(sql), await knowsTheMove(stack)]).toEqual([
      [],
      'ok',
      false,
    ]);
    await sql`update catalog_internal.sync set behind_since = behind_since - interval '2 hours'`;
    await runNow(stack, app, 'catalog-check');
    expect(String(await health(app))).toMatch(/the manifest route has named a newer snapshot for 2\.0h/);
    expect(await catalogState(sql)).toBe('stale');
    expect(await metric(app, 'state_reason', 'code="delta-behind"')).toBe(1);
    expect((await runProgram(['status'], stack.env)).stdout).toContain('the delta does not lead to it');
    expect(logged(stack, 'delta.behind')).toMatchObject([{ level: 'warn', token }]);
    restore();
    await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
    await app.wake('manifest');
    await eventually(async () => expect(await knowsTheMove(stack)).toBe(true));
    await untilDone(stack, { because: 'delta-behind' });
    expect([await health(app), await catalogState(sql)]).toEqual([[], 'ok']);
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, world);
  });

  test('A delta that loses SKUs is found by their number, and the manifest brings them', async () => {
    await using stack = await createStack({ sandbox: sandbox(1802) });
    const { sql } = stack;
    const { faults, world } = stack.sandbox;
    const app = await following(stack);
    const restore = withhold(stack);
    for (let n = 0; n < 12; n += 1) world.add(`of the manifest alone ${n}`);
    move(stack);
    world.buildSnapshot();
    faults.add({ route: 'delta', times: 1, mutate: (body) => ({ ...body, changed: [], now_live: [] }) });
    await runNow(stack, app, 'delta');
    expect(await health(app)).toEqual([]);
    await runNow(stack, app, 'catalog-check');
    expect(String(await health(app))).toMatch(/mirrored snapshot that it lists 12 SKUs more/);
    expect(await metric(app, 'state_reason', 'code="catalog-differs"')).toBe(1);
    expect(await catalogState(sql)).toBe('stale');
    restore();
    await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
    await app.wake('manifest');
    await eventually(async () => expect(await knowsTheMove(stack)).toBe(true));
    await untilDone(stack, { because: 'catalog-differs' });
    expect([await health(app), await catalogState(sql)]).toEqual([[], 'ok']);
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, world);
  });

  test('A snapshot that is built again under the same name is downloaded', async () => {
    await using stack = await createStack({ sandbox: sandbox(1803) });
    const { sql } = stack;
    const { faults, world } = stack.sandbox;
    const app = await following(stack);
    const [{ token }] = await sql<
      [{ token: string }]
    >`select snapshot_id as token from catalog_internal.sync`;
    const stuck = { changed: [], removed: [], now_live: [], to_snapshot: token };
    faults.add({ route: 'delta', times: Infinity, status: 200, body: stuck });
    move(stack);
    const id = world.buildSnapshot();
    faults.add({
      route: 'manifest',
      times: Infinity,
      mutate: (body) =>
        Object.fromEntries(Object.entries(body).map(([name, is]) => [name, is === id ? token : is])),
    });
    await runNow(stack, app, 'catalog-check');
    await eventually(async () => expect(await knowsTheMove(stack)).toBe(true));
    expect([await health(app), await catalogState(sql)]).toEqual([[], 'ok']);
    await expectMirrorIsTrue(sql, world);
  });

  test('A mirror whose manifest route lags behind the delta stays healthy while the partner builds', async () => {
    await using stack = await createStack({ sandbox: sandbox(1804) });
    const { sql } = stack;
    const { faults, world } = stack.sandbox;
    const app = await following(stack);
    for (let n = 0; n < 3; n += 1) {
      await runNow(stack, app, 'catalog-check');
      const lag = faults.arm({ route: 'manifest', times: Infinity, mutate: keeping() });
      await runNow(stack, app, 'catalog-check');
      world.add(`added ${n}`);
      world.buildSnapshot();
      await runNow(stack, app, 'delta');
      await runNow(stack, app, 'catalog-check');
      faults.disarm(lag.id);
      await runNow(stack, app, 'catalog-check');
      world.buildSnapshot();
      await runNow(stack, app, 'catalog-check');
      await runNow(stack, app, 'delta');
      const [{ doubt }] = await sql<
        [{ doubt: string | null }]
      >`select delta_doubt as doubt from catalog_internal.sync`;
      expect([await health(app), doubt]).toEqual([[], null]);
    }
    expect([logged(stack, 'delta.behind'), logged(stack, 'catalog-check.differs')]).toEqual([[], []]);
    expect(logged(stack, 'manifest.done')).toHaveLength(1);
  });
});

/** Returns a mutation that repeats the first answer. */
function keeping(): (body: object) => object {
  let kept: object | null = null;
  return (body) => (kept ??= body);
}
