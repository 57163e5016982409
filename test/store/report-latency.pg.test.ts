import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { type Claim, endWaits } from '../../src/store/ledger/due.ts';
import { claimAll, found, HOUR, knownSkus, answerAsked, REFRESH, passHours, useStore } from './support.ts';

const store = useStore();

async function report(...changed: string[]): Promise<void> {
  await store.sql`update catalog_internal.sync set snapshot_id = 's'`;
  await applyDelta(store.sql, { since: 's', toSnapshot: 's', changed, removed: [], nowLive: [] });
}

async function ago(seconds: number): Promise<void> {
  await store.sql`
    update catalog.skus set reported_at = reported_at - make_interval(secs => ${seconds}),
      asked_at = asked_at - make_interval(secs => ${seconds}), removed_at = removed_at - make_interval(secs => ${seconds})`;
}

const answer = async (claim: Claim, ...results: SkuResult[]) =>
  (await applyAnswer(store.sql, claim, results, REFRESH)).reportSeconds;

test('a report is answered once, and its latency runs from the report to the commit', async () => {
  await knownSkus(store.sql, ['A', 'B']);
  const startedAt = performance.now();
  await report('A', 'B');
  await ago(100);
  const took = await answer(await claimAll(store.sql), found('A', { '42': 1 }), found('B'));
  const most = 100 + (performance.now() - startedAt) / 1000;
  expect(took).toHaveLength(2);
  for (const seconds of took) {
    expect(seconds).toBeGreaterThan(100);
    expect(seconds).toBeLessThan(most);
  }
  await passHours(store.sql, 21);
  expect(await answer(await claimAll(store.sql), found('A'), found('B'))).toEqual([]);
});

test('the latency includes the wait for the commit', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await report('A');
  const claim = await claimAll(sql);
  // Deferred constraints are checked at COMMIT; this one takes half a second.
  await sql.unsafe(`
    create function public.slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$;
    create constraint trigger slow after update on catalog.skus deferrable initially deferred
      for each row execute function public.slow()`);
  try {
    const [took] = await answer(claim, found('A'));
    expect(took).toBeGreaterThan(0.5);
  } finally {
    await sql.unsafe('drop trigger slow on catalog.skus; drop function public.slow');
  }
});

test('a deferral does not end the latency, nor does an answer to an earlier request', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A'));
  await ago(7200);
  await passHours(sql, 21);
  const overtaken = await claimAll(sql);
  await report('A');
  // The report must come after the request.
  await sql`update catalog.skus set reported_at = reported_at + interval '1 second'`;
  expect(await answer(overtaken, found('A'))).toEqual([]);
  await ago(60);
  const again = await claimAll(sql);
  expect(await answer(again, { sku: 'A', kind: 'deferred', waitMs: HOUR })).toEqual([]);
  await passHours(sql, 2);
  await endWaits(sql, 10);
  const [took] = await answer(await claimAll(sql), found('A'));
  expect(took).toBeGreaterThan(55);
});

test('an unreported SKU, and a removal, have no latency', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await sql`update catalog_internal.sync set snapshot_id = 's'`;
  await applyDelta(sql, { since: 's', toSnapshot: 's', changed: [], removed: ['B'], nowLive: [] });
  await sql`select catalog_internal.mark_due(array['A'], 'new')`;
  await ago(10);
  expect(await answer(await claimAll(sql), found('A'), { sku: 'B', kind: 'not_found' })).toEqual([]);
});
