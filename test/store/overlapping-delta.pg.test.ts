import { expect, test } from 'vitest';
import { applyDelta, type DeltaApplied } from '../../src/store/catalog/delta.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { eventually } from '../support/eventually.ts';
import { baseline, line, marks, skuRow, standing } from './manifest.ts';
import { stateOf, useStore } from './support.ts';

/*
 * A manifest is requested while a delta is being applied: the delta's reports are dated before the request, but
 * its token comes after it. If the manifest route lags behind the delta, these reports are newer than its lines.
 */

const store = useStore();

const REPORTED = { changed: ['to-live', 'added'], nowLive: ['to-live'], removed: ['removed'] };

/** Starts a delta from `m0` to `s2` before `work`; the delta waits until that calls `goOn`. */
async function duringDelta(work: (goOn: () => Promise<DeltaApplied>) => Promise<unknown>): Promise<void> {
  const { sql } = store;
  const held = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const holding = sql.begin(async (tx) => {
    await tx`select from catalog_internal.sync for update`;
    held.resolve();
    await free.promise;
  });
  await held.promise;
  const applying = applyDelta(sql, { since: 'm0', toSnapshot: 's2', ...REPORTED });
  await eventually(async () => {
    const waiting = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    expect(waiting).toHaveLength(1);
  });
  await work(async () => {
    free.resolve();
    return await applying;
  });
  await holding;
}

test('lines of a snapshot that the delta has passed over take back nothing that it reports', async () => {
  const { sql, url } = store;
  const lines = [line('to-live'), line('removed'), line('other')];
  await standing(store, ...lines);
  await duringDelta(async (goOn) => {
    // Built between the two snapshots that the delta leads from and to.
    await baseline(url, lines, {
      token: { snapshotId: 's1' },
      meanwhile: async () => expect(await goOn()).toMatchObject({ applied: true }),
    });
  });
  expect((await readSyncState(sql)).snapshotId).toBe('s2');
  expect(await skuRow(sql, 'to-live')).toMatchObject({ source: 'live', hash: null });
  expect(await skuRow(sql, 'added')).toMatchObject({ listed: true });
  expect(await skuRow(sql, 'removed')).toMatchObject({ listed: false, hash: null });
  expect(await stateOf(sql, 'removed')).toMatchObject({ state: 'removed' });
  expect(await marks(sql)).toEqual({ added: 'new', removed: 'removed', 'to-live': 'changed' });
});

test('lines of a snapshot that the delta has left take back nothing that it reported before it broke off', async () => {
  const { sql, url } = store;
  const lines = [line('to-live'), line('other')];
  await standing(store, ...lines);
  // More SKUs than one transaction takes.
  const removed = Array.from({ length: 5001 }, (_, n) => `R${n}`);
  const delta = { since: 'm0', toSnapshot: 's2', changed: ['to-live'], nowLive: ['to-live'], removed };
  await sql`alter table catalog.skus add constraint none_removed check (state <> 'removed')`;
  await expect(applyDelta(sql, delta)).rejects.toMatchObject({ code: '23514' });
  await sql`alter table catalog.skus drop constraint none_removed`;
  expect((await readSyncState(sql)).snapshotId).toBe('m0');
  await applyDelta(sql, delta);
  await baseline(url, lines, { token: { snapshotId: 'm0' } });
  expect((await readSyncState(sql)).snapshotId).toBe('s2');
  expect(await skuRow(sql, 'to-live')).toMatchObject({ source: 'live', hash: null });
});
