import { describe, expect, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { noteBrokenChain, isLeft, pruneLeftTokens } from '../../src/store/catalog/tokens.ts';
import { baseline, line, marks, skuRow, standing } from './manifest.ts';
import { answerAsked, found, HOUR, stateOf, useStore } from './support.ts';

/* The manifest route serves a snapshot that deltas have left: its lines are older than theirs. */

const store = useStore();

type Reported = Partial<Pick<Parameters<typeof applyDelta>[1], 'changed' | 'removed' | 'nowLive'>>;

/** Applies the next delta, to `toSnapshot`, and refreshes its SKUs at once: nothing is due after it. */
async function delta(toSnapshot: string, reported: Reported = {}): Promise<void> {
  const { changed = [], removed = [], nowLive = [] } = reported;
  const since = (await readSyncState(store.sql)).snapshotId ?? '';
  const applied = await applyDelta(store.sql, { since, toSnapshot, changed, removed, nowLive });
  expect(applied.applied).toBe(true);
  const answers = [
    ...changed.map((sku) => found(sku, { 9: 95 })),
    ...removed.map((sku) => ({ sku, kind: 'not_found' as const })),
  ];
  if (answers.length > 0) await answerAsked(store.sql, ...answers);
}

const lag = (snapshotId: string, ...lines: Parameters<typeof baseline>[1]) =>
  baseline(store.url, lines, { token: { snapshotId } });

describe('a manifest of a snapshot that deltas have left', () => {
  test('does not take back a crossing that they have reported since', async () => {
    const lines = [line('to-live'), line('to-snapshot', { priceSource: 'live' }), line('other')];
    await standing(store, ...lines);
    await delta('s1', { changed: ['to-live', 'to-snapshot'], nowLive: ['to-live'] });
    const { applied } = await lag('m0', ...lines);
    expect(applied).toMatchObject({ crossed: 0, marked: 0 });
    expect(await skuRow(store.sql, 'to-live')).toMatchObject({ source: 'live', hash: null });
    expect(await skuRow(store.sql, 'to-snapshot')).toMatchObject({ source: 'snapshot', hash: null });
    expect(await marks(store.sql)).toEqual({});
  });

  test('lists nothing again that they removed, and removes nothing that they added', async () => {
    await standing(store, line('removed'), line('other'));
    await delta('s1', { changed: ['added'], removed: ['removed'] });
    await lag('m0', line('removed'), line('other'));
    expect(await skuRow(store.sql, 'removed')).toMatchObject({ listed: false, hash: null });
    expect(await stateOf(store.sql, 'removed')).toMatchObject({ state: 'removed' });
    expect(await skuRow(store.sql, 'added')).toMatchObject({ listed: true });
  });

  test('leaves the token where deltas have moved it, and what they have shown of its age', async () => {
    await standing(store, line('A'));
    await delta('s1');
    await delta('s2');
    const before = await readSyncState(store.sql);
    await lag('m0', line('A'));
    const { snapshotId, snapshotMovedAt, manifestAppliedAt } = await readSyncState(store.sql);
    expect({ snapshotId, snapshotMovedAt }).toEqual({
      snapshotId: 's2',
      snapshotMovedAt: before.snapshotMovedAt,
    });
    expect(manifestAppliedAt).not.toEqual(before.manifestAppliedAt);
  });

  test('ends no doubt about what the mirror contains, unlike a newer one or the same', async () => {
    const { sql } = store;
    await standing(store, line('A'));
    await delta('s1');
    await delta('s2');
    await sql`update catalog_internal.sync set delta_doubt = 'behind', behind_since = now(),
      catalog_differs_at = now(), catalog_difference = '{"listed": 9, "live": 0}', manifest_unclear = 7`;
    const doubts = async () =>
      (
        await sql`select delta_doubt as doubt, behind_since is not null as behind,
          catalog_differs_at is not null as differs, manifest_unclear as unclear from catalog_internal.sync`
      )[0];
    await lag('m0', line('A'));
    expect(await doubts()).toEqual({ doubt: 'behind', behind: true, differs: true, unclear: 7 });
    await lag('s2', line('A'));
    expect(await doubts()).toEqual({ doubt: 'distrusted', behind: false, differs: false, unclear: 0 });
  });

  test('counts for SKUs that no delta has reported since, even if one reported them before', async () => {
    await standing(store, line('before'), line('quiet'), line('since'));
    await delta('s1', { changed: ['before'] });
    await delta('s2', { changed: ['since'] });
    await lag(
      's1',
      line('before', { hash: 'h2' }),
      line('quiet', { sizes: 4 }),
      line('since', { hash: 'h2' }),
    );
    expect(await skuRow(store.sql, 'before')).toMatchObject({ hash: 'h2' });
    expect(await skuRow(store.sql, 'quiet')).toMatchObject({ sizes: 4 });
    expect(await skuRow(store.sql, 'since')).toMatchObject({ hash: null });
  });

  test('is not older than the deltas if they have returned to its token', async () => {
    await standing(store, line('A'));
    await delta('s1', { changed: ['A'] });
    await delta('m0', { changed: ['A'], nowLive: ['A'] });
    expect((await lag('m0', line('A'))).lagSeconds).toBeNull();
    expect(await skuRow(store.sql, 'A')).toMatchObject({ source: 'snapshot', hash: 'h1' });
  });
});

describe('a manifest of a snapshot that deltas have left, when their chain is broken,', () => {
  test('replaces the chain; what was reported since is requested, and what was live stays live', async () => {
    const lines = [line('to-live'), line('to-snapshot', { priceSource: 'live' }), line('quiet')];
    await standing(store, ...lines);
    await delta('s1', { changed: ['to-live', 'to-snapshot'], nowLive: ['to-live'] });
    await noteBrokenChain(store.sql, 's1');
    await lag('m0', ...lines);
    expect(await readSyncState(store.sql)).toMatchObject({ snapshotId: 'm0', chainBrokenAt: null });
    // No later delta reports a SKU that has returned to its former state; as live it is refreshed anyway.
    expect(await skuRow(store.sql, 'to-live')).toMatchObject({ source: 'live', hash: null });
    expect(await skuRow(store.sql, 'to-snapshot')).toMatchObject({ source: 'live', hash: null });
    expect(await marks(store.sql)).toEqual({ 'to-live': 'changed', 'to-snapshot': 'changed' });
  });

  test('sets the token: what deltas left earlier is no evidence any more', async () => {
    await standing(store, line('A'));
    await delta('s1');
    await delta('s2');
    await noteBrokenChain(store.sql, 's2');
    await lag('s1', line('A', { priceSource: 'live' }));
    expect(await leftTokens()).toEqual([]);
    // Its snapshot is unknown now, so its lines count: deltas continue from it.
    await lag('m0', line('A'));
    expect(await skuRow(store.sql, 'A')).toMatchObject({ source: 'snapshot', hash: 'h1' });
    expect((await readSyncState(store.sql)).snapshotId).toBe('m0');
  });
});

describe('a delta whose last part is yet to come', () => {
  test('is newer than a manifest of the token it was asked with: what it reported as live stays live', async () => {
    await standing(store, line('A'), line('B'));
    await store.sql`
      update catalog.skus set price_source = 'live', hash_before_live = hash, hash = null, reported_at = clock_timestamp()
      where sku = 'A'`;
    await lag('m0', line('A'), line('B'));
    expect(await skuRow(store.sql, 'A')).toMatchObject({ source: 'live', hash: null });
    expect(await marks(store.sql)).toEqual({ A: 'changed' });
  });

  test('has left its token by the time of its first part', async () => {
    await standing(store, line('A'));
    const many = Array.from({ length: 5001 }, (_, n) => `C${n}`);
    const { reportedAt } = await applyDelta(store.sql, {
      since: 'm0',
      toSnapshot: 's1',
      changed: many,
      removed: [],
      nowLive: [],
    });
    expect(reportedAt.length).toBeGreaterThan(1);
    const [early] = await store.sql`
      select count(*)::int as count from catalog.skus s, catalog_internal.left_tokens l where s.reported_at < l.left_at`;
    expect(early).toEqual({ count: 0 });
  });
});

async function leftTokens(): Promise<string[]> {
  const rows = await store.sql<
    { token: string }[]
  >`select token from catalog_internal.left_tokens order by left_at`;
  return rows.map(({ token }) => token);
}

describe('the record of left tokens', () => {
  test('contains the last time that each was left', async () => {
    await standing(store, line('A'));
    for (const token of ['s1', 's2', 'm0', 's3', 's3']) await delta(token);
    expect(await leftTokens()).toEqual(['s1', 's2', 'm0']);
  });

  test('tells by how much a manifest lags', async () => {
    await standing(store, line('A'));
    await delta('s1');
    await store.sql`update catalog_internal.left_tokens set left_at = left_at - interval '2 hours'`;
    expect((await lag('m0', line('A'))).lagSeconds).toBeGreaterThanOrEqual(7200);
    expect((await lag('s1', line('A'))).lagSeconds).toBeNull();
    expect((await lag('m7', line('A'))).lagSeconds).toBeNull();
  });

  test('is bounded by number and by age', async () => {
    await store.sql`
      insert into catalog_internal.left_tokens
      select 't' || n, clock_timestamp() - make_interval(hours => n) from generate_series(1, 9) n`;
    await pruneLeftTokens(store.sql, { keep: 6, olderThanMs: 100 * HOUR });
    expect(await leftTokens()).toEqual(['t6', 't5', 't4', 't3', 't2', 't1']);
    await pruneLeftTokens(store.sql, { keep: 6, olderThanMs: 3.5 * HOUR });
    expect(await leftTokens()).toEqual(['t3', 't2', 't1']);
  });

  test('does not count the present token as left, even if it was left before', async () => {
    await standing(store, line('A'));
    for (const token of ['s1', 'm0']) await delta(token);
    const left = async (snapshotId: string) => await isLeft(store.sql, { snapshotId, generatedAt: null });
    expect([await left('m0'), await left('s1'), await left('s9')]).toEqual([false, true, false]);
  });

  test('applies to what was built by then, not to a later rebuild, unless build times are unreliable', async () => {
    await standing(store, line('A'));
    for (const token of ['s1', 's2']) await delta(token);
    const [{ leftAt }] = await store.sql<[{ leftAt: Date }]>`
      update catalog_internal.left_tokens set left_at = date_trunc('milliseconds', left_at) where token = 's1'
      returning left_at as "leftAt"`;
    const left = async (afterMs: number) =>
      await isLeft(store.sql, { snapshotId: 's1', generatedAt: new Date(leftAt.getTime() + afterMs) });
    expect([await left(HOUR), await left(HOUR + 1)]).toEqual([true, false]);
    await store.sql`update catalog_internal.sync set rebuilds = 1`;
    expect(await left(HOUR + 1)).toBe(true);
  });
});
