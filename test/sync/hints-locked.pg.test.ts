import { describe, expect, test } from 'vitest';
import { pruneHints } from '../../src/store/sellers/hints.ts';
import { LIVE, moved, unmoved, useHints } from './hinting.ts';

const { store, hint, drain, came, call, rate, waiting, source } = useHints();

describe('hints that somebody keeps locked', () => {
  const ROWS = 'select from catalog_internal';
  test.for([
    'lock table catalog_internal.hints',
    'lock table catalog_internal.waiting_hints',
    'lock table catalog_internal.hint_sources',
    'lock table catalog_internal.waiting_hints in share mode',
    'truncate catalog_internal.hints',
    'truncate catalog_internal.waiting_hints',
    'truncate catalog_internal.hint_sources',
    'delete from catalog_internal.hint_sources',
    'delete from catalog_internal.waiting_hints',
    `${ROWS}.hints for update`,
    `${ROWS}.hint_sources for update`,
    `${ROWS}.waiting_hints for update`,
  ])('delay neither a call nor its answer: %s', async (statement) => {
    const { sql } = store;
    for (const sku of ['L00', 'L03']) await hint(sku);
    await drain();
    await hint('L01');
    await hint('L03', 'sales');
    await sql.begin(async (tx) => {
      await tx.unsafe(statement);
      const before = performance.now();
      await hint('L02');
      await came();
      await drain();
      await call(moved('L00'), moved('L01'), unmoved('L02'));
      await pruneHints(sql);
      expect(performance.now() - before).toBeLessThan(8000);
    });
    expect((await rate('L00'))?.['hazard']).toBeNull();
    await pruneHints(sql);
    for (const name of await waiting()) expect(name).not.toMatch(/^L00/);
    // What was left is read and counted as soon as possible.
    await hint('L05');
    await drain();
    expect(await waiting()).toContain('L05 orders');
    expect(await came()).toBe(false);
    await call(moved('L05'));
    expect((await source())?.['tested']).toBeGreaterThan(0);
  });

  test('are not tested by the refresh after the next', async () => {
    await hint('L00');
    await drain();
    await store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.waiting_hints for update`;
      await call(unmoved('L00'));
    });
    expect(await waiting()).toEqual(['L00 orders']);
    expect(await source()).toMatchObject({ tested: 1 });
    await call(unmoved('L00'));
    expect(await source()).toMatchObject({ tested: 1 });
    expect(await waiting()).toEqual([]);
  });

  test('are counted with the next answer if nobody could count them', async () => {
    await hint('L00');
    await drain();
    await store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.hint_sources for update`;
      await call(moved('L00'));
    });
    expect(await source()).toMatchObject({ tested: 0 });
    await call(unmoved('L01'));
    expect(await source()).toMatchObject({ tested: 1 });
  });

  test('no longer reduce trust in a price after its refresh, even if only their hazard is left', async () => {
    const { sql } = store;
    for (const sku of ['L00', 'L01']) await hint(sku);
    await drain();
    await sql`truncate catalog_internal.waiting_hints`;
    await sql`update catalog.skus set price_source = 'snapshot' where sku = 'L00'`;
    await call(unmoved('L00'), unmoved('L01'));
    for (const sku of ['L00', 'L01']) expect((await rate(sku))?.['hazard']).toBeNull();
  });

  test('do not exceed the limit of waiting hints if the record of their source is lost', async () => {
    for (const sku of LIVE.slice(0, 50)) await hint(sku);
    await drain();
    await store.sql`delete from catalog_internal.hint_sources`;
    for (const sku of LIVE.slice(50)) await hint(sku);
    await drain();
    expect(await waiting()).toHaveLength(50);
  });

  test('are read by one of several readers', async () => {
    // More than one reader can read at once.
    await store.sql`
      insert into catalog_internal.hints (sku, source, hinted_at)
      select sku, 'orders', now() from unnest(${LIVE}::text[]) as s(sku), generate_series(1, 30) order by sku`;
    await Promise.all([drain(), drain(), drain()]);
    while (await came()) await drain();
    expect(await waiting()).toHaveLength(50);
  });
});
