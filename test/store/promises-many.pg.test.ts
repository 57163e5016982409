import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { knownSkus, useStore } from './support.ts';

const store = useStore();

/** Generous: the statement takes about a second where nothing else runs. */
const MOST_SECONDS = 30;

test('a statement with 20,000 promises is warned of them within seconds', async () => {
  const { sql, url } = store;
  const skus = Array.from({ length: 20_000 }, (_, n) => `S${n}`);
  await knownSkus(sql, skus);
  await sql`insert into catalog_internal.due (sku, lane, reason, live, due_at, generation) select sku, 6, 'sweep', false, now() + interval '1 day', 1 from catalog.skus`;
  const said: string[] = [];
  const seller = connect(url, { max: 1, onNotice: ({ message }) => said.push(message ?? '') });
  try {
    const start = performance.now();
    await seller`insert into catalog.watchlist (sku, max_age) select sku, '1 minute' from catalog.skus`;
    expect((performance.now() - start) / 1000).toBeLessThan(MOST_SECONDS);
    expect(said).toEqual([expect.stringContaining('of 20000 are not kept')]);
  } finally {
    await seller.end({ timeout: 2 });
  }
});
