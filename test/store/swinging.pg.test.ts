import { describe, expect, test } from 'vitest';
import { settledIn, type World } from './audit-world.ts';
import { useStore } from './support.ts';

/*
 * The delta compares snapshots: a price that moved after one and was back before the next is in no report, but a
 * refresh in between has stored the other price.
 */
const store = useStore();
const settled = settledIn(store);

const stored = async (sku: string) =>
  (await store.sql`select price::int from catalog.prices where sku = ${sku}`)[0]?.['price'];
const stale = async (sku: string) =>
  (await store.sql`select stale from catalog.current_prices where sku = ${sku}`)[0]?.['stale'];
/** Returns what is due, except for SKUs requested again because their report contained nothing new. */
const owed = async () => {
  const rows = await store.sql`
    select sku, reason from catalog_internal.due where due_at <= now() and reason <> 'again' order by sku`;
  return rows.map(({ sku, reason }) => `${sku} ${reason}`);
};

/** Lets a refresh see A and B move, and A go back before anything is reported. */
async function swung(): Promise<World> {
  const world = await settled('A', 'B', 'C');
  world.move('A');
  world.move('B');
  await world.refresh('sweep');
  world.goBack('A');
  await world.pass();
  expect(await stored('A')).not.toBe(world.prices.get('A'));
  return world;
}

describe('a move that was seen between two snapshots and went back', () => {
  test('is requested again once a snapshot built since then does not report it', async () => {
    const world = await swung();
    await world.snapshot();
    await world.refresh('owed');
    expect(await owed()).toEqual([]);
    await world.snapshot();
    expect(await owed()).toEqual(['A changed']);
    expect(await stale('A')).toBe(true);
    await world.refresh('owed');
    expect(await stored('A')).toBe(world.prices.get('A'));
    for (let i = 0; i < 3; i += 1) {
      await world.snapshot();
      await world.refresh('owed');
    }
    expect(await owed()).toEqual([]);
    expect(await world.counts()).toMatchObject({ never: 0, waiting: 0 });
  });

  test('is marked once, however often the delta is polled', async () => {
    const world = await swung();
    await world.snapshot();
    await world.snapshot();
    const generation = async () =>
      (await store.sql`select generation from catalog_internal.due where sku = 'A'`)[0]?.[
        'generation'
      ] as number;
    const marked = await generation();
    await world.snapshot();
    await world.catchUp();
    expect(await generation()).toBe(marked);
  });

  test('is requested again after a manifest that replaces the reports', async () => {
    const world = await swung();
    world.build();
    await world.pass();
    await world.manifest();
    expect(await owed()).toContain('A changed');
    await world.refresh('owed');
    expect(await stored('A')).toBe(world.prices.get('A'));
    expect(await stored('B')).toBe(world.prices.get('B'));
  });
});

test('a move that the delta never reports costs one more refresh, and is counted', async () => {
  const world = await settled('A', 'B');
  world.move('A');
  world.dropNext.add('A');
  await world.refresh('sweep');
  await world.pass();
  await world.snapshot();
  await world.snapshot();
  expect(await owed()).toEqual(['A changed']);
  await world.refresh('owed');
  for (let i = 0; i < 2; i += 1) await world.snapshot();
  expect(await owed()).toEqual([]);
  expect(await world.counts()).toMatchObject({ never: 1, waiting: 0 });
});
