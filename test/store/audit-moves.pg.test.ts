import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { acceptDoubted } from '../../src/store/answer/seller-doubts.ts';
import { NO_LEARNING } from '../../src/store/answer/types.ts';
import { noteBrokenChain } from '../../src/store/catalog/tokens.ts';
import { scheduleLive, unscheduledLive, unscheduleSnapshot } from '../../src/store/live/order.ts';
import { rateOf } from '../../src/sync/live/policy.ts';
import { NOTHING, settledIn, type World } from './audit-world.ts';
import { baseline, line } from './manifest.ts';
import { claimAll, found, HOUR, mark, REFRESH, useStore } from './support.ts';

const store = useStore();
const settled = settledIn(store);

describe('a move that a refresh finds', () => {
  test('before the delta reports it counts as seen first, with its lead, and its report as nothing else', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    await world.refresh('sweep');
    expect(await world.counts()).toEqual({ ...NOTHING, waiting: 1 });
    await world.pass(2 * HOUR);
    world.build();
    await world.catchUp();
    const { seconds, ...rest } = await world.counts();
    expect(rest).toEqual({ confirmed: 0, unchanged: 0, seenFirst: 1, never: 0, waiting: 0 });
    expect(seconds).toBeGreaterThan(7800);
    expect(seconds).toBeLessThan(7900);
    await world.pass();
    await world.refresh('owed');
    expect(await world.counts()).toMatchObject(rest);
  });

  test('and that moves once more before its report counts as seen first and as confirmed', async () => {
    const world = await settled('A');
    world.move('A');
    await world.refresh('sweep');
    world.move('A');
    await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toMatchObject({ seenFirst: 1, confirmed: 1, unchanged: 0 });
  });

  test('counts as seen first once, even if a second report comes before the refresh', async () => {
    const world = await settled('A');
    world.move('A');
    await world.refresh('sweep');
    for (let i = 0; i < 2; i += 1) {
      await world.snapshot();
      world.move('A');
    }
    await world.refresh('owed');
    expect(await world.counts()).toMatchObject({ seenFirst: 1, confirmed: 1, unchanged: 0, waiting: 0 });
  });

  test('needs no report if the price returns to the snapshot value', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.build();
    world.move('A');
    await world.catchUp();
    await world.pass();
    await world.refresh('owed');
    world.goBack('A');
    await world.refresh('sweep');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1, waiting: 1 });
    for (let i = 0; i < 3; i += 1) await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1 });
  });

  test('from a price that only the refresh for a report saw, and no snapshot, counts as left out', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    await world.snapshot();
    world.move('A');
    await world.refresh('owed');
    world.goBack('A');
    for (let i = 0; i < 2; i += 1) await world.snapshot();
    await world.refresh('sweep');
    for (let i = 0; i < 2; i += 1) await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, confirmed: 1, never: 1 });
    expect(world).toMatchObject({ dropped: 0, swung: 1 });
  });

  test('and that no later snapshot reports is never reported, once a refresh finds it still there', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    world.dropNext.add('A');
    await world.refresh('sweep');
    await world.snapshot();
    await world.refresh('sweep');
    expect(await world.counts(), 'that snapshot may have been under construction').toEqual({
      ...NOTHING,
      waiting: 1,
    });
    await world.snapshot();
    expect(await world.counts()).toEqual({ ...NOTHING, waiting: 1 });
    await world.refresh('owed');
    expect(await world.counts()).toEqual({ ...NOTHING, never: 1 });
    await world.refresh('sweep');
    expect(await world.counts()).toEqual({ ...NOTHING, never: 1 });
  });

  describe('and that is never reported', () => {
    /** A world of 'A' and 'B', both with first prices, in which a move of 'A' was left out. */
    async function missed(): Promise<World> {
      const world = await settled('A', 'B');
      world.move('A');
      world.dropNext.add('A');
      await world.refresh('sweep');
      for (let i = 0; i < 2; i += 1) await world.snapshot();
      await world.refresh('owed');
      expect(await world.counts()).toEqual({ ...NOTHING, never: 1 });
      return world;
    }
    const ledgerOf = async () =>
      await store.sql<{ sku: string; reason: string; lane: string | null; missed: number; cohort: string }[]>`
        select d.sku, d.reason, (catalog_internal.lane_names())[d.lane] as lane,
          (catalog.explain(d.sku) -> 'report' ->> 'missed_moves')::int as missed,
          catalog.explain(d.sku) -> 'belief' ->> 'cohort' as cohort
        from catalog_internal.due d order by sku`;
    const next = {
      liveMs: REFRESH.liveMs,
      snapshotMs: REFRESH.snapshotMs,
      snapshotReason: 'sweep',
    } as const;
    const B = { sku: 'B', reason: 'sweep', lane: 'sweep', missed: 0, cohort: 'snapshot' };

    test('has its SKU refreshed and trusted like one whose moves nobody reports', async () => {
      await missed();
      expect(await ledgerOf()).toEqual([
        { sku: 'A', reason: 'missed', lane: 'live', missed: 1, cohort: 'unlisted' },
        B,
      ]);
      const due = await store.sql<{ soon: boolean }[]>`
        select due_at < now() + make_interval(secs => ${REFRESH.liveMs / 1000}) as soon from catalog_internal.due order by sku`;
      expect(due).toEqual([{ soon: true }, { soon: false }]);
      await store.sql`update catalog.skus set priced_at = now() - interval '1 hour'`;
      const [a, b] = await store.sql<
        { p: number }[]
      >`select p_right as p from catalog.sku_trust order by sku`;
      expect(a?.p).toBeLessThan(0.9 * (b?.p ?? 0));
    });

    test.each([
      ['a refresh that it asks for', async (world: World) => await world.snapshot()],
      [
        'one that has seen it before',
        async (world: World) => {
          await world.refresh('sweep');
          await world.snapshot();
        },
      ],
    ])('is forgotten after a report of the next move, confirmed by %s', async (_by, told) => {
      const world = await missed();
      world.move('A');
      await told(world);
      await world.refresh('owed');
      expect(await ledgerOf()).toMatchObject([{ sku: 'A', missed: 0, cohort: 'snapshot' }, B]);
    });

    test('still counts after an incident, and after a doubt of its price is put aside', async () => {
      await missed();
      const of = async () => await store.sql`select reason, live from catalog_internal.due where sku = 'A'`;
      await store.sql`update catalog_internal.due set live = true, reason = 'live'`;
      expect(await unscheduleSnapshot(store.sql, { after: '', limit: 100, next })).toBe('B');
      expect(await ledgerOf()).toMatchObject([{ reason: 'missed', lane: 'live' }, B]);
      expect(await of()).toEqual([{ reason: 'missed', live: false }]);

      await store.sql`update catalog_internal.due set doubt = 'implausible', reason = 'doubted', due_at = now()`;
      await acceptDoubted(store.sql, null);
      expect(await ledgerOf()).toMatchObject([{ reason: 'missed', lane: 'live' }, B]);
      const due = await store.sql<{ soon: boolean }[]>`
        select due_at < now() + (select make_interval(secs => live_interval) from catalog_internal.settings) as soon
        from catalog_internal.due order by sku`;
      expect(due).toEqual([{ soon: true }, { soon: false }]);
    });

    test('still counts after an incident in which the SKU was refreshed and nothing had moved', async () => {
      const world = await missed();
      const skus = await unscheduledLive(store.sql, {
        after: '',
        limit: 100,
        scheduled: true,
        incident: true,
      });
      await scheduleLive(
        store.sql,
        skus.map((sku) => ({ ...sku, ...rateOf(sku), inMs: 0 })),
      );
      expect((await ledgerOf()).map(({ reason }) => reason)).toEqual(['live', 'live']);
      const claim = await claimAll(store.sql);
      const results = claim.skus.map(({ sku }) => found(sku, { 9: world.prices.get(sku) ?? null }));
      const learning = { ...NO_LEARNING, everythingLive: true };
      await applyAnswer(store.sql, claim, results, REFRESH, { learning });
      expect((await ledgerOf()).map(({ missed }) => missed)).toEqual([1, 0]);
      await unscheduleSnapshot(store.sql, { after: '', limit: 100, next });
      expect(await ledgerOf()).toEqual([
        { sku: 'A', reason: 'missed', lane: 'live', missed: 1, cohort: 'unlisted' },
        B,
      ]);
    });

    test('still counts after a report of nothing, and after moves that only refreshes see', async () => {
      const world = await missed();
      world.noopNext.add('A');
      await world.snapshot();
      await world.refresh('owed');
      // Until the second check of an answer that contained nothing new.
      await world.pass(HOUR);
      await world.refresh('owed');
      world.move('A');
      world.dropNext.add('A');
      await world.refresh('sweep');
      for (let i = 0; i < 2; i += 1) await world.snapshot();
      await world.refresh('owed');
      expect(await ledgerOf()).toMatchObject([{ sku: 'A', missed: 2, lane: 'live' }, B]);
    });
  });

  test("and that went back before a snapshot saw it is nobody's fault", async () => {
    const world = await settled('A', 'B');
    for (const sku of ['A', 'B']) world.move(sku);
    await world.refresh('sweep');
    for (const sku of ['A', 'B']) world.goBack(sku);
    await world.refresh('sweep');
    for (let i = 0; i < 3; i += 1) await world.snapshot();
    await world.refresh('owed');
    expect(await world.counts()).toEqual(NOTHING);
  });

  test('is judged only by snapshots that the delta had to wait for', async () => {
    const world = await settled('A');
    world.move('A');
    for (let i = 0; i < 4; i += 1) world.build();
    world.dropNext.add('A');
    await world.refresh('sweep');
    for (let i = 0; i < 4; i += 1) {
      await world.poll(1);
      await world.pass();
    }
    await world.refresh('sweep');
    expect(await world.counts()).toEqual({ ...NOTHING, waiting: 1 });
  });

  test.each([
    ['live-priced', (world: World) => world.cross('A')],
    ['removed', (world: World) => world.relist('A')],
  ])('leaves the audit if the SKU is reported %s', async (_case, leave) => {
    const world = await settled('A', 'B');
    world.move('A');
    await world.refresh('sweep');
    leave(world);
    await world.snapshot();
    expect(await world.counts()).toEqual(NOTHING);
    await world.refresh('owed');
    for (let i = 0; i < 2; i += 1) await world.snapshot();
    await world.refresh('sweep');
    expect(await world.counts()).toEqual(NOTHING);
  });

  test('leaves the audit with a manifest that replaces the chain, and stays if the token stays', async () => {
    const world = await settled('A', 'B');
    world.move('A');
    await world.refresh('sweep');
    await world.manifest();
    expect(await world.counts()).toMatchObject({ waiting: 1 });
    world.build();
    await world.pass();
    await world.manifest();
    expect(await world.counts()).toEqual(NOTHING);
    const [sync] = await store.sql`
      select caught_up, token_at > now() - interval '1 minute' as moved, built_after is not null as known
      from catalog_internal.sync`;
    expect(sync).toEqual({ caught_up: false, moved: true, known: true });
    for (let i = 0; i < 3; i += 1) {
      await world.snapshot();
      await world.refresh('sweep');
    }
    expect(await world.counts()).toEqual(NOTHING);
  });

  test('is not judged by knowledge of a newer snapshot if a broken chain leads back to an older one', async () => {
    const world = await settled('A');
    const before = world.snapshots.at(-1)?.id ?? '';
    world.build();
    await baseline(store.url, [line('A')], {
      token: { snapshotId: before },
      meanwhile: async () => {
        await world.catchUp();
        await noteBrokenChain(store.sql, world.snapshots.at(-1)?.id ?? '');
      },
    });
    const [sync] = await store.sql`select snapshot_id, caught_up, built_after from catalog_internal.sync`;
    expect(sync).toEqual({ snapshot_id: before, caught_up: false, built_after: null });
  });

  test('needs no report by the delta if the manifest contains it, whatever else the SKU was due for', async () => {
    const world = await settled('A');
    world.move('A');
    await mark(store.sql, ['A'], 'refresh');
    world.build();
    await world.pass();
    await world.manifest();
    await world.pass();
    await world.refresh('owed');
    expect(await world.counts()).toEqual(NOTHING);
    for (let i = 0; i < 3; i += 1) {
      await world.snapshot();
      await world.refresh('sweep');
    }
    expect(await world.counts()).toEqual(NOTHING);
  });
});

test('simultaneous answers and a delta do not deadlock, and leave no report or move unjudged', async () => {
  const skus = Array.from({ length: 120 }, (_, i) => `S${i}`);
  const world = await settled(...skus);
  const deadlocks = async () => {
    const [row] = await store.sql<[{ n: number }]>`
      select pg_stat_get_db_deadlocks(oid)::int as n from pg_database where datname = current_database()`;
    return row.n;
  };
  const before = await deadlocks();
  for (const sku of skus) world.move(sku);
  world.build();
  const looks = [];
  for (let i = 0; i < 8; i += 1) looks.push(await world.ask('sweep', 15));
  await world.pass();
  await Promise.all([...looks.map((refresh) => world.answer(refresh!)), world.poll()]);
  await world.pass();
  await world.catchUp();
  await world.refresh('owed');
  const { confirmed, seenFirst, ...rest } = await world.counts();
  expect(rest).toMatchObject({ unchanged: 0, never: 0, waiting: 0 });
  expect(confirmed).toBe(0);
  expect(seenFirst).toBeLessThanOrEqual(skus.length);
  expect(await deadlocks()).toBe(before);
});
