import { expect, test } from 'vitest';
import { noteCatalogCheck, readSyncState } from '../../src/store/catalog/sync-state.ts';
import { baseline, GENERATED_AT, line } from './manifest.ts';
import { useStore } from './support.ts';

const store = useStore();

test('a shrink that was confirmed is confirmed for one manifest', async () => {
  await store.sql`update catalog_internal.sync set shrink_confirmed = true`;
  await baseline(store.url, [line('A')]);
  expect(await readSyncState(store.sql)).toMatchObject({
    shrinkConfirmed: false,
    manifestAppliedAt: expect.any(Date) as Date,
  });
});

test('a manifest that does not say when it was built leaves the time of the one before', async () => {
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm1' } });
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm2', generatedAt: null } });
  expect(await readSyncState(store.sql)).toMatchObject({
    snapshotId: 'm2',
    snapshotGeneratedAt: GENERATED_AT,
  });
});

test('where the partner says no more when a snapshot was built, that the token moves tells how old it is at most', async () => {
  const movedAt = async () => (await readSyncState(store.sql)).snapshotMovedAt;
  const check = (generatedAt: Date | null) =>
    noteCatalogCheck(store.sql, { snapshotId: 's', generatedAt, livePricedSkuCount: null });
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm1' } });
  await store.sql`update catalog_internal.sync set snapshot_moved_at = now() - interval '2 days'`;
  await check(null);
  const before = await movedAt();
  expect(before).not.toBeNull();
  await baseline(store.url, [line('A')], {
    token: { snapshotId: 'm1', tokenAtRequest: 'm1', generatedAt: null },
  });
  expect(await movedAt()).toEqual(before);
  await baseline(store.url, [line('A')], {
    token: { snapshotId: 'm2', tokenAtRequest: 'm1', generatedAt: null },
  });
  expect((await movedAt())?.getTime()).toBeGreaterThan(Date.now() - 60_000);
  await check(GENERATED_AT);
  expect(await movedAt()).toBeNull();
});

test('where it never said so, a snapshot whose token does not move is as good as any', async () => {
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm1', generatedAt: null } });
  await store.sql`update catalog_internal.sync set snapshot_moved_at = now() - interval '2 days'`;
  await noteCatalogCheck(store.sql, { snapshotId: 's', generatedAt: null, livePricedSkuCount: null });
  expect((await readSyncState(store.sql)).snapshotMovedAt).toBeNull();
  await store.sql`update catalog_internal.sync set snapshot_moved_at = now() - interval '2 days'`;
  await baseline(store.url, [line('A')], {
    token: { snapshotId: 'm2', tokenAtRequest: 'm1', generatedAt: null },
  });
  expect((await readSyncState(store.sql)).snapshotMovedAt).toBeNull();
});

test('the newest snapshot is no older for an answer that names an older one, or no time', async () => {
  await baseline(store.url, [line('A')]);
  const check = async (generatedAt: Date | null) => {
    await noteCatalogCheck(store.sql, { snapshotId: 's', generatedAt, livePricedSkuCount: null });
    return (await readSyncState(store.sql)).snapshotGeneratedAt;
  };
  const later = new Date(GENERATED_AT.getTime() + 60_000);
  expect(await check(new Date(GENERATED_AT.getTime() - 60_000))).toEqual(GENERATED_AT);
  expect(await check(later)).toEqual(later);
  expect(await check(null)).toEqual(later);
});
