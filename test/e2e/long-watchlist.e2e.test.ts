import { expect, test } from 'vitest';
import { readyz, runNow } from '../contract/harness.ts';
import { eventually } from '../support/eventually.ts';
import { createStack } from '../support/stack.ts';

test('only the WATCHLIST_MAX_SKUS heaviest SKUs are watched, and readyz says how many are not', async () => {
  await using stack = await createStack({
    sandbox: { skus: 20, ghostShare: 0, seed: 2102 },
    env: { WATCHLIST_MAX_SKUS: '2' },
  });
  const { sql } = stack;
  const app = await stack.start();
  await stack.caughtUp();
  await sql`
    insert into catalog.watchlist (sku, max_age, weight)
    select sku, interval '1 hour', row_number() over (order by sku) from (select sku from catalog.skus where state = 'priced' order by sku limit 3) s`;
  const [least, ...greatest] = await sql<
    { sku: string }[]
  >`select sku from catalog.watchlist order by weight`;
  const watched = async () => [...(await sql`select sku from catalog_internal.watched order by sku`)];
  await eventually(async () => expect(await watched()).toEqual(greatest), { what: 'a list that is read' });
  await runNow(stack, app, 'maintenance');
  const reasons = async () => (await readyz(app)).body['reasons'];
  await eventually(
    async () =>
      expect(await reasons()).toContainEqual(
        expect.objectContaining({
          code: 'watchlist-full',
          text: expect.stringContaining('1 SKU of catalog.watchlist is not watched') as string,
        }),
      ),
    { what: 'the reason watchlist-full' },
  );
  expect([...(await sql`select sku, feasible, because from catalog.promises order by sku`)]).toEqual([
    { sku: least?.sku, feasible: false, because: 'not read by the mirror yet' },
    ...greatest.map(({ sku }) => ({ sku, feasible: true, because: null })),
  ]);

  await sql`delete from catalog.watchlist where sku = ${String(greatest[0]?.sku)}`;
  await runNow(stack, app, 'maintenance');
  await eventually(async () => expect(await reasons()).toEqual([]), { what: 'a list that is watched whole' });
  expect(await watched()).toEqual([least, greatest[1]]);
});
