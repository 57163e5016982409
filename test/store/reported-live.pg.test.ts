import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { scheduleLive, unscheduledLive } from '../../src/store/live/order.ts';
import { rateOf } from '../../src/sync/live/policy.ts';
import { baseline, line, standing } from './manifest.ts';
import { answerAsked, claimAll, found, HOUR, ledger, mark, REFRESH, useStore } from './support.ts';

/* An incident schedules everything as live, including what was reported and not requested yet. */

const store = useStore();

const trust = async () =>
  (await store.sql`select doubt, actionable from catalog.sku_trust where sku = 'A'`)[0];

test('a reported price is not actionable before it is requested, whatever schedule it gets', async () => {
  const { sql } = store;
  await standing(store, line('A'));
  await answerAsked(sql, found('A', { 9: 90 }));
  // It hardly ever moves.
  await sql`update catalog.skus set first_priced_at = now() - interval '3 days'`;
  await sql`update catalog_internal.sync set delta_checked_at = now(), snapshot_generated_at = now()`;
  const delta = { changed: ['A'], removed: [] };
  await applyDelta(sql, { since: 'm0', toSnapshot: 's1', ...delta, nowLive: [] });
  expect(await trust()).toEqual({ doubt: 'owed', actionable: false });

  await sql`update catalog_internal.live_plan set incident_since = now(), incident_because = 'live-count'`;
  await applyDelta(sql, { since: 's1', toSnapshot: 's2', ...delta, nowLive: ['A'] });
  const skus = await unscheduledLive(sql, { after: '', limit: 10, scheduled: true, incident: true });
  expect(skus.map(({ sku }) => sku)).toEqual(['A']);
  await scheduleLive(
    sql,
    skus.map((sku) => ({ ...sku, ...rateOf(sku), inMs: 7_200_000 })),
  );
  expect(await trust()).toEqual({ doubt: 'owed', actionable: false });
  await sql`update catalog_internal.live_plan set incident_since = null, incident_because = null`;
  expect(await trust()).toEqual({ doubt: 'owed', actionable: false });

  await sql`update catalog_internal.due set due_at = now()`;
  await applyAnswer(sql, await claimAll(sql), [found('A', { 9: 95 })], REFRESH);
  expect(await trust()).toEqual({ doubt: null, actionable: true });
});

test('a SKU whose hash changed before a manifest lists it as live stays due and is not scheduled', async () => {
  const { sql, url } = store;
  await standing(store, line('A'), line('B'), line('C'));
  await answerAsked(sql, ...['A', 'B', 'C'].map((sku) => found(sku, { 9: 90 })));
  const changed = line('C', { hash: 'h2' });
  await baseline(url, [line('A'), line('B'), changed]);
  await answerAsked(sql, found('C', { 9: 95 }));
  await baseline(url, [line('A', { hash: 'h2' }), line('B'), changed], { token: { snapshotId: 'm1b' } });
  const live = ['A', 'B', 'C'].map((sku) => line(sku, { priceSource: 'live' }));
  await baseline(url, live, { token: { snapshotId: 'm2' } });
  await sql`update catalog_internal.live_plan set incident_since = now(), incident_because = 'live-count'`;
  const skus = await unscheduledLive(sql, { after: '', limit: 10, scheduled: true, incident: true });
  expect(skus.map(({ sku }) => sku)).toEqual(['B', 'C']);
  expect(await trust()).toEqual({ doubt: 'owed', actionable: false });
});

test('a reported SKU that the ledger has lost is not actionable before its row is restored', async () => {
  const { sql } = store;
  await standing(store, line('A'));
  await answerAsked(sql, found('A', { 9: 90 }));
  await sql`update catalog_internal.sync set delta_checked_at = now(), snapshot_generated_at = now()`;
  expect(await trust()).toEqual({ doubt: null, actionable: true });
  await applyDelta(sql, { since: 'm0', toSnapshot: 's1', changed: ['A'], removed: [], nowLive: [] });
  await sql`delete from catalog_internal.due`;
  expect(await trust()).toEqual({ doubt: 'owed', actionable: false });
});

test.each(['watched', 'refresh'])(
  'a price reported while it is due as %s has the same p_right as any other reported one',
  async (reason) => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await sql`update catalog_internal.sync set delta_checked_at = now(), snapshot_generated_at = now()`;
    await mark(sql, ['A'], reason);
    await applyDelta(sql, { since: 'm0', toSnapshot: 's1', changed: ['A', 'B'], removed: [], nowLive: [] });
    const rows = await sql<{ p: number; doubt: string; reason: string }[]>`
      select p_right as p, doubt, owed_reason as reason from catalog.sku_trust order by sku`;
    expect(rows[0]).toEqual({ p: 0.1, doubt: 'owed', reason: 'changed' });
    expect(rows[1]).toEqual({ p: 0.1, doubt: 'owed', reason: 'changed' });
  },
);

test.each(['watched', 'refresh', 'absent', 'clock', 'doubted'])(
  'a report that could not be answered keeps its low p_right if the SKU is then marked as %s',
  async (reason) => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await sql`update catalog_internal.sync set delta_checked_at = now(), snapshot_generated_at = now()`;
    await baseline(store.url, [line('A', { hash: 'h2' }), line('B', { hash: 'h2' })]);
    const deferred = { sku: 'A', kind: 'deferred', waitMs: HOUR } as const;
    const error = { sku: 'B', kind: 'error', waitMs: HOUR, because: 'reported' } as const;
    await applyAnswer(sql, await claimAll(sql), [deferred, error], REFRESH);
    await sql`update catalog_internal.due set held_until = null where sku = 'A'`;
    await applyAnswer(sql, await claimAll(sql), [deferred], REFRESH);
    const lanes = [...(await ledger(sql)).values()].map(({ lane }) => lane);
    expect(lanes).toEqual([4, 4]);
    await mark(sql, ['A', 'B'], reason, false);
    const rows = await sql`select p_right as p, owed_reason as reason from catalog.sku_trust order by sku`;
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row).toEqual({ p: 0.1, reason: 'changed' });
  },
);
