import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { runProgram, startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

let stack: Stack;
const mirror = (...args: string[]) => runProgram(args, { DATABASE_URL: stack.databaseUrl });

beforeEach(async () => {
  stack = await createStack({
    sandbox: { skus: 60, liveShare: 0, ghostShare: 0, seed: 82 },
    env: { DELTA_INTERVAL: '1s', MIRROR_SCOPE: 'scope' },
  });
});
afterEach(() => stack[Symbol.asyncDispose]());

const priced = async () =>
  (await stack.sql<{ sku: string }[]>`select sku from catalog.skus where state = 'priced' order by sku`).map(
    ({ sku }) => sku,
  );

test('a daemon prices what is in scope, follows rule changes while it runs, and keeps what leaves the scope', async () => {
  const { sql, env } = stack;
  await using daemon = startProgram(['run'], env);
  await eventually(async () => (await sql`select from catalog.skus`).length === 60, { what: 'the manifest' });

  // Without a rule nothing is priced, and status says so.
  await eventually(async () => (await mirror('status')).stdout.includes('catalog.scope has no rule'), {
    what: 'the reason',
  });
  expect(await priced()).toEqual([]);
  expect(stack.sandbox.counts('bulk')).toBe(0);

  // SKUs that are named are priced, and nothing else is asked for.
  const own = (await sql<{ sku: string }[]>`select sku from catalog.skus order by sku limit 5`).map(
    ({ sku }) => sku,
  );
  await sql`insert into catalog.scope (kind, value) select 'sku', unnest(${own}::text[])`;
  await eventually(async () => (await priced()).length === 5, { what: 'the first prices' });
  expect(await priced()).toEqual(own);
  await eventually(async () => (await mirror('status')).stdout.includes('5 of 60 SKUs'), {
    what: 'the status',
  });

  // A brand: every other SKU is asked for once, for its metadata; those of the brand stay in scope.
  const [{ brand }] = await sql<
    [{ brand: string }]
  >`select brand from catalog.products where brand is not null order by sku limit 1`;
  await sql`insert into catalog.scope (kind, value) values ('brand', ${` ${brand.toUpperCase()}`})`;
  const sorted = async () => {
    const [row] = await sql<[{ inside: number; ofBrand: number; asked: number }]>`
      select count(*) filter (where d.outside_due_at is null)::int as inside,
        count(*) filter (where lower(p.brand) = lower(${brand}) or d.sku = any(${own}))::int as "ofBrand",
        count(p.sku)::int as asked
      from catalog_internal.due d left join catalog.products p using (sku)`;
    return row;
  };
  await eventually(async () => (await sorted()).asked === 60, { what: 'metadata of all' });
  const { inside, ofBrand } = await sorted();
  expect(inside).toBe(ofBrand);
  expect(inside).toBeGreaterThan(5);

  // The rule is deleted: its SKUs are out of scope but keep their prices, and are not asked for.
  await sql`delete from catalog.scope where kind = 'brand'`;
  const doubts = async () =>
    (await sql<{ sku: string }[]>`select sku from catalog.sku_trust where doubt = 'out_of_scope'`).length;
  await eventually(async () => (await doubts()) === 55, { what: 'all but five out of scope' });
  const calls = stack.sandbox.counts('bulk');
  const [left] = await sql<[{ sku: string; prices: number }]>`
    select sku, count(*)::int as prices from catalog.current_prices where sku <> all(${own}) and not actionable group by sku order by sku limit 1`;
  expect(left.prices).toBeGreaterThan(0);
  expect(await mirror('show', left.sku)).toMatchObject({
    stdout: expect.stringMatching(/^scope +out: no rule of catalog\.scope matches$/m) as string,
  });
  expect(await mirror('refresh', left.sku)).toMatchObject({
    stdout: expect.stringContaining('1 SKU is out of scope and not asked for') as string,
  });
  await stack.everythingDue();
  await eventually(() => stack.sandbox.counts('bulk') > calls, { what: 'a refresh of what is in scope' });
  expect(await doubts()).toBe(55);
  await daemon.end('SIGTERM');
});
