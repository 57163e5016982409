import fc from 'fast-check';
import { test } from 'vitest';
import { runs } from '../support/soak.ts';
import { step, World } from './promises-model.ts';
import { empty, useStore } from './support.ts';

const store = useStore();

test('after any sequence of steps, the ledger matches the last answers and max_age', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 45, size: 'max' }), async (steps) => {
      await empty(store.sql);
      const world = new World(store);
      await world.begin();
      for (const next of steps) await world.run(next);
      await world.check();
    }),
    { numRuns: runs(25, 100) },
  );
}, 300_000);
