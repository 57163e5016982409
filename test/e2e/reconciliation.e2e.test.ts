import { describe, expect, test } from 'vitest';
import { contents, logged, metric, nextLog } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';

type Reconciliation = {
  results: Record<string, object>;
  not_found: string[];
  deferred: string[];
  errors: string[];
};

/** Creates a mirror of 60 SKUs that is caught up, and whose next bulk answer is modified. */
async function bent(
  bend: (envelope: Reconciliation) => object,
): Promise<{ stack: Stack; app: Awaited<ReturnType<Stack['start']>> }> {
  const stack = await createStack({
    sandbox: { skus: 60, liveShare: 0.1, ghostShare: 0, seed: 41 },
    env: { ERROR_INTERVAL: '1h', DEFERRED_INTERVAL: '1h' },
  });
  const app = await stack.start();
  await stack.caughtUp();
  stack.sandbox.faults.add({ route: 'bulk', mutate: (json) => bend(json as unknown as Reconciliation) });
  return { stack, app };
}

const owed = async ({ sql }: Stack) =>
  (await sql<{ sku: string }[]>`select sku from catalog_internal.due where due_at <= now() order by sku`).map(
    ({ sku }) => sku,
  );

describe('a bulk answer that does not add up', () => {
  test('leaves omitted SKUs and those with two different results due, counts them, and applies the rest', async () => {
    const touched: string[] = [];
    const { stack, app } = await bent((envelope) => {
      const [omitted, twice, doubled] = Object.keys(envelope.results);
      if (omitted === undefined || twice === undefined || doubled === undefined)
        throw new Error('too few results');
      touched.push(omitted, twice);
      const { [omitted]: _gone, ...results } = envelope.results;
      return {
        ...envelope,
        results,
        not_found: [twice],
        errors: [],
        deferred: [],
        foreign: 1,
        requested: 60,
      };
    });
    await using _stack = stack;
    const before = await contents(stack.sql);
    await stack.everythingDue();
    await nextLog(stack, 'bulk.unaccounted', 0);
    await eventually(async () => expect((await owed(stack)).length).toBeLessThanOrEqual(2));
    expect(await owed(stack)).toEqual(touched.toSorted());
    expect(await metric(app, 'bulk_unaccounted_skus_total')).toBe(2);
    const states = await stack.sql`select state from catalog.skus where sku = any(${touched})`;
    expect(states.map((row) => row['state'])).toEqual(['priced', 'priced']);
    // Nothing but times changed: no price, no history, no metadata.
    const { moves, corrections, prices } = (await contents(stack.sql)) as Record<string, unknown>;
    expect({ moves, corrections, prices }).toEqual({
      moves: (before as Record<string, unknown>)['moves'],
      corrections: (before as Record<string, unknown>)['corrections'],
      prices: (before as Record<string, unknown>)['prices'],
    });
  });

  test('cannot add SKUs that were not asked for', async () => {
    const { stack } = await bent((envelope) => ({
      ...envelope,
      results: { ...envelope.results, FOREIGN: Object.values(envelope.results)[0] ?? {} },
      not_found: ['FOREIGN-2'],
    }));
    await using _stack = stack;
    await stack.everythingDue();
    await stack.caughtUp();
    expect(await stack.sql`select sku from catalog.skus where sku like 'FOREIGN%'`).toEqual([]);
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
  });

  test.each<[string, object | string]>([
    ['HTML with status 200', '<html><body>maintenance</body></html>'],
    ['an empty body', ''],
    ['an empty object', {}],
    ['arrays of the wrong kind', { results: [], not_found: 'all', deferred: 3, errors: null }],
    ['a success without results', { message: 'ok', code: '0000' }],
  ])(
    'such as %s changes nothing: every SKU stays due, the call is retried, and the failure is logged',
    async (_name, body) => {
      await using stack = await createStack({
        sandbox: { skus: 40, seed: 42 },
        env: { ERROR_INTERVAL: '500ms' },
      });
      const app = await stack.start();
      await stack.caughtUp();
      stack.sandbox.faults.add({ route: 'bulk', body });
      const before = await contents(stack.sql);
      await stack.everythingDue();
      const line = await nextLog(stack, 'bulk.failed', 0);
      expect(line['because']).toBe('unreadable');
      expect(await metric(app, 'partner_requests_total', 'route="bulk",outcome="unreadable"')).toBe(1);
      await stack.caughtUp();
      const { moves } = (await contents(stack.sql)) as Record<string, unknown>;
      expect(moves).toEqual((before as Record<string, unknown>)['moves']);
      await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    },
  );
});

test('price history: no row at first, no old price for a new size, no new price for a removed size', async () => {
  await using stack = await createStack({ sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 43 } });
  const { world } = stack.sandbox;
  await stack.start();
  await stack.caughtUp();
  expect(await stack.sql`select count(*)::int as n from catalog.price_history`).toEqual([{ n: 0 }]);
  const row = [...world.truth().values()].find((r) => r.listed && Object.keys(r.sizeMap).length >= 2);
  if (row === undefined) throw new Error('no SKU with two sizes');
  const [first = '', second = ''] = Object.keys(row.sizeMap);
  world.setPrice(row.sku, first, 4242);
  world.dropSize(row.sku, second);
  world.setPrice(row.sku, 'NEW', 99);
  world.buildSnapshot();
  await stack.caughtUp();
  const moves =
    await stack.sql`select size, old_price, new_price from catalog.price_history where sku = ${row.sku}`;
  expect(moves).toHaveLength(3);
  expect(moves).toEqual(
    expect.arrayContaining([
      { size: first, old_price: row.sizeMap[first], new_price: 4242 },
      { size: second, old_price: row.sizeMap[second], new_price: null },
      { size: 'NEW', old_price: null, new_price: 99 },
    ]),
  );
});

test('a corrected size_type is found on the metadata schedule, and changes history and meaning, not prices', async () => {
  await using stack = await createStack({ sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 44 } });
  const { world } = stack.sandbox;
  await stack.start();
  await stack.caughtUp();
  const row = [...world.truth().values()].find((r) => r.listed && Object.keys(r.sizeMap).length > 0);
  if (row === undefined) throw new Error('no SKU with sizes');
  world.correctSizeType(row.sku, 'JP');
  world.buildSnapshot();
  await stack.caughtUp();
  const meaning = async () =>
    (await stack.sql`select distinct size_type from catalog.current_prices where sku = ${row.sku}`)[0]?.[
      'size_type'
    ] as string;
  expect(await meaning()).toBe(row.sizeType);
  // Metadata reaches its maximum age.
  await stack.sql`
    update catalog_internal.due set due_at = now(), reason = 'metadata', lane = catalog_internal.lane_of('metadata')`;
  await stack.caughtUp();
  expect(await meaning()).toBe('JP');
  expect(
    await stack.sql`select old_value, new_value from catalog.product_history where sku = ${row.sku} and field = 'size_map_size_type'`,
  ).toEqual([{ old_value: row.sizeType, new_value: 'JP' }]);
  expect(await stack.sql`select count(*)::int as n from catalog.price_history`).toEqual([{ n: 0 }]);
  await eventually(() => expect(logged(stack, 'size-type.changed')).toHaveLength(1));
});
