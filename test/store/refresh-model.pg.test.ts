import fc from 'fast-check';
import { test } from 'vitest';
import { SKUS, step, World } from './refresh-model.ts';
import { answerAsked, empty, found, knownSkus, useStore } from './support.ts';

const store = useStore();
const ROUNDS = 25 * Number(process.env['SOAK'] ?? 1);

test('after any sequence of steps, waiters learn of an answer neither too early nor too late', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      await empty(store.sql);
      await store.sql`update catalog_internal.settings set rate_share = 1000000`;
      await knownSkus(store.sql, SKUS);
      await answerAsked(store.sql, ...SKUS.map((one) => found(one, { 8: 1 })));
      const world = new World(store);
      for (const next of steps) await world.run(next);
      await world.finish();
    }),
    { numRuns: ROUNDS, endOnFailure: true },
  );
}, 300_000);
