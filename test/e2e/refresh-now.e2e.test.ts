import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { pauseRequests } from '../../src/store/sellers/pause.ts';
import { outcome } from '../store/refreshing.ts';
import { eventually } from '../support/eventually.ts';
import { createStack, type Stack } from '../support/stack.ts';

let stack: Stack;
let own: Sql;
let role: string;

/**
 * So few calls a minute that a fill takes minutes, and a seller's login with the rights of catalog_watcher and
 * catalog_reader.
 */
beforeEach(async () => {
  stack = await createStack({
    sandbox: { skus: 8000, liveShare: 0.02, ghostShare: 0, seed: 5 },
    env: { PARTNER_RATE_LIMIT: '120' },
  });
  role = `seller_${randomBytes(6).toString('hex')}`;
  await stack.sql.unsafe(`create role ${role} login password 'x' in role catalog_reader, catalog_watcher`);
  own = connect(Object.assign(new URL(stack.databaseUrl), { username: role, password: 'x' }).href, {
    max: 2,
  });
});
afterEach(async () => {
  await own.end({ timeout: 2 });
  await stack.sql.unsafe(`drop role ${role}`);
  await stack[Symbol.asyncDispose]();
});

const last = async (source: string, n: number) => {
  const rows = await own<{ sku: string }[]>`
    select sku from catalog.skus where state = 'pending' and price_source = ${source} order by sku desc limit ${n}`;
  return rows.map(({ sku }) => sku);
};
const pricesOf = async (sku: string) => {
  const rows = await own<{ size: string; price: number | null }[]>`
    select size, price from catalog.prices where sku = ${sku} order by size`;
  return Object.fromEntries(rows.map(({ size, price }) => [size, price]));
};

test('during a fill, refresh_now gets a seller the partner’s present prices, and waits through a pause', async () => {
  const { sandbox, sql } = stack;
  await stack.start();
  await eventually(async () => expect(await last('snapshot', 1)).toHaveLength(1), {
    what: 'a fill',
  });
  const skus = [...(await last('snapshot', 3)), ...(await last('live', 2))];
  expect(skus).toHaveLength(5);
  await own`call catalog.refresh_now(${skus}, '60 s')`;
  for (const sku of skus) expect(await pricesOf(sku)).toEqual(sandbox.world.find(sku)?.sizeMap);
  const [{ pending }] = await sql<[{ pending: number }]>`
    select count(*)::int as pending from catalog.skus where state = 'pending'`;
  expect(pending).toBeGreaterThan(1000);

  // A move that no delta has reported yet.
  const [sku = ''] = skus;
  const [size = ''] = Object.keys(sandbox.world.find(sku)?.sizeMap ?? {});
  sandbox.world.setPrice(sku, size, 4321);
  await pauseRequests(sql, { forMs: 8000, by: 'ann@desk' });
  expect(await outcome(own`call catalog.refresh_now(${[sku]}, '1 s')`)).toMatch(
    /^CM003 \| 0 of 1 SKUs were answered within 1(\.\d)? s: requests to the partner are paused until 2/,
  );
  await own`call catalog.refresh_now(${[sku]}, '60 s')`;
  expect(await pricesOf(sku)).toMatchObject({ [size]: 4321 });
}, 120_000);
