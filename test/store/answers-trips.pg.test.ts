import { expect, test } from 'vitest';
import { countingClient } from '../../bench/frame/trips.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_LEARNING, type SkuResult } from '../../src/store/answer/types.ts';
import { claimAll, found, HOUR, knownSkus, REFRESH, mark, useStore } from './support.ts';

const store = useStore();

const LEARNING = {
  ...NO_LEARNING,
  live: ({ sku }: { sku: string }) => ({
    sku,
    alpha: 1,
    beta: 720,
    sizesSeen: 0,
    sizesMoved: 0,
    nextMs: HOUR,
  }),
};

test('an answer takes one round trip besides BEGIN and COMMIT, whatever it contains', async () => {
  const { sql, trips } = countingClient(store.url);
  const skus = ['A', 'B', 'C', 'D', 'E'];
  await knownSkus(store.sql, skus.slice(1));
  await knownSkus(store.sql, ['A'], { priceSource: 'live' });
  const taken: number[] = [];
  for (let look = 0; look < 3; look += 1) {
    await mark(store.sql, skus);
    await store.sql`update catalog.skus set reported_at = clock_timestamp()`;
    const claim = await claimAll(store.sql);
    const results: SkuResult[] = [
      found('A', { '42': look }),
      found('B', { '42': look }),
      { sku: 'C', kind: 'not_found' },
      { sku: 'D', kind: 'deferred', waitMs: 0 },
      { sku: 'E', kind: 'error', waitMs: 0 },
    ];
    const before = trips();
    await applyAnswer(sql, claim, results, REFRESH, { learning: LEARNING });
    taken.push(trips() - before);
    await store.sql`update catalog_internal.due set held_until = null`;
  }
  // Statements are prepared when first used: those of first prices by the second refresh, then those of moves.
  expect(taken[2]).toBe(3);
  expect(taken[0]).toBeGreaterThan(3);
  await sql.end({ timeout: 2 });
});
