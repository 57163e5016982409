import { describe, expect, test } from 'vitest';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';
import { askedSince, logged, metric, readyz } from './harness.ts';

describe('Deferred.', () => {
  test('Deferred. A waiting SKU counts only in deferred_skus until its time; no report shortens the wait', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 501, liveShare: 0.3, liveBudget: 1, ghostShare: 0 },
      env: { DEFERRED_INTERVAL: '1h' },
    });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    const app = await stack.start();
    await eventually(async () => {
      const [row] =
        await sql`select due_skus::int as due, deferred_skus > 0 as deferred, pending_skus = deferred_skus as rest
        from catalog.sync_status`;
      expect(row).toEqual({ due: 0, deferred: true, rest: true });
    });
    const waiting = (
      await sql<{ sku: string }[]>`select sku from catalog_internal.due where deferrals > 0`
    ).map(({ sku }) => sku);
    // A delta's report, the watchlist and a new manifest together change nothing.
    const from = sandbox.requests.length;
    for (const sku of waiting) world.setPrice(sku, 'XL', 5555);
    world.cross(waiting[0] ?? '', 'snapshot');
    world.buildSnapshot();
    await sql`insert into catalog.watchlist (sku) select unnest(${waiting}::text[])`;
    await runProgram(['refresh', '--manifest'], stack.env);
    await app.wake('manifest');
    await eventually(() => expect(logged(stack, 'manifest.done')).toHaveLength(2));
    await eventually(async () => {
      const [row] = await sql`select due_skus::int as due from catalog.sync_status`;
      expect(row).toEqual({ due: 0 });
    });
    const asked = new Set(askedSince(stack, from).flat());
    expect(waiting.filter((sku) => asked.has(sku))).toEqual([]);
    expect(await metric(app, 'deferred_skus')).toBeGreaterThanOrEqual(waiting.length);
    expect(await metric(app, 'due_skus', 'reason="deferred"')).toBe(0);
    // It used up no attempts, and it is neither failed nor not found.
    const [marks] = await sql`
      select max(d.failures) as failures, array_agg(distinct s.state) as states
      from catalog_internal.due d join catalog.skus s using (sku) where d.sku = any(${waiting})`;
    expect(marks).toEqual({ failures: 0, states: ['pending'] });

    await app.stop();
    await sql`update catalog_internal.due set held_until = now() where deferrals > 0`;
    const [row] =
      await sql`select due_skus::int as due, deferred_skus::int as deferred from catalog.sync_status`;
    expect(row?.['due']).toBeGreaterThanOrEqual(waiting.length);
    expect(row?.['due']).toBe(row?.['deferred']);
  });

  test('Deferred. No SKU is asked for again before DEFERRED_INTERVAL has passed, and all are eventually priced', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 502, liveShare: 0.5, liveBudget: 3, ghostShare: 0 },
      env: { DEFERRED_INTERVAL: '700ms' },
    });
    const { sandbox } = stack;
    await stack.once();
    const last = new Map<string, number>();
    let repeats = 0;
    for (const { route, at, skus } of sandbox.requests) {
      if (route !== 'bulk') continue;
      for (const sku of skus) {
        const before = last.get(sku);
        last.set(sku, at);
        if (before === undefined) continue;
        repeats += 1;
        expect(at - before).toBeGreaterThanOrEqual(700);
      }
    }
    expect(repeats).toBeGreaterThan(0);
    await expectMirrorIsTrue(stack.sql, sandbox.world);
  });
});

describe('Prices come from bulk alone.', () => {
  test('Prices come from bulk alone. No single lookup is ever sent, and every call writes prices and metadata', async () => {
    await using stack = await createStack({ sandbox: { skus: 80, seed: 503, liveShare: 0.05 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    await stack.start();
    await stack.caughtUp();
    const [one, two] = [...world.truth().values()].filter(
      (row) => row.priceSource === 'snapshot' && Object.keys(row.sizeMap).length > 0,
    );
    if (one === undefined || two === undefined) throw new Error('too few SKUs');
    // Asked for because of its metadata, it brings the price that no delta has reported yet.
    world.setPrice(one.sku, Object.keys(one.sizeMap)[0] ?? '', 313_131);
    await refreshAll(sql, 'metadata');
    await stack.caughtUp();
    const [price] =
      await sql`select count(*)::int as n from catalog.prices where sku = ${one.sku} and price = 313131`;
    expect(price).toEqual({ n: 1 });
    // Asked for because of its price, it brings the metadata that no delta ever reports.
    world.setProduct(two.sku, { name: 'Renamed' });
    await refreshSkus(sql, [two.sku]);
    await stack.caughtUp();
    const [product] = await sql`select name from catalog.products where sku = ${two.sku}`;
    expect(product).toEqual({ name: 'Renamed' });
    expect(sandbox.counts('lowest')).toBe(0);
    await expectMirrorIsTrue(sql, world);
  });

  test('SKUs nobody lists. One named to `refresh` is mirrored although no manifest lists it', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 504 } });
    const { sandbox, sql } = stack;
    sandbox.world.add('UNLISTED-2', { listed: false, sizes: { OS: 990 }, sizeType: 'ONE' });
    await stack.start();
    await stack.caughtUp();
    const { code, stdout } = await runProgram(['refresh', 'UNLISTED-2'], stack.env);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: '1 SKU is due now\n1 SKU was unknown and is mirrored from now on: UNLISTED-2',
    });
    await stack.caughtUp();
    expect([...(await sql`select size, price from catalog.prices where sku = 'UNLISTED-2'`)]).toEqual([
      { size: 'OS', price: 990 },
    ]);
    await expectMirrorIsTrue(sql, sandbox.world);
  });
});

describe('Entries of two forms.', () => {
  test('Entries of two forms. Objects for live SKUs beside bare numbers are all priced, and no outage is reported', async () => {
    await using stack = await createStack({
      sandbox: { skus: 120, seed: 511, liveShare: 0.1, ghostShare: 0 },
      env: { BULK_MAX_SKUS: '25' },
    });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    sandbox.faults.add({
      route: 'bulk',
      times: Infinity,
      mutate(body) {
        const results = body['results'] as Record<string, { size_map: Record<string, unknown> }>;
        for (const [sku, record] of Object.entries(results)) {
          if (world.truth().get(sku)?.priceSource !== 'live') continue;
          for (const [size, price] of Object.entries(record.size_map))
            if (typeof price === 'number') record.size_map[size] = { price, listings: 60 };
        }
        return body;
      },
    });
    const app = await stack.start();
    await stack.caughtUp();
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, world);
    expect((await readyz(app)).body).toMatchObject({ state: 'healthy' });
    expect(logged(stack, 'live-outage.began')).toEqual([]);
  });
});

describe('An entry that carries no readable price.', () => {
  test('An entry that carries no readable price is kept as it is, counted, and warned of', async () => {
    // A bare null is readable: it says that there is no price.
    const riddles = { 'no price inside': { ask: 'n/a' }, text: 'call us', negative: -5, fraction: 12.5 };
    const entries = { ...riddles, nothing: null };
    await using stack = await createStack({ sandbox: { skus: 40, seed: 505, liveShare: 0 } });
    const { sandbox, sql } = stack;
    sandbox.world.add('ODD-1', { sizes: { fine: 700 } });
    sandbox.world.buildSnapshot();
    const app = await stack.start();
    await stack.caughtUp();
    for (let round = 1; round <= 2; round += 1) {
      sandbox.faults.add({
        route: 'bulk',
        mutate: (body) => {
          const results = body['results'] as Record<string, { size_map: object }>;
          if (results['ODD-1']) Object.assign(results['ODD-1'].size_map, entries);
          return body;
        },
      });
      await refreshSkus(sql, ['ODD-1']);
      await stack.caughtUp();
      const rows = await sql<{ size: string; price: number | null; entry: unknown }[]>`
        select size, price, entry from catalog.prices where sku = 'ODD-1'`;
      expect(Object.fromEntries(rows.map(({ size, price, entry }) => [size, { price, entry }]))).toEqual({
        fine: { price: 700, entry: null },
        ...Object.fromEntries(Object.entries(entries).map(([size, entry]) => [size, { price: null, entry }])),
      });
      await eventually(async () => expect(await metric(app, 'unpriced_entries_total')).toBe(4 * round));
    }
    expect(logged(stack, 'bulk.unpriced-entries')).toHaveLength(1);
  });
});
