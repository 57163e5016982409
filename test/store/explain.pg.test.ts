import { expect, test } from 'vitest';
import type { Explained } from '../../src/cli/show-explained.ts';
import { some } from '../support/soak.ts';
import { line, standing } from './manifest.ts';
import { someCatalog } from './some-catalog.ts';
import { answerAsked, found, HOUR, mark, removeByDelta, useStore } from './support.ts';

const store = useStore();

async function explained(sku: string): Promise<Explained> {
  const [row] = await store.sql<[{ it: Explained }]>`select catalog.explain(sku => ${sku}) as it`;
  return row.it;
}

/**
 * Whether the two differ about a SKU. They are evaluated at different moments, so numbers may differ by a query's
 * duration.
 */
async function differs(sku: string): Promise<boolean> {
  const [{ differing }] = await store.sql<[{ differing: boolean }]>`
    select e->>'state' <> t.state
      or num_nulls(e->'trust'->>'p_right', t.p_right::text) = 1 or abs((e->'trust'->>'p_right')::real - t.p_right) > 0.001
      or num_nulls(e->'trust'->>'size_p_right', t.size_p_right::text) = 1
      or abs((e->'trust'->>'size_p_right')::real - t.size_p_right) > 0.001
      or (e->'trust'->>'actionable')::boolean <> t.actionable or e->'trust'->>'doubt' is distinct from t.doubt
      or (e->'trust'->>'stale')::boolean <> t.stale or (e->'next'->>'is_due')::boolean <> t.owed
      or num_nulls(e->'next'->>'look_at', t.next_look_at::text) = 1
      or abs(extract(epoch from (e->'next'->>'look_at')::timestamptz - t.next_look_at)) > 60
      or jsonb_array_length(e->'prices') <> (select count(*) from catalog.prices p where p.sku = t.sku)
      or (select count(*) from jsonb_array_elements(e->'prices') p where (p->>'actionable')::boolean)
        <> (select count(*) from catalog.current_prices c where c.sku = t.sku and c.actionable) as differing
    from catalog.sku_trust t cross join lateral (select catalog.explain(t.sku) as e) x where t.sku = ${sku}`;
  return differing;
}

test.each(some([0.61, 0.62], 1))(
  'catalog.explain agrees with the views for every SKU (seed %d)',
  async (seed) => {
    const { sql } = store;
    await someCatalog(sql, 500, seed);
    await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now()`;
    const skus = await sql<{ sku: string; priced: boolean }[]>`
    select sku, p_right is not null as priced from catalog.sku_trust`;
    const differing: string[] = [];
    // Between the two moments a SKU may fall due or become stale, but only once.
    for (const { sku } of skus) if ((await differs(sku)) && (await differs(sku))) differing.push(sku);
    expect([differing, skus.length]).toEqual([[], 500]);
    expect(skus.filter(({ priced }) => priced).length).toBeGreaterThan(100);
  },
);

test('explain contains the answer, why it was requested, and what the one before contained', async () => {
  const { sql } = store;
  await standing(store, line('A'));
  await answerAsked(sql, found('A', { 7: 100, 8: 200 }));
  await mark(sql, ['A'], 'sweep');
  expect((await explained('A')).next).toMatchObject({ reason: 'sweep', is_due: true, under_way: false });
  await answerAsked(sql, found('A', { 7: 110, 8: 200 }));
  const { answer, prices, report, belief } = await explained('A');
  expect(answer).toMatchObject({ because: 'changed', age_seconds: expect.any(Number) });
  expect(prices).toMatchObject([
    { size: '7', price: 110, before: { price: 100 } },
    { size: '8', price: 200, before: { price: null } },
  ]);
  expect(report).toMatchObject({ removed_at: null });
  expect(belief).toMatchObject({ cohort: 'snapshot', minutes_between_changes: null, own_rate: false });
});

test('explain has no former price of a size that meant something else then', async () => {
  const { sql } = store;
  await standing(store, line('A'));
  const answered = async (price: number, size_map_size_type: string) => {
    await answerAsked(sql, found('A', { 7: price }, { size_map_size_type }));
    return (await explained('A')).prices[0]?.before ?? null;
  };
  expect(await answered(6900, 'US')).toMatchObject({ price: null });
  expect(await answered(7000, 'US')).toMatchObject({ price: 6900 });
  expect(await answered(480_000, 'EU')).toBeNull();
  expect(await answered(470_000, 'EU')).toMatchObject({ price: 480_000 });
  // The same number has no row of its own.
  expect(await answered(470_000, 'UK')).toBeNull();
});

test('explain contains the belief about a live SKU, from its own refreshes and before any', async () => {
  const { sql } = store;
  await standing(store, line('L', { priceSource: 'live' }), line('M', { priceSource: 'live' }));
  await sql`insert into catalog_internal.live_rates values ('L', 2, 600, 80, 20)`;
  expect((await explained('L')).belief).toMatchObject({
    cohort: 'live',
    own_rate: true,
    minutes_between_changes: 255,
  });
  expect((await explained('L')).belief.sizes_that_move).toBeCloseTo(0.4, 5);
  expect((await explained('M')).belief).toMatchObject({
    own_rate: false,
    minutes_between_changes: 37.5,
    sizes_that_move: 1,
  });
});

test('explain contains who has hinted at the SKU, and how often they are right', async () => {
  const { sql } = store;
  await standing(store, line('L', { priceSource: 'live' }));
  expect((await explained('L')).belief.hinted_by).toBeNull();
  await sql`
    insert into catalog_internal.waiting_hints (sku, source, hinted_at, hazard)
    values ('L', 'sales', now(), -ln(0.48)), ('L', 'orders', now() - interval '1 minute', -ln(0.7))`;
  const belief = await explained('L').then((it) => it.belief);
  expect(belief.hinted_by).toEqual([
    { source: 'orders', at: expect.any(String) as string, moved: expect.closeTo(0.3, 9) as number },
    { source: 'sales', at: expect.any(String) as string, moved: expect.closeTo(0.52, 9) as number },
  ]);
});

test('explain contains what the next refresh waits for, and a removal', async () => {
  const { sql } = store;
  await standing(store, line('A'), line('B'));
  await answerAsked(sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
  await removeByDelta(sql, 'B');
  expect((await explained('A')).next).toMatchObject({
    deferrals: 1,
    held_until: expect.any(String),
    lane: 'deferred',
  });
  const removed = await explained('B');
  expect(removed).toMatchObject({
    state: 'removed',
    trust: { doubt: 'removed', p_right: null },
  });
  expect(removed.report.removed_at).not.toBeNull();
});

test('explain returns null for an unknown SKU', async () => {
  expect(await explained('never seen')).toBeNull();
});
