import { expect, test } from 'vitest';
import { noteCatalogCheck, readSyncState } from '../../src/store/catalog/sync-state.ts';
import { baseline, GENERATED_AT, line } from './manifest.ts';
import { useStore } from './support.ts';

const store = useStore();

test('a confirmation of a shrink is valid for one manifest', async () => {
  await store.sql`update catalog_internal.sync set shrink_confirmed = true`;
  await baseline(store.url, [line('A')]);
  expect(await readSyncState(store.sql)).toMatchObject({
    shrinkConfirmed: false,
    manifestAppliedAt: expect.any(Date) as Date,
  });
});

test('a manifest without a build time leaves the time of the one before', async () => {
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm1' } });
  await baseline(store.url, [line('A')], { token: { snapshotId: 'm2', generatedAt: null } });
  expect(await readSyncState(store.sql)).toMatchObject({
    snapshotId: 'm2',
    snapshotGeneratedAt: GENERATED_AT,
  });
});

test("if the partner no longer dates snapshots, the moving token bounds the snapshot's age", async () => {
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

test('if the partner never dated snapshots, a token that does not move bounds nothing', async () => {
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

test('an answer that names an older snapshot, or no time, does not make the newest snapshot older', async () => {
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
