import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack } from '../support/stack.ts';
import { get } from './harness.ts';

/**
 * Longer than a daemon waits here for an answer, and shorter than it waits for a statement that Postgres is
 * working on.
 */
const SLOW_SECONDS = 7;
const WAITS = { answerMs: 3000, queueAnswerMs: 10_000 };

test("a seller's triggers may take longer than the answer timeout: nothing is applied twice, and they are named", async () => {
  await using stack = await createStack({
    sandbox: { skus: 40, liveShare: 0.1, seed: 7 },
    env: { DELTA_INTERVAL: '1s' },
  });
  const { sql, sandbox } = stack;
  await stack.once();
  const daemon = await stack.start({}, WAITS);
  await stack.caughtUp();
  const [gone] = await sql<[{ sku: string }]>`select sku from catalog.prices order by sku limit 1`;
  await sql.unsafe(`
    create function public.slow() returns trigger language plpgsql as $$ begin perform pg_catalog.pg_sleep(${SLOW_SECONDS}); return null; end $$;
    create trigger sellers_prices after insert on catalog.prices for each statement execute function public.slow();
    create trigger sellers_gone after delete on catalog.prices for each statement execute function public.slow()`);
  moveMarket(sandbox.world, 0);
  sandbox.world.remove(gone.sku);
  sandbox.world.buildSnapshot();
  await stack.everythingDue();
  const reason = await eventually(
    async () => {
      const said = stack.logs.find(({ event }) => event === 'store.slow');
      expect(said).toBeDefined();
      return said;
    },
    { what: 'a line on a slow statement', within: 60_000 },
  );
  expect(reason?.['attached']).toContain('trigger sellers_prices on catalog.prices');
  expect((await get(daemon, '/readyz')).status).toBe(200);
  await stack.caughtUp();
  await expectMirrorIsTrue(sql, sandbox.world);
  expect(stack.logs.filter(({ event }) => event === 'store.lost')).toEqual([]);
}, 300_000);
