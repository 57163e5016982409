import { expect, test } from 'vitest';
import { BaselineSuperseded } from '../../src/store/catalog/baseline-merge.ts';
import { noteSnapshotSeen, readSyncState } from '../../src/store/catalog/sync-state.ts';
import { eventually } from '../support/eventually.ts';
import { baseline, line, skuRow, standing } from './manifest.ts';
import { useStore } from './support.ts';

/*
 * Two daemons merge a manifest at the same time: one was frozen for longer than the lease of its task, and
 * continues. The older one's lines must not replace those of the newer one, whose token stays.
 */

const store = useStore();

const BEFORE = [line('A'), line('B')];
const OLDER = [line('A', { hash: 'h1b' }), line('B')];
const NEWER = [line('A', { priceSource: 'live' }), line('B', { hash: 'h2' })];

/** Resolves once so many manifests' connections wait for somebody's lock. */
async function untilWait(count: number): Promise<void> {
  await eventually(async () => {
    const waiting = await store.sql`
      select from pg_stat_activity
      where datname = current_database() and application_name = 'catalog-mirror manifest' and wait_event_type = 'Lock'`;
    expect(waiting).toHaveLength(count);
  });
}

/** Runs `work` while the newer manifest's merge waits for a row of the ledger; the merge ends after it. */
async function whileNewerMerges(work: () => Promise<unknown>): Promise<void> {
  let merging: Promise<unknown> = Promise.resolve();
  await store.sql.begin(async (other) => {
    await other`select from catalog_internal.due where sku = 'B' for update`;
    merging = baseline(store.url, NEWER, { token: { snapshotId: 'm2' } });
    await untilWait(1);
    await work();
  });
  await merging;
}

async function expectNewer(): Promise<void> {
  expect((await readSyncState(store.sql)).snapshotId).toBe('m2');
  expect(await skuRow(store.sql, 'A')).toMatchObject({ source: 'live', hash: null });
  expect(await skuRow(store.sql, 'B')).toMatchObject({ hash: 'h2' });
}

/** Returns what became of a manifest; a rejection counts as handled. */
const outcomeOf = (merging: Promise<unknown>): Promise<unknown> =>
  merging.then(
    () => 'merged',
    (error: unknown) => error,
  );

test('a manifest that waits for another merge is not merged after it', async () => {
  await standing(store, ...BEFORE);
  const staged = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  const late = outcomeOf(
    baseline(store.url, OLDER, {
      token: { snapshotId: 'm1' },
      beforeMerge: async () => {
        staged.resolve();
        await thawed.promise;
      },
    }),
  );
  await staged.promise;
  await whileNewerMerges(async () => {
    thawed.resolve();
    await untilWait(2);
  });
  expect(await late).toBeInstanceOf(BaselineSuperseded);
  await expectNewer();
});

test('a manifest whose snapshot was noted on another server is not merged', async () => {
  await standing(store, ...BEFORE);
  const here = await noteSnapshotSeen(store.sql, { snapshotId: 'm2', generatedAt: null });
  await expect(baseline(store.url, NEWER, { token: { ...here, server: 'another' } })).rejects.toThrow(
    BaselineSuperseded,
  );
  await baseline(store.url, NEWER, { token: { ...here, snapshotId: 'm2' } });
  await expectNewer();
});

test('a manifest that was requested during another merge is not merged', async () => {
  await standing(store, ...BEFORE);
  let late: Promise<unknown> = Promise.resolve();
  await whileNewerMerges(async () => {
    late = outcomeOf(baseline(store.url, OLDER, { token: { snapshotId: 'm1' } }));
    await untilWait(2);
  });
  expect(await late).toBeInstanceOf(BaselineSuperseded);
  await expectNewer();
});
