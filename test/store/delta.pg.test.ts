import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta, type DeltaChange } from '../../src/store/catalog/delta.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { noteBrokenChain, noteCatalogFault } from '../../src/store/catalog/tokens.ts';
import {
  claimAll,
  everything,
  failing,
  found,
  HOUR,
  knownSkus,
  settleKnown,
  ledger,
  answerAsked,
  REFRESH,
  mark,
  movesOf,
  passHours,
  pricesOf,
  stateOf,
  useStore,
} from './support.ts';

const store = useStore();

async function delta(differs: Partial<DeltaChange>) {
  return await applyDelta(store.sql, {
    since: 's1',
    toSnapshot: 's2',
    changed: [],
    removed: [],
    nowLive: [],
    ...differs,
  });
}

async function standAt(snapshotId: string): Promise<void> {
  await store.sql`update catalog_internal.sync set snapshot_id = ${snapshotId}, manifest_applied_at = now()`;
}

async function skuRow(sku: string) {
  const [row] = await store.sql`select price_source, hash, in_manifest from catalog.skus where sku = ${sku}`;
  return row;
}

describe('a delta', () => {
  test('moves the token and marks every SKU it reports', async () => {
    const { sql } = store;
    await standAt('s1');
    await knownSkus(sql, ['A', 'B', 'C'], { hash: 'h' });
    expect(await delta({ changed: ['A', 'B'] })).toMatchObject({ applied: true, marked: 2, newSkus: 0 });
    expect([...(await ledger(sql)).keys()]).toEqual(['A', 'B']);
    expect(await readSyncState(sql)).toMatchObject({ snapshotId: 's2' });
    expect(await skuRow('A')).toEqual({ price_source: 'snapshot', hash: null, in_manifest: true });
    expect(await skuRow('C')).toEqual({ price_source: 'snapshot', hash: 'h', in_manifest: true });
  });

  test('that was requested with another token than the current one changes nothing', async () => {
    await standAt('s5');
    const before = await everything(store.sql);
    expect(await delta({ changed: ['A'], removed: ['B'], nowLive: ['C'] })).toMatchObject({
      applied: false,
      marked: 0,
    });
    expect(await everything(store.sql)).toEqual(before);
  });

  test('that several replicas apply at once is applied once', async () => {
    await standAt('s1');
    const applied = await Promise.all(Array.from({ length: 6 }, () => delta({ changed: ['A'] })));
    expect(applied.filter((a) => a.applied)).toHaveLength(1);
    expect((await ledger(store.sql)).get('A')).toMatchObject({ generation: 1 });
  });

  test('that fails midway leaves token, SKUs and ledger as they were', async () => {
    const { sql } = store;
    await standAt('s1');
    await knownSkus(sql, ['A', 'B'], { hash: 'h' });
    await answerAsked(sql, found('B', { 9: 90 }));
    const before = await everything(sql);
    await using _ = await failing(sql, 'delete on catalog.prices');
    await expect(delta({ changed: ['A'], removed: ['B'] })).rejects.toThrow('made to fail');
    expect(await everything(sql)).toEqual(before);
  });

  test('marks what was priced before as changed, first of all, and what never was as new', async () => {
    const { sql } = store;
    await standAt('s1');
    await knownSkus(sql, ['priced', 'pending']);
    await answerAsked(sql, found('priced'));
    expect(await delta({ changed: ['priced', 'pending', 'unheard'] })).toMatchObject({
      newSkus: 1,
      marked: 3,
    });
    const reasons = Object.fromEntries(
      [...(await ledger(sql)).values()].map(({ sku, reason }) => [sku, reason]),
    );
    expect(reasons).toEqual({ priced: 'changed', pending: 'new', unheard: 'new' });
    expect((await ledger(sql)).get('priced')).toMatchObject({ lane: 1 });
  });

  test('sets who is live: now_live beats the manifest, and a changed SKU outside it is snapshot-priced', async () => {
    const { sql } = store;
    await standAt('s1');
    await knownSkus(sql, ['toLive', 'stays'], { hash: 'h' });
    await knownSkus(sql, ['toSnapshot', 'staysLive'], { priceSource: 'live' });
    await mark(sql, ['toSnapshot', 'staysLive'], 'live', true);
    const applied = await delta({
      changed: ['toLive', 'toSnapshot', 'stays', 'staysLive'],
      nowLive: ['toLive', 'staysLive', 'alone'],
    });
    expect(applied).toMatchObject({ crossedToLive: 1, crossedToSnapshot: 1, newSkus: 1, marked: 5 });
    const rows = await ledger(sql);
    const wanted = {
      toLive: 'live',
      toSnapshot: 'snapshot',
      stays: 'snapshot',
      staysLive: 'live',
      alone: 'live',
    };
    for (const [sku, source] of Object.entries(wanted)) {
      expect({ sku, ...(await skuRow(sku)) }).toEqual({
        sku,
        price_source: source,
        hash: null,
        in_manifest: true,
      });
      expect({ sku, live: rows.get(sku)?.live }).toEqual({ sku, live: source === 'live' });
    }
  });

  test.each([
    ['now_live alone', [], ['A']],
    ['changed and now_live', ['A'], ['A']],
  ])(
    'that names a SKU in %s makes it due when it goes live, but not again while it stays live',
    async (_, changed, nowLive) => {
      const { sql } = store;
      await standAt('s1');
      await knownSkus(sql, ['A'], { hash: 'h' });
      await answerAsked(sql, found('A', { 9: 90 }));
      await delta({ changed, nowLive });
      expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', live: true, lane: 1 });
      await applyAnswer(sql, await claimAll(sql), [found('A', { 9: 90 })], REFRESH);
      const before = await everything(sql);
      const { dueIn, generation } = (await ledger(sql)).get('A') ?? {};
      expect(dueIn).toBeGreaterThan(0.1);
      await delta({ since: 's2', toSnapshot: 's3', changed, nowLive });
      expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'live', generation });
      const after = await everything(sql);
      expect({ ...after, 'catalog_internal.sync': null }).toEqual({
        ...before,
        'catalog_internal.sync': null,
      });
      await delta({ since: 's3', toSnapshot: 's4', changed: ['A'] });
      expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', live: false });
      await delta({ since: 's4', toSnapshot: 's5', changed, nowLive });
      expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', live: true });
    },
  );

  test.each([
    ['was never priced', 'pending', true, true],
    ['is not found', 'not_found', true, false],
    ['is in no manifest', 'priced', false, false],
    ['is removed', 'removed', false, false],
  ])(
    'ends the wait of a live SKU that it names again, unless the SKU is listed without a price: one that %s',
    async (_, state, listed, waits) => {
      const { sql } = store;
      await standAt('s1');
      await knownSkus(sql, ['A'], { priceSource: 'live' });
      await mark(sql, ['A'], 'live', true);
      await sql`update catalog.skus set state = ${state}, in_manifest = ${listed}`;
      await sql`update catalog_internal.due set failures = 3, held_until = now() + interval '1 hour'`;
      await delta({ changed: ['A'], nowLive: ['A'] });
      expect((await ledger(sql)).get('A')?.heldFor === null).toBe(!waits);
      expect(await skuRow('A')).toMatchObject({ in_manifest: true });
    },
  );

  test('removes SKUs: prices go, with history, the SKU is requested once more, and metadata stays', async () => {
    const { sql } = store;
    await standAt('s1');
    await knownSkus(sql, ['A', 'B'], { hash: 'h' });
    await answerAsked(sql, found('A', { 9: 90, 10: null }, { name: 'N' }), found('B', { 9: 90 }));
    expect(await delta({ removed: ['A', 'A', 'unheard'] })).toMatchObject({ applied: true });
    expect(await stateOf(sql, 'A')).toMatchObject({ state: 'removed', removed: true });
    expect(await skuRow('A')).toMatchObject({ hash: null, in_manifest: false });
    expect(await pricesOf(sql, 'A')).toEqual({});
    expect(await movesOf(sql, 'A')).toEqual(['9: 90 → null']);
    expect(await stateOf(sql, 'unheard')).toMatchObject({ state: 'removed' });
    expect(await pricesOf(sql, 'B')).toEqual({ 9: 90 });
    expect((await claimAll(sql)).skus.map(({ sku }) => sku).toSorted()).toEqual(['A', 'unheard']);
    expect(await sql`select name from catalog.products where sku = 'A'`).toEqual([{ name: 'N' }]);
  });

  test('that reports a removed SKU again lists it again, and its price is requested', async () => {
    const { sql } = store;
    await standAt('s1');
    await delta({ removed: ['A'] });
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'not_found' }], REFRESH);
    expect((await ledger(sql)).get('A')?.dueIn).toBe(Infinity);
    await delta({ since: 's2', toSnapshot: 's3', changed: ['A'] });
    expect(await skuRow('A')).toMatchObject({ in_manifest: true, price_source: 'snapshot' });
    await applyAnswer(sql, await claimAll(sql), [found('A', { 9: 90 })], REFRESH);
    expect(await stateOf(sql, 'A')).toEqual({ state: 'priced', answered: true, removed: false });
  });

  test('naming a SKU both changed and removed leaves it removed and due', async () => {
    const { sql } = store;
    await standAt('s1');
    await delta({ changed: ['A'], nowLive: ['A'], removed: ['A'] });
    expect(await stateOf(sql, 'A')).toMatchObject({ state: 'removed' });
    expect((await claimAll(sql)).skus).toMatchObject([{ sku: 'A' }]);
  });

  test('does not shorten the wait of a deferred SKU', async () => {
    const { sql } = store;
    await standAt('s1');
    await knownSkus(sql, ['A']);
    await answerAsked(sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
    await delta({ changed: ['A'] });
    expect((await ledger(sql)).get('A')?.heldFor).toBeCloseTo(1, 1);
  });

  test('without changes is a check: only a token that moves proves a fresh snapshot', async () => {
    const { sql } = store;
    await standAt('s1');
    await noteCatalogFault(sql, { kind: 'snapshot-stale' });
    await delta({ toSnapshot: 's1' });
    expect(await readSyncState(sql)).toMatchObject({ snapshotMovedAt: null, catalogFault: null });
    expect((await readSyncState(sql)).deltaCheckedAt).not.toBeNull();
    await delta({});
    expect((await readSyncState(sql)).snapshotMovedAt).not.toBeNull();
    expect(await ledger(sql)).toEqual(new Map());
  });
});

test('the delta counts as read only once an answer brings nothing more: a partial one ends no doubt', async () => {
  const { sql } = store;
  await standAt('s1');
  await knownSkus(sql, ['A', 'B']);
  await sql`update catalog_internal.sync set delta_checked_at = now() - interval '3 hours'`;
  await sql`update catalog.skus set state = 'priced', price_source = 'snapshot', priced_at = now() - interval '1 hour', asked_at = now() - interval '1 hour'`;
  await settleKnown(sql);
  const doubtOfB = async () => {
    const [row] = await sql<[{ doubt: string | null }]>`select doubt from catalog.sku_trust where sku = 'B'`;
    return row.doubt;
  };
  expect(await doubtOfB()).toBe('delta_late');
  // B's change may be in the next answer, which may fail for hours.
  await delta({ changed: ['A'] });
  expect([await doubtOfB(), (await readSyncState(sql)).deltaLate]).toEqual(['delta_late', true]);
  await delta({ since: 's2', toSnapshot: 's2' });
  expect([await doubtOfB(), (await readSyncState(sql)).deltaLate]).toEqual([null, false]);
  // If each answer has its own token, the caller says which one is the end.
  await sql`update catalog_internal.sync set delta_checked_at = now() - interval '3 hours'`;
  await delta({ since: 's2', toSnapshot: 's3', removed: ['A'] });
  await delta({ since: 's3', toSnapshot: 's4' });
  expect(await doubtOfB()).toBe('delta_late');
  await delta({ since: 's4', toSnapshot: 's5', isEnd: true });
  expect(await doubtOfB()).toBe(null);
});

describe('a broken chain', () => {
  /** Returns the seconds until the next manifest, rounded up to five because the test itself takes some time. */
  async function manifestIn(): Promise<number> {
    const [row] = await store.sql<[{ s: number }]>`
      select extract(epoch from next_at - now())::float8 as s from catalog_internal.tasks where task = 'manifest'`;
    return Math.max(0, Math.ceil(row.s / 5) * 5);
  }
  /** Restores the state after a fresh manifest: the chain is intact, and the next manifest is a week away. */
  async function freshManifest(): Promise<void> {
    await store.sql`update catalog_internal.sync set chain_broken_at = null`;
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '7 days' where task = 'manifest'`;
  }

  test('asks for a manifest at once, then after a minute, doubling to an hour, while new ones do not help', async () => {
    await standAt('s1');
    const waits: number[] = [];
    for (let i = 0; i < 9; i += 1) {
      await freshManifest();
      await noteBrokenChain(store.sql, 's1');
      waits.push(await manifestIn());
    }
    expect(waits).toEqual([0, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
  });

  test('is forgotten once a delta is answered', async () => {
    await standAt('s1');
    for (let i = 0; i < 3; i += 1) {
      await freshManifest();
      await noteBrokenChain(store.sql, 's1');
    }
    await freshManifest();
    await delta({ toSnapshot: 's1' });
    await noteBrokenChain(store.sql, 's1');
    expect(await manifestIn()).toBe(0);
  });

  test('remembers the token that was rejected', async () => {
    await standAt('s1');
    await noteBrokenChain(store.sql, 's1');
    expect(await readSyncState(store.sql)).toMatchObject({ rejectedSnapshotId: 's1', snapshotId: 's1' });
  });

  test('is noted once, and not for a token that is no longer ours', async () => {
    await standAt('s2');
    await freshManifest();
    await noteBrokenChain(store.sql, 's1');
    expect((await readSyncState(store.sql)).chainBrokenAt).toBeNull();
    await noteBrokenChain(store.sql, 's2');
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '50 seconds' where task = 'manifest'`;
    await noteBrokenChain(store.sql, 's2');
    expect(await manifestIn()).toBe(50);
  });

  test('does not push back a manifest that is due sooner anyway', async () => {
    await standAt('s1');
    await noteBrokenChain(store.sql, 's1');
    await store.sql`update catalog_internal.sync set chain_broken_at = null`;
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '5 seconds' where task = 'manifest'`;
    await noteBrokenChain(store.sql, 's1');
    expect(await manifestIn()).toBe(5);
  });
});

test('time alone makes no removed SKU due', async () => {
  const { sql } = store;
  await standAt('s1');
  await delta({ removed: ['A'] });
  await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'not_found' }], REFRESH);
  await passHours(sql, 10_000);
  await expect(claimAll(sql)).rejects.toThrow('nothing is due');
});
