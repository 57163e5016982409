import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_LEARNING } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { noteCatalogFault } from '../../src/store/catalog/tokens.ts';
import { storeIncident } from '../../src/store/live/limits.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { baseline, line, marks, standing } from './manifest.ts';
import {
  answerAsked,
  claimAll,
  found,
  HOUR,
  ledger,
  mark,
  passHours,
  REFRESH,
  removeByDelta,
  stateOf,
  useStore,
} from './support.ts';
import { watch } from './watching.ts';

const store = useStore();

/** Makes a mirror on a manifest of 'L' only, which may know 'U' too. */
const standingOnL = () => standing(store, line('L'));

/** The ways to become an unlisted SKU. */
const WAYS: Readonly<Record<string, () => Promise<unknown>>> = {
  'watched before the first baseline': async () => {
    await watch(store.sql, 'U');
    await answerAsked(store.sql, found('U', { 9: 90 }));
    await standingOnL();
  },
  watched: async () => {
    await standingOnL();
    await watch(store.sql, 'U');
  },
  'asked for by refresh': async () => {
    await standingOnL();
    await refreshSkus(store.sql, ['U']);
  },
  'dropped by a manifest': async () => {
    await standing(store, line('U'), line('L'));
    await baseline(store.url, [line('L')], { token: { snapshotId: 'm2' } });
  },
  'removed by a delta, and priced all the same': async () => {
    await standing(store, line('U'), line('L'));
    await removeByDelta(store.sql, 'U');
  },
};

interface Trust {
  readonly doubt: string | null;
  readonly actionable: boolean;
  readonly stale: boolean;
  readonly fresh: boolean;
  readonly minutes: number;
  readonly owed_reason: string | null;
  readonly owed_lane: string | null;
}

async function trust(sku: string): Promise<Trust> {
  const [row] = await store.sql<Trust[]>`
    select doubt, actionable, stale, fresh, (extract(epoch from target_age) / 60)::int as minutes, owed_reason, owed_lane
    from catalog.sku_trust where sku = ${sku}`;
  if (row === undefined) throw new Error(`no ${sku}`);
  return row;
}

/** Makes everything requested that long ago, whatever the ledger shows. */
const pricedAgo = (minutes: number) => store.sql`
  update catalog.skus set priced_at = now() - make_interval(mins => ${minutes}), asked_at = now() - make_interval(mins => ${minutes})
  where state = 'priced'`;

/** Makes an unlisted 'U' beside 'L', both priced just now. */
async function unlistedU(): Promise<void> {
  await WAYS['watched']?.();
  await answerAsked(store.sql, found('U', { 9: 90 }), found('L', { 9: 90 }));
  await store.sql`update catalog_internal.sync set snapshot_generated_at = now(), delta_checked_at = now()`;
}

/** Applies a delta that reports 'U'. */
async function report(nowLive: readonly string[]): Promise<void> {
  await store.sql`update catalog_internal.sync set snapshot_id = 'd1'`;
  await applyDelta(store.sql, { since: 'd1', toSnapshot: 'd2', changed: ['U'], removed: [], nowLive });
}

describe.each(Object.entries(WAYS))('a SKU that is %s', (_way, become) => {
  test('is requested as often as a live one, without a live slot', async () => {
    await become();
    await answerAsked(store.sql, found('U', { 9: 90 }), found('L', { 9: 90 }));
    const rows = await ledger(store.sql);
    expect(rows.get('U')).toMatchObject({ reason: 'unlisted', lane: 2, live: false });
    expect(rows.get('U')?.dueIn).toBeCloseTo(REFRESH.liveMs / HOUR, 1);
    expect(rows.get('L')).toMatchObject({ reason: 'again', lane: 5 });
    await passHours(store.sql, 11);
    expect(await trust('U')).toMatchObject({ doubt: 'owed', owed_reason: 'unlisted', owed_lane: 'live' });
  });

  test('is actionable for LIVE_INTERVAL at most, and that long only if its refreshes show hardly any moves', async () => {
    await become();
    await answerAsked(store.sql, found('U', { 9: 90 }), found('L', { 9: 90 }));
    await pricedAgo(1);
    expect(await trust('U')).toMatchObject({ doubt: null, actionable: true });
    await pricedAgo(3);
    expect(await trust('U')).toMatchObject({ doubt: null, actionable: false });
    await store.sql`insert into catalog_internal.live_rates (sku, alpha, beta) values ('U', 1, 720)`;
    await store.sql`update catalog_internal.sync set snapshot_generated_at = now(), delta_checked_at = now()`;
    expect([(await trust('U')).minutes, (await trust('L')).minutes]).toEqual([30, 24 * 60]);
    await pricedAgo(29);
    expect(await trust('U')).toMatchObject({ doubt: null, actionable: true, stale: false, fresh: true });
    await pricedAgo(31);
    expect(await trust('U')).toMatchObject({
      doubt: 'past_target',
      actionable: false,
      stale: true,
      fresh: false,
    });
    expect(await trust('L')).toMatchObject({ doubt: null, actionable: true });
    const shown = await store.sql`select stale, actionable from catalog.current_prices where sku = 'U'`;
    expect([...shown]).toEqual([{ stale: true, actionable: false }]);
  });

  test('waits as before if the partner does not know it', async () => {
    await become();
    await answerAsked(store.sql, { sku: 'U', kind: 'not_found' });
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'metadata' });
    expect((await trust('U')).doubt).toBe((await stateOf(store.sql, 'U'))?.['state']);
  });
});

describe('an unlisted SKU', () => {
  test('is counted as fresh by the target of live ones', async () => {
    await unlistedU();
    const fresh = async () =>
      Object.fromEntries(
        (await countCatalog(store.sql)).freshSkus.map(({ priceSource, count }) => [priceSource, count]),
      );
    expect(await fresh()).toEqual({ snapshot: 1, unknown: 1 });
    await pricedAgo(31);
    expect(await fresh()).toEqual({ snapshot: 1, unknown: 0 });
    await passHours(store.sql, 11);
    expect((await countCatalog(store.sql)).due).toMatchObject([
      { reason: 'again', count: 1 },
      { reason: 'unlisted', count: 1 },
    ]);
  });

  test('keeps its live slot and schedule if it was last listed as live', async () => {
    await standing(store, line('U', { priceSource: 'live' }), line('L'));
    await baseline(store.url, [line('L')], { token: { snapshotId: 'm2' } });
    await answerAsked(store.sql, found('U', { 9: 90 }));
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'live', lane: 2, live: true });
    expect((await trust('U')).minutes).toBe(30);
  });

  test('counts as live for one answer after a deferral, like any that is not listed as live', async () => {
    await unlistedU();
    await answerAsked(store.sql, { sku: 'U', kind: 'deferred', waitMs: 1 });
    await passHours(store.sql, 1);
    await store.sql`update catalog_internal.due set held_until = null`;
    expect((await ledger(store.sql)).get('U')).toMatchObject({ live: true });
    await answerAsked(store.sql, found('U', { 9: 90 }));
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'unlisted', live: false });
  });

  test('waits like any other if calls with it fail, and returns to its lane', async () => {
    await unlistedU();
    await passHours(store.sql, 11);
    await store.sql`update catalog_internal.due set largest_call = 1 where sku = 'U'`;
    expect(await trust('U')).toMatchObject({ doubt: 'owed', owed_reason: 'unlisted' });
    await store.sql`update catalog_internal.due set largest_call = null where sku = 'U'`;
    const claim = await claimAll(store.sql);
    const failed = { sku: 'U', kind: 'error', waitMs: HOUR, blame: 'alone' } as const;
    await applyAnswer(store.sql, claim, [failed], REFRESH);
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'unlisted', lane: 4, failures: 1 });
    await store.sql`update catalog_internal.due set held_until = null, largest_call = null`;
    await applyAnswer(store.sql, await claimAll(store.sql), [found('U', { 9: 90 })], REFRESH);
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'unlisted', lane: 2, failures: 0 });
  });

  test('is not requested less often after a request for its metadata', async () => {
    await unlistedU();
    await refreshAll(store.sql, 'metadata');
    expect(await trust('U')).toMatchObject({ doubt: 'size_type', owed_reason: 'metadata' });
    await answerAsked(store.sql, found('U', { 9: 90 }), found('L', { 9: 90 }));
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'unlisted' });
  });

  test('has the doubt of its age while the catalog reports nothing, like a live one', async () => {
    await unlistedU();
    await noteCatalogFault(store.sql, { kind: 'snapshot-stale' });
    expect((await trust('U')).doubt).toBeNull();
    await pricedAgo(31);
    expect([(await trust('U')).doubt, (await trust('L')).doubt]).toEqual(['past_target', 'catalog_stale']);
  });

  test('is scheduled as live during an incident', async () => {
    await unlistedU();
    await storeIncident(store.sql, () => 'live-count');
    await mark(store.sql, ['U']);
    const learning = { ...NO_LEARNING, everythingLive: true };
    await applyAnswer(store.sql, await claimAll(store.sql), [found('U', { 9: 90 })], REFRESH, { learning });
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'live' });
    expect((await trust('U')).minutes).toBe(30);
  });
});

describe('a SKU that is listed again', () => {
  test.each([
    // Its answer contains nothing new for the report.
    ['snapshot', [], { reason: 'again', lane: 5, live: false }],
    ['live', ['U'], { reason: 'live', lane: 2, live: true }],
  ] as const)('by a delta, as %s-priced, is requested like those', async (_as, nowLive, row) => {
    await unlistedU();
    await report(nowLive);
    await answerAsked(store.sql, found('U', { 9: 90 }));
    expect((await ledger(store.sql)).get('U')).toMatchObject(row);
  });

  test('by a manifest is requested, and again if the answer contains nothing new', async () => {
    await unlistedU();
    await pricedAgo(20);
    await baseline(store.url, [line('L'), line('U')], { token: { snapshotId: 'm2' } });
    expect(await marks(store.sql)).toEqual({ U: 'changed' });
    await answerAsked(store.sql, found('U', { 9: 90 }));
    expect((await ledger(store.sql)).get('U')).toMatchObject({ reason: 'again', lane: 5 });
    expect((await trust('U')).minutes).toBe(24 * 60);
  });

  test.each([
    ['swept a day', 24, 'sweep', 6],
    ['without sweeps, asked for its metadata a week', 0, 'metadata', 5],
  ])(
    'by a manifest, and was requested since its snapshot, is %s after that',
    async (_is, hours, reason, lane) => {
      await store.sql`update catalog_internal.settings set sweep_interval = ${hours * 3600}`;
      await standing(store, line('U'), line('L'));
      await baseline(store.url, [line('L')], { token: { snapshotId: 'm2' } });
      await answerAsked(store.sql, found('U', { 9: 90 }));
      await pricedAgo(20);
      await baseline(store.url, [line('L'), line('U')], { token: { snapshotId: 'm3', seenClaim: '0' } });
      expect(await marks(store.sql)).toEqual({});
      const row = (await ledger(store.sql)).get('U');
      expect(row).toMatchObject({ reason, lane, live: false });
      expect(row?.dueIn).toBeCloseTo((hours || 7 * 24) - 1 / 3, 1);
    },
  );

  test.each([
    ['the delta has left out a move of it', { missed_moves: 1 }],
    ['it counts as live for its deferrals', { live: true, live_left: 1 }],
  ])(
    'by a manifest, and was requested since its snapshot, keeps its schedule if %s',
    async (_where, held) => {
      await standing(store, line('U'), line('L'));
      await baseline(store.url, [line('L')], { token: { snapshotId: 'm2' } });
      await answerAsked(store.sql, found('U', { 9: 90 }));
      await store.sql`update catalog_internal.due set ${store.sql(held)} where sku = 'U'`;
      await baseline(store.url, [line('L'), line('U')], { token: { snapshotId: 'm3', seenClaim: '0' } });
      const row = (await ledger(store.sql)).get('U');
      expect(row).toMatchObject({ reason: 'unlisted', lane: 2 });
      expect(row?.dueIn).toBeCloseTo(REFRESH.liveMs / HOUR, 1);
    },
  );
});
