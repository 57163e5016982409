import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { markUnstored } from '../../src/store/ledger/claim.ts';
import { scheduleLive, unscheduleSnapshot } from '../../src/store/live/order.ts';
import {
  answerAsked,
  claimAll,
  found,
  HOUR,
  knownSkus,
  ledger,
  mark,
  passHours,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();

/** Returns a schedule in two hours, made from the row as it is now. */
async function at(sku: string) {
  const [row] = await store.sql<[{ version: string }]>`
    select xmin::text as version from catalog_internal.due where sku = ${sku}`;
  return { sku, version: row.version, alpha: 3, beta: 60, inMs: 2 * HOUR };
}

test('a SKU that was marked since its schedule was made keeps its mark', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await mark(sql, ['A', 'B'], 'sweep');
  const made = [await at('A'), await at('B')];
  await mark(sql, ['A'], 'changed');
  await scheduleLive(sql, made);
  const rows = await ledger(sql);
  expect(rows.get('A')).toMatchObject({ reason: 'changed', lane: 1, live: false, generation: 2 });
  expect(rows.get('B')).toMatchObject({ reason: 'live', lane: 2, live: true });
  expect(rows.get('B')?.dueIn).toBeCloseTo(2, 1);
});

test('a SKU that an answer doubted, or that could not be stored, since its schedule was made keeps that', async () => {
  const { sql } = store;
  await knownSkus(sql, ['doubted', 'unstored', 'as it was']);
  for (const sku of ['doubted', 'unstored', 'as it was']) await answerAsked(sql, found(sku, { 9: 90 }));
  await sql`update catalog_internal.due set due_at = now(), reason = 'live', live = true, lane = 2`;
  const made = [await at('doubted'), await at('unstored')];
  const claim = await claimAll(sql);
  const only = (sku: string) => ({ ...claim, skus: claim.skus.filter((each) => each.sku === sku) });
  await applyAnswer(sql, only('doubted'), [found('doubted', { 9: 9000 })], REFRESH);
  await markUnstored(sql, only('unstored'));
  await sql`update catalog_internal.due set claim = null, held_until = null where sku <> 'doubted'`;
  await scheduleLive(sql, [...made, await at('as it was')]);
  const rows = await ledger(sql);
  expect(rows.get('doubted')).toMatchObject({ reason: 'doubted', dueIn: expect.closeTo(0, 1) });
  expect(rows.get('unstored')).toMatchObject({ reason: 'missed', dueIn: expect.closeTo(0, 1) });
  expect(rows.get('as it was')).toMatchObject({ reason: 'live', dueIn: expect.closeTo(2, 1) });
});

/** Releases snapshot-priced SKUs, as after an incident. */
const releaseSnapshots = () =>
  unscheduleSnapshot(store.sql, {
    after: '',
    limit: 10,
    next: { liveMs: REFRESH.liveMs, snapshotMs: REFRESH.snapshotMs, snapshotReason: 'sweep' },
  });

/** Defers a snapshot-priced SKU twice, so that it still counts as live after its answer. */
async function deferredTwice(sku: string): Promise<void> {
  await knownSkus(store.sql, [sku]);
  for (let times = 0; times < 2; times += 1) {
    await answerAsked(store.sql, { sku, kind: 'deferred', waitMs: HOUR });
    await passHours(store.sql, 2);
    await store.sql`update catalog_internal.due set held_until = null`;
    await answerAsked(store.sql, found(sku, { 9: 90 + times }));
  }
  expect((await ledger(store.sql)).get(sku)).toMatchObject({ reason: 'live', live: true });
}

test('a SKU that counts as live for its own deferrals still does after an incident or an outage', async () => {
  const { sql } = store;
  await deferredTwice('A');
  await knownSkus(sql, ['B']);
  await answerAsked(sql, found('B', { 9: 90 }));
  await scheduleLive(sql, [await at('B')]);
  expect(await releaseSnapshots()).toBe('B');
  const rows = await ledger(sql);
  expect(rows.get('A')).toMatchObject({ reason: 'live', lane: 2, live: true });
  expect(rows.get('B')).toMatchObject({ reason: 'sweep', live: false });
});

test('a SKU that a report has since shown as snapshot-priced does not count as live any more', async () => {
  const { sql } = store;
  await deferredTwice('A');
  await mark(sql, ['A'], 'changed', false);
  await scheduleLive(sql, [await at('A')]);
  expect(await releaseSnapshots()).toBe('A');
  expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'sweep', live: false });
});

test('a learned rate stays, and a SKU without one gets the rate of its past', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await mark(sql, ['A', 'B'], 'live', true);
  await sql`insert into catalog_internal.live_rates (sku, alpha, beta) values ('A', 15, 30)`;
  await scheduleLive(sql, [await at('A'), await at('B')]);
  expect([...(await sql`select sku, alpha, beta from catalog_internal.live_rates order by sku`)]).toEqual([
    { sku: 'A', alpha: 15, beta: 30 },
    { sku: 'B', alpha: 3, beta: 60 },
  ]);
});

test.each([
  ['10 days', 3 * 24 * 60],
  ['2 days', 2 * 24 * 60],
])('the past of a SKU first priced %s ago is %i minutes', async (since, minutes) => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await sql`update catalog.skus set first_priced_at = now() - ${since}::interval`;
  const rows = await sql<{ minutes: number; moves: number }[]>`
    select p.* from catalog.skus s cross join lateral (
      select * from catalog_internal.past_moves(s.sku, s.first_priced_at)
      union all select * from catalog_internal.past_moves_planned(s.sku, s.first_priced_at)
    ) p`;
  expect(rows).toHaveLength(2);
  for (const row of rows) expect(row.minutes).toBeCloseTo(minutes, 0);
});

test('a SKU whose line moves, or that was hinted at, is not postponed by a schedule from its rate', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B', 'C', 'D']);
  await mark(sql, ['A', 'B', 'C', 'D'], 'live', true);
  await sql`update catalog_internal.due set due_at = now() + interval '10 minutes'`;
  await sql`update catalog_internal.due set due_at = now() + interval '3 hours' where sku = 'D'`;
  await sql`
    insert into catalog_internal.live_rates (sku, alpha, beta, hazard, hint_hazard)
    values ('A', 15, 30, 0.7, null), ('B', 15, 30, null, 0.7), ('C', 15, 30, null, null), ('D', 15, 30, 0.7, 0.7)`;
  await scheduleLive(sql, await Promise.all(['A', 'B', 'C', 'D'].map(at)));
  const rows = await ledger(sql);
  const dueIn = Object.fromEntries([...rows].map(([sku, row]) => [sku, Math.round(row.dueIn * 6) / 6]));
  expect(dueIn).toEqual({ A: 1 / 6, B: 1 / 6, C: 2, D: 2 });
});
