import { describe, expect, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';
import { logged, metric } from './harness.ts';

async function movesOf(sql: Sql, sku: string): Promise<(readonly [string, number | null, number | null])[]> {
  const rows = await sql<{ size: string; old_price: number | null; new_price: number | null }[]>`
    select size, old_price, new_price from catalog.price_history where sku = ${sku} order by id`;
  return rows.map(({ size, old_price, new_price }) => [size, old_price, new_price] as const);
}

describe('History.', () => {
  test('History. Prices that end by 0009 or a withdrawal have new_price null; returning ones have old_price null', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 1101 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    world.add('H-1', { sizes: { S: 100, M: 200 } });
    world.add('H-2', { sizes: { OS: 300 } });
    world.buildSnapshot();
    await stack.start();
    await stack.caughtUp();
    expect(await movesOf(sql, 'H-1')).toEqual([]);
    world.remove('H-1');
    world.withdraw('H-2');
    await refreshSkus(sql, ['H-1', 'H-2']);
    await stack.caughtUp();
    expect((await movesOf(sql, 'H-1')).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      ['M', 200, null],
      ['S', 100, null],
    ]);
    expect(await movesOf(sql, 'H-2')).toEqual([['OS', 300, null]]);
    const states = await sql`select sku, state from catalog.skus where sku in ('H-1', 'H-2') order by sku`;
    expect([...states]).toEqual([
      { sku: 'H-1', state: 'not_found' },
      { sku: 'H-2', state: 'priced' },
    ]);
    world.relist('H-2');
    world.setPrice('H-2', 'again', 350);
    await refreshSkus(sql, ['H-2']);
    await stack.caughtUp();
    expect(await movesOf(sql, 'H-2')).toContainEqual(['again', null, 350]);
    await expectMirrorIsTrue(sql, world);
  });

  test('History. The first record of a SKU is no move, even if 0009 came before it', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 1102 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    world.add('LATE', { sizes: { S: 100 }, priceable: false });
    world.buildSnapshot();
    await stack.start();
    await stack.caughtUp();
    const [row] =
      await sql`select state, priced_at is not null as answered from catalog.skus where sku = 'LATE'`;
    expect(row).toEqual({ state: 'not_found', answered: true });
    world.relist('LATE');
    await refreshSkus(sql, ['LATE']);
    await stack.caughtUp();
    expect(await movesOf(sql, 'LATE')).toEqual([]);
    world.setPrice('LATE', 'S', 120);
    await refreshSkus(sql, ['LATE']);
    await stack.caughtUp();
    expect(await movesOf(sql, 'LATE')).toEqual([['S', 100, 120]]);
  });

  test('History. product_history names the column, and a corrected size_type commits together with its prices', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 1103 } });
    const { sandbox, sql } = stack;
    const { world } = sandbox;
    const product = { name: 'N', model: 'M', brand: 'B', gender_size: 'men', category: 'C' };
    world.add('META', { sizes: { '9': 100 }, sizeType: 'US', product });
    world.buildSnapshot();
    const app = await stack.start();
    await stack.caughtUp();
    world.setProduct('META', { name: 'N2', model: 'M2', brand: 'B2', gender_size: 'women', category: 'C2' });
    world.correctSizeType('META', 'EU');
    world.setPrice('META', '42', 777);
    world.dropSize('META', '9');
    await refreshSkus(sql, ['META']);
    await stack.caughtUp();
    const history = await sql<{ field: string; old_value: string; new_value: string }[]>`
      select field, old_value, new_value from catalog.product_history where sku = 'META' order by field`;
    expect(history.map(({ field, old_value, new_value }) => [field, old_value, new_value])).toEqual([
      ['brand', 'B', 'B2'],
      ['category', 'C', 'C2'],
      ['gender_size', 'men', 'women'],
      ['model', 'M', 'M2'],
      ['name', 'N', 'N2'],
      ['size_map_size_type', 'US', 'EU'],
      ['size_type', 'US', 'EU'],
    ]);
    const columns = await sql<{ name: string }[]>`
      select column_name as name from information_schema.columns
      where table_schema = 'catalog' and table_name = 'products'`;
    const names = columns.map(({ name }) => name);
    for (const { field } of history) expect(names).toContain(field);
    // A reader at any moment sees old sizes with their old meaning, or new ones with the new.
    const [written] = await sql`
      select pr.xmin = p.xmin as together, p.size, pr.size_map_size_type as meaning
      from catalog.prices p join catalog.products pr using (sku) where sku = 'META'`;
    expect(written).toEqual({ together: true, size: '42', meaning: 'EU' });
    // What an answer contains is reported after it is in Postgres.
    await eventually(async () => {
      expect(logged(stack, 'size-type.changed')).toMatchObject([{ level: 'warn', skus: ['META'] }]);
      expect(await metric(app, 'metadata_changes_total')).toBe(7);
    });
    expect(await metric(app, 'price_changes_total')).toBe(2);
  });
});
