import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_LEARNING } from '../../src/store/answer/types.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { UNTESTED } from '../../src/store/live/hint-state.ts';
import { readLearnedRates, rateGroups, readLivePlan } from '../../src/store/live/live.ts';
import { listBacklog } from '../../src/store/live/order.ts';
import { QUIET_LINE } from '../../src/store/live/product-line-state.ts';
import type { LearnedRefresh, LiveRefresh } from '../../src/store/live/refresh.ts';
import { readHintStats } from '../../src/store/sellers/hint-sources.ts';
import { storeHintTests } from '../../src/store/sellers/hints.ts';
import { learnHints } from '../../src/sync/live/hints.ts';
import { learnRefresh } from '../../src/sync/live/learn-refresh.ts';
import { PRIOR } from '../../src/sync/live/policy.ts';
import { remembered } from '../../src/sync/live/releases.ts';
import { NO_METADATA, REFRESH, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

/*
 * Whatever is learned fades. In Postgres a number too small for its type is an error instead of zero, so it must
 * be forgotten before. Otherwise a mirror that has run for months would fail on SKUs that never change.
 */

const store = useStore();
const EVERY_MINUTES = 30;
const TEN_YEARS = (10 * 365 * 24 * 60) / EVERY_MINUTES;

async function liveSku(sku: string, alpha = 1, beta = 120): Promise<void> {
  await store.sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, asked_at, priced_at, first_priced_at)
    select ${sku}, 'priced', 'live', true, t, t, t from (select now() - interval '3 days' as t) asked`;
  await store.sql`select catalog_internal.mark_due(array[${sku}], 'live', true)`;
  await store.sql`update catalog_internal.due set due_at = now() - interval '1 day'`;
  await store.sql`insert into catalog_internal.live_rates (sku, alpha, beta) values (${sku}, ${alpha}, ${beta})`;
}

/** Returns what refreshes teach of a SKU with one size. Only the first of them has found a move. */
async function rested(refreshes: number): Promise<LearnedRefresh> {
  const learn = learnRefresh(await readLivePlan(store.sql), settingsWith({}));
  const held = { sku: 'A', weight: 1, minutes: EVERY_MINUTES, alpha: null, beta: null };
  let learned = learn({ ...held, moved: true, sizes: { held: 1, moved: 1 } });
  for (let n = 1; n < refreshes; n += 1) {
    const { alpha, beta, memories, sizesSeen, sizesMoved, wholesale } = learned;
    const before = { alpha, beta, sizesSeen, sizesMoved, ...(memories === undefined ? {} : { memories }) };
    const own = { wholesaleMoves: wholesale?.moves ?? null, wholesaleMinutes: wholesale?.minutes ?? null };
    const refresh: LiveRefresh = { ...held, ...before, ...own, moved: false, sizes: { held: 1, moved: 0 } };
    learned = learn(refresh);
  }
  return learned;
}

async function answer(learned: LearnedRefresh): Promise<void> {
  const claim = await claimDue(store.sql, { named: ['A'] }, 60_000);
  if (claim === null) throw new Error('nothing claimed');
  const prices = [{ size: '7', price: 100, entry: null }];
  await applyAnswer(
    store.sql,
    claim,
    [{ sku: 'A', kind: 'record', prices, product: NO_METADATA }],
    { ...REFRESH, liveMs: 60_000 },
    {
      learning: { ...NO_LEARNING, live: () => learned },
    },
  );
}

describe('a SKU that never changes', () => {
  test.each([
    ['half a year', TEN_YEARS / 20],
    ['eight months', TEN_YEARS / 15],
    ['ten years', TEN_YEARS],
  ])('for %s is refreshed, estimated and planned like any other', async (_, refreshes) => {
    await liveSku('A');
    const learned = await rested(refreshes);
    await answer(learned);
    const [trust] = await store.sql<[{ p_right: number }]>`select p_right from catalog.sku_trust`;
    // As certain as the memory of the last days allows, and no more.
    expect(trust.p_right).toBeGreaterThan(0.99);
    expect(learned.alpha / learned.beta).toBeGreaterThan(1 / (10 * 365 * 24 * 60));
    expect(await store.sql`select catalog.explain('A')`).toHaveLength(1);
    expect(await rateGroups(store.sql, PRIOR, false)).toHaveLength(1);
    expect(await readLearnedRates(store.sql)).toMatchObject({ knownPart: 1 });
    await store.sql`update catalog.skus set asked_at = now() - interval '1 year'`;
    await listBacklog(store.sql, { count: 10, overdueMinutes: 1e9, prior: PRIOR });
  });

  test('is soon known to move when it does', async () => {
    const learn = learnRefresh(await readLivePlan(store.sql), settingsWith({}));
    let learned = await rested(TEN_YEARS);
    for (let n = 0; n < 6; n += 1) {
      const { alpha, beta, memories } = learned;
      const before = { alpha, beta, ...(memories === undefined ? {} : { memories }) };
      learned = learn({ ...before, sku: 'A', weight: 1, minutes: EVERY_MINUTES, moved: true });
    }
    expect(learned.alpha / learned.beta).toBeGreaterThan(1 / 300);
  });
});

test('after days without a refresh, the backlog lists SKUs that move by the minute, with and without hints', async () => {
  await liveSku('A', 20, 20);
  await liveSku('B', 20, 20);
  await store.sql`update catalog_internal.live_rates set hint_hazard = 1 where sku = 'A'`;
  await listBacklog(store.sql, { count: 10, overdueMinutes: 1e9, prior: PRIOR });
  expect(await store.sql`select sku from catalog_internal.live_backlog`).toHaveLength(2);
});

test('old results of a source of hints are forgotten, and its view continues to work', async () => {
  const shown = { tested: 1, expected: 0.9, unmoved: 0, followed: 1, stayed: 1, undone: 0 };
  let record = { ...UNTESTED, followed: 1, undone: 1, unmoved: 1 };
  for (let n = 0; n < 400_000; n += 1) record = learnHints(record, { ...shown, moves: 0 });
  expect(record).toMatchObject({ tested: 500, undone: 0, unmoved: 0 });
  // The same in the database, from the point at which most of it has faded.
  const almost = { ...record, undone: 1.001e-6, unmoved: 1.001e-6, moves: 1.001e-6 };
  await store.sql`insert into catalog_internal.hint_sources ${store.sql({ source: 'orders', last_hint: new Date(), ...almost })}`;
  await storeHintTests(store.sql, { shown: [{ source: 'orders', ...shown }], moves: 0 });
  const [held] = await store.sql`select undone, unmoved, moves from catalog_internal.hint_sources`;
  expect(held).toEqual({ undone: 0, unmoved: 0, moves: 0 });
  expect(await readHintStats(store.sql)).toMatchObject({ sources: [{ source: 'orders', recall: 0 }] });
});

test('a line whose SKUs all follow each release forgets the earlier ones that did not', () => {
  let line = remembered(QUIET_LINE, 0, 1);
  for (let n = 0; n < 100_000; n += 1) line = remembered(line, 1, 0);
  expect(line.misses).toBe(0);
  expect(line.hits).toBeGreaterThan(1);
});
