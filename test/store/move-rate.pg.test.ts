import { expect, test } from 'vitest';
import { learnBeliefs } from '../../src/store/trust/beliefs.ts';
import { snapshotPriced } from './priced.ts';
import { onlyScope } from './scoping.ts';
import { useStore } from './support.ts';

/* How often one snapshot-priced SKU moves (move_rate), measured on those of which refreshes can find a move. */

const store = useStore();

async function moveRate(): Promise<number> {
  await learnBeliefs(store.sql);
  const [row] = await store.sql<[{ rate: number }]>`select move_rate as rate from catalog_internal.beliefs`;
  return row.rate;
}

/** Records that refreshes of the last thousand minutes have found so many moves. */
async function movesFound(moves: number): Promise<void> {
  await store.sql`
    insert into catalog_internal.calibration_hours (hour, cohort, bin, looks, "right", claimed, minutes, missed)
    values (now() - interval '1000 minutes', 'reported', 1, ${moves}, 0, 0, 0, 0)`;
}

test('move_rate counts SKUs whose moves can be found: none live, unlisted, unanswered or out of scope', async () => {
  const { sql } = store;
  // What the catalog lists does not matter: far more here, and all of it said to be live.
  await sql`update catalog_internal.sync set manifest_lines = 500000, live_priced_sku_count = 500000`;
  for (const prefix of ['told', 'live', 'unlisted', 'pending', 'outside'])
    await snapshotPriced(sql, prefix, 1000);
  await sql`update catalog.skus set price_source = 'live' where sku like 'live%'`;
  await sql`update catalog.skus set in_manifest = false where sku like 'unlisted%'`;
  await sql`update catalog.skus set state = 'pending' where sku like 'pending%'`;
  await sql`select catalog_internal.mark_due(array(select sku from catalog.skus), 'sweep')`;
  await movesFound(7400);
  expect(await moveRate()).toBeCloseTo(7401 / (4320 + 2000 * 1000), 5);
  const inside = ['told', 'live', 'unlisted', 'pending'].map((prefix) => ['prefix', prefix] as const);
  await onlyScope(sql, ...inside);
  expect(await moveRate()).toBeCloseTo(7401 / (4320 + 1000 * 1000), 5);
});
