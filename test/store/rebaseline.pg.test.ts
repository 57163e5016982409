import { describe, expect, test } from 'vitest';
import { BaselineSuperseded } from '../../src/store/catalog/baseline-merge.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { noteCatalogCheck, noteSnapshotSeen, readSyncState } from '../../src/store/catalog/sync-state.ts';
import { noteBrokenChain } from '../../src/store/catalog/tokens.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { baseline, GENERATED_AT, line, marks, skuRow, standing } from './manifest.ts';
import {
  found,
  HOUR,
  ledger,
  mark,
  answerAsked,
  movesOf,
  pricesOf,
  REFRESH,
  removeByDelta,
  stateOf,
  useStore,
} from './support.ts';

const store = useStore();
const FILL = { added: 0, changed: 0, crossed: 0, absent: 0, marked: 0, skipped: 0 };

describe('a SKU that was live for a while and is back', () => {
  const there = () =>
    baseline(store.url, [line('A', { priceSource: 'live' })], { token: { snapshotId: 'm2' } });
  const back = (hash: string) => baseline(store.url, [line('A', { hash })], { token: { snapshotId: 'm3' } });
  const hash = async () => (await skuRow(store.sql, 'A'))?.hash ?? null;

  test('with its old hash, and no move seen meanwhile, is refreshed by the sweep, after what moved', async () => {
    await standing(store, line('A'));
    const before = await hash();
    await there();
    expect(await hash()).toBeNull();
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await back(before ?? '');
    expect(await marks(store.sql)).toEqual({ A: 'sweep' });
    expect((await ledger(store.sql)).get('A')).toMatchObject({ live: false });
  });

  test.each([
    ['another hash', 'h-new', async () => {}],
    ['a move seen meanwhile', null, () => answerAsked(store.sql, found('A', { 9: 91 }))],
    ['a report before it crossed', null, () => store.sql`update catalog.skus set hash_before_live = null`],
  ] as const)('with %s, is marked as changed', async (_, other, meanwhile) => {
    await standing(store, line('A'));
    const before = await hash();
    await there();
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await meanwhile();
    await back(other ?? before ?? '');
    expect(await marks(store.sql)).toEqual({ A: 'changed' });
  });
});

describe('a re-baseline', () => {
  test('marks what changed, crossed, is new or absent, each with its reason, and nothing else', async () => {
    await standing(
      store,
      line('same'),
      line('hash'),
      line('sizes'),
      line('crosses'),
      line('gone'),
      line('live', { priceSource: 'live' }),
    );
    const { applied } = await baseline(store.url, [
      line('same'),
      line('hash', { hash: 'h2' }),
      line('sizes', { sizes: 4 }),
      line('crosses', { priceSource: 'live' }),
      line('live', { priceSource: 'live' }),
      line('fresh'),
    ]);
    expect(applied).toEqual({ added: 1, changed: 3, crossed: 1, absent: 1, marked: 4, skipped: 0 });
    expect(await marks(store.sql)).toEqual({
      hash: 'changed',
      crosses: 'changed',
      gone: 'absent',
      fresh: 'new',
    });
    expect(await skuRow(store.sql, 'hash')).toMatchObject({ hash: 'h2' });
    expect(await skuRow(store.sql, 'sizes')).toMatchObject({ sizes: 4 });
    expect(await skuRow(store.sql, 'crosses')).toMatchObject({ source: 'live', hash: null });
    expect((await ledger(store.sql)).get('crosses')).toMatchObject({ live: true });
  });

  test('does not take absence for deletion: the SKU keeps state and prices, and is requested once', async () => {
    await standing(store, line('A'), line('gone'));
    await baseline(store.url, [line('A')]);
    expect(await skuRow(store.sql, 'gone')).toMatchObject({ listed: false, hash: null });
    expect(await stateOf(store.sql, 'gone')).toMatchObject({ state: 'priced' });
    expect(await pricesOf(store.sql, 'gone')).toEqual({ 9: 90 });
    expect(await movesOf(store.sql, 'gone')).toEqual([]);
    await answerAsked(store.sql, found('gone', { 9: 90 }));
    await baseline(store.url, [line('A')], { token: { snapshotId: 'm2' } });
    expect(await marks(store.sql)).toEqual({});
  });

  test('without changes writes no SKU and no mark', async () => {
    const { sql } = store;
    const lines = [
      line('A'),
      line('L', { priceSource: 'live' }),
      line('odd', { hash: null, sizes: null, updatedAt: null }),
    ];
    await standing(store, ...lines);
    const rows = () => sql`
      select sku, s.ctid::text, s.xmin::text, d.ctid::text as place, d.xmin::text as mark
      from catalog.skus s join catalog_internal.due d using (sku) order by sku`;
    const before = await rows();
    expect((await baseline(store.url, lines, { token: { snapshotId: 'm2' } })).applied).toEqual(FILL);
    expect(await rows()).toEqual(before);
    expect(await readSyncState(sql)).toMatchObject({ snapshotId: 'm2' });
  });

  test('takes a SKU that has two lines once, and prices it, because either may be right', async () => {
    await standing(store, line('A'), line('B'));
    const { staged, applied } = await baseline(store.url, [
      line('A'),
      line('B'),
      line('A'),
      line('N'),
      line('N', { hash: 'h9' }),
    ]);
    expect(staged).toEqual({ skus: 3, duplicates: 2, listedBefore: 2, live: 0 });
    expect(applied).toMatchObject({ added: 1, marked: 2 });
    expect(await marks(store.sql)).toEqual({ A: 'changed', N: 'new' });
  });

  test('takes a SKU that has a live line and another as live, whichever comes first', async () => {
    const [live, other] = [(sku: string) => line(sku, { priceSource: 'live' }), (sku: string) => line(sku)];
    await baseline(store.url, [live('A'), other('A'), other('B'), live('B')]);
    for (const sku of ['A', 'B']) expect(await skuRow(store.sql, sku)).toMatchObject({ source: 'live' });
  });

  test('requests a removed SKU that is listed again, even if it was requested since', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await removeByDelta(sql, 'A');
    await answerAsked(sql, { sku: 'A', kind: 'not_found' });
    const [{ claim }] = await sql<
      [{ claim: string }]
    >`select (last_value - 1)::text as claim from catalog_internal.claim_numbers`;
    const { applied } = await baseline(store.url, [line('A'), line('B')], {
      token: { snapshotId: 'm2', seenClaim: claim },
    });
    expect(applied).toMatchObject({ marked: 1, skipped: 0 });
    await answerAsked(sql, { sku: 'A', kind: 'not_found' });
    // The manifest lists it and it had prices, so it is due again soon, rather than never.
    expect((await ledger(sql)).get('A')?.dueIn).toBeCloseTo(REFRESH.lostMs / HOUR, 1);
  });

  test('leaves the SKU of a rejected line as it was, and requests it, known or not', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('bad'));
    const known = () => sql`select * from catalog.skus where sku in ('A', 'bad') order by sku`;
    const before = [...(await known())];
    const { applied } = await baseline(store.url, [line('A')], { rejected: ['bad', 'unheard', 'bad'] });
    expect([...(await known())]).toEqual(before);
    expect(applied).toMatchObject({ added: 1, marked: 2, absent: 0 });
    expect(await marks(sql)).toEqual({ bad: 'changed', unheard: 'new' });
    // Whether deltas report its moves is unknown, so it is requested as often as an unlisted SKU.
    await answerAsked(sql, found('unheard', { 9: 90 }));
    expect((await ledger(sql)).get('unheard')?.dueIn).toBeCloseTo(REFRESH.liveMs / HOUR, 1);
    expect(
      await sql`select target_age = interval '1 second' * live_interval as short from catalog.sku_trust, catalog_internal.settings where sku = 'unheard'`,
    ).toEqual([{ short: true }]);
    await baseline(store.url, [line('A'), line('bad'), line('unheard')], { token: { snapshotId: 'm2' } });
    expect(await skuRow(sql, 'unheard')).toMatchObject({ listed: true, hash: 'h1' });
  });

  test('treats the SKU of an unreadable line as unlisted until a line can be read', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('bad'));
    const judged = async () =>
      (
        await sql`select catalog.explain('bad') -> 'belief' ->> 'cohort' as as, sku from catalog.skus where sku = 'bad'`
      )[0];
    expect(await judged()).toMatchObject({ as: 'snapshot' });
    await baseline(store.url, [line('A')], { rejected: ['bad'] });
    await answerAsked(sql, found('bad', { 9: 91 }));
    expect((await ledger(sql)).get('bad')).toMatchObject({ reason: 'missed' });
    expect((await ledger(sql)).get('bad')?.dueIn).toBeCloseTo(REFRESH.liveMs / HOUR, 1);
    expect(await judged()).toMatchObject({ as: 'unlisted' });
    await baseline(store.url, [line('A'), line('bad')], { token: { snapshotId: 'm2' } });
    expect(await judged()).toMatchObject({ as: 'snapshot' });
    // One unreadable line of two is enough.
    await baseline(store.url, [line('A')], { rejected: ['bad'], token: { snapshotId: 'm3' } });
    await baseline(store.url, [line('A'), line('bad')], { rejected: ['bad'], token: { snapshotId: 'm4' } });
    expect(await judged()).toMatchObject({ as: 'reported' });
  });

  test('lists an unlisted SKU again, and prices it', async () => {
    await standing(store, line('A'), line('B'));
    await baseline(store.url, [line('A')]);
    await answerAsked(store.sql, found('B', { 9: 90 }));
    await store.sql`update catalog.skus set asked_at = asked_at - interval '9 hours'`;
    await baseline(store.url, [line('A'), line('B')], { token: { snapshotId: 'm2' } });
    expect(await skuRow(store.sql, 'B')).toMatchObject({ listed: true, hash: 'h1' });
    expect(await marks(store.sql)).toEqual({ B: 'changed' });
  });

  test('never compares the null hash of live lines', async () => {
    await standing(store, line('L', { priceSource: 'live' }));
    await store.sql`update catalog.skus set hash = 'left over'`;
    await baseline(store.url, [line('L', { priceSource: 'live' })]);
    expect(await skuRow(store.sql, 'L')).toMatchObject({ hash: null });
    expect(await marks(store.sql)).toEqual({});
  });

  test('skips what was claimed after its snapshot was named, whatever any clock says', async () => {
    const { sql } = store;
    await standing(store, line('since'), line('before'), line('crossed'));
    // Long after the partner's time of the snapshot: that is when building began, or an hour off.
    await mark(sql, ['before']);
    await answerAsked(sql, found('before', { 9: 100 }));
    const { seenClaim } = await noteSnapshotSeen(sql, { snapshotId: 'm1', generatedAt: GENERATED_AT });
    await mark(sql, ['since', 'crossed']);
    await answerAsked(sql, found('since', { 9: 100 }), found('crossed', { 9: 100 }));
    // The clock of Postgres was ahead when 'before' was requested, and an hour behind when the others were.
    await sql`
      update catalog.skus set asked_at = now() + case sku when 'before' then interval '1 hour' else interval '-1 hour' end`;
    const lines = ['since', 'before'].map((sku) => line(sku, { hash: 'h2' }));
    const { applied } = await baseline(store.url, [...lines, line('crossed', { priceSource: 'live' })], {
      token: { seenClaim },
    });
    expect(applied).toMatchObject({ changed: 3, skipped: 1, marked: 2 });
    expect(await marks(store.sql)).toEqual({ before: 'changed', crossed: 'changed' });
    expect(await skuRow(store.sql, 'since')).toMatchObject({ hash: 'h2' });
  });

  test.each([
    [
      'asks about what a cache of the partner may have had from before its snapshot was there',
      1,
      16,
      'changed',
    ],
    ['spares what no cache can have had from before', 1, 18, undefined],
    ['spares all that was claimed since, where caches are known to have nothing', 0.05, 1, undefined],
  ])('%s', async (_, share, minutes, reason) => {
    const { sql } = store;
    await standing(store, line('A'));
    await sql`update catalog_internal.beliefs set again_share = ${share}`;
    const seen = await noteSnapshotSeen(sql, { snapshotId: 'm1', generatedAt: GENERATED_AT });
    await mark(sql, ['A'], 'sweep');
    await answerAsked(sql, found('A', { 9: 90 }));
    await sql`update catalog.skus set asked_at = ${seen.seenAt}::timestamptz + make_interval(mins => ${minutes})`;
    const { applied } = await baseline(store.url, [line('A', { hash: 'h2' })], { token: seen });
    expect(applied).toMatchObject({ changed: 1, skipped: reason === undefined ? 1 : 0 });
    expect((await marks(sql))['A']).toBe(reason);
  });

  test('knows since when its snapshot has been named, even if it is rebuilt under its name', async () => {
    const at = async (snapshotId: string, generatedAt: Date | null) => {
      // Answers come at different times.
      await store.sql`select pg_sleep(0.002)`;
      return (await noteSnapshotSeen(store.sql, { snapshotId, generatedAt })).seenAt.getTime();
    };
    const first = await at('s1', GENERATED_AT);
    expect(await at('s1', GENERATED_AT)).toBe(first);
    const rebuilt = await at('s1', new Date());
    expect(rebuilt).toBeGreaterThan(first);
    const another = await at('s2', null);
    expect(another).toBeGreaterThan(rebuilt);
    expect(await at('s2', null)).toBe(another);
    expect(await at('s1', GENERATED_AT)).toBeGreaterThan(another);
  });

  test('knows its snapshot from the first answer that named it, by its build time', async () => {
    const seen = async (snapshotId: string, generatedAt: Date | null) =>
      (await noteSnapshotSeen(store.sql, { snapshotId, generatedAt })).seenClaim;
    const next = async () => await store.sql`select nextval('catalog_internal.claim_numbers')`;
    const first = await seen('s1', GENERATED_AT);
    await next();
    await noteCatalogCheck(store.sql, { snapshotId: 's1', generatedAt: GENERATED_AT, livePricedSkuCount: 1 });
    expect(await seen('s1', GENERATED_AT)).toBe(first);
    const rebuilt = await seen('s1', new Date());
    expect(Number(rebuilt)).toBe(Number(first) + 1);
    await next();
    const another = await seen('s2', null);
    expect(Number(another)).toBe(Number(first) + 2);
    await next();
    expect(await seen('s2', null)).toBe(another);
  });

  describe('whose token replaces that of deltas that broke off meanwhile', () => {
    const report = (sql: Sql, since: string, toSnapshot: string, changed: readonly string[]) =>
      applyDelta(sql, { since, toSnapshot, changed, removed: [], nowLive: [] });

    test('takes its lines for what they reported, and requests it, because no delta reports it again', async () => {
      const { sql } = store;
      await standing(store, line('A'), line('B'));
      await baseline(store.url, [line('A', { priceSource: 'live' }), line('B')], {
        meanwhile: async () => {
          await report(sql, 'm0', 's2', ['A', 'B']);
          await answerAsked(sql, found('A', { 9: 91 }), found('B', { 9: 91 }));
          await noteBrokenChain(sql, 's2');
        },
      });
      expect(await skuRow(sql, 'A')).toMatchObject({ source: 'live', hash: null });
      expect(await skuRow(sql, 'B')).toMatchObject({ source: 'snapshot', hash: 'h1' });
      expect(await marks(sql)).toEqual({ A: 'changed', B: 'changed' });
      expect((await readSyncState(sql)).snapshotId).toBe('m1');
    });

    test('is not applied if what they reported came after it was compared', async () => {
      const { sql } = store;
      await standing(store, line('A'));
      const late = baseline(store.url, [line('A')], {
        beforeMerge: async () => {
          await report(sql, 'm0', 's2', ['A']);
          await noteBrokenChain(sql, 's2');
        },
      });
      await expect(late).rejects.toThrow(BaselineSuperseded);
      expect((await readSyncState(sql)).snapshotId).toBe('s2');
    });

    test('leaves what they reported if they go on', async () => {
      const { sql } = store;
      await standing(store, line('A'));
      await baseline(store.url, [line('A', { priceSource: 'live' })], {
        meanwhile: () => report(sql, 'm0', 's2', ['A']),
      });
      expect(await skuRow(sql, 'A')).toMatchObject({ source: 'snapshot', hash: null });
      expect((await readSyncState(sql)).snapshotId).toBe('s2');
    });
  });

  test('determines what is live, whatever deferrals had taught', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('B', { priceSource: 'live' }));
    await answerAsked(sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
    await baseline(store.url, [line('A'), line('B')], { token: { snapshotId: 'm2' } });
    const rows = await ledger(sql);
    // A did not cross: its deferral still counts. B crossed.
    expect({ A: rows.get('A')?.live, B: rows.get('B')?.live }).toEqual({ A: true, B: false });
  });
});
