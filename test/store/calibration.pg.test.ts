import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { drawRandomRefreshes, learnBeliefs } from '../../src/store/trust/beliefs.ts';
import {
  BINS,
  type CalibrationBin,
  CalibrationCounts,
  readCalibration,
  pruneCalibration,
  storeCalibration,
} from '../../src/store/trust/calibration.ts';
import { line, standing } from './manifest.ts';
import { snapshotPriced } from './priced.ts';
import { allDue, callInputs, failing, found, LEASE_MS, mark, REFRESH, useStore } from './support.ts';

const store = useStore();

const counted = (more: Partial<CalibrationBin> = {}): CalibrationBin => ({
  cohort: 'live',
  bin: 10,
  looks: 100,
  right: 96,
  claimed: 97,
  minutes: 500,
  missed: 0,
  leverage: 0,
  judged: 0,
  late: 0,
  ...more,
});
const beliefs = async () =>
  (await store.sql`select * from catalog_internal.beliefs`)[0] as Record<string, number>;
const drawn = async () =>
  (await store.sql<{ sku: string }[]>`select sku from catalog_internal.random_looks order by sku`).map(
    ({ sku }) => sku,
  );
const hours = () => store.sql`select * from catalog_internal.calibration_hours`;

/** Requests SKUs and applies the results, as a daemon does that writes its counts with each answer. */
async function ask(...results: readonly SkuResult[]): Promise<void> {
  const named = results.map(({ sku }) => sku);
  const claim = await claimDue(store.sql, { named, quotas: allDue(10) }, LEASE_MS);
  if (claim === null) throw new Error('nothing claimed');
  const calibration = new CalibrationCounts({ monotonic: () => 0 }, 0);
  await applyAnswer(store.sql, claim, results, REFRESH, { observers: { ...NO_OBSERVERS, calibration } });
}

describe('calibration', () => {
  test('sums by hour what every process counts', async () => {
    const { sql } = store;
    await Promise.all([
      storeCalibration(sql, [counted(), counted({ bin: 3, right: 40, claimed: 35 })]),
      storeCalibration(sql, [counted()]),
    ]);
    await storeCalibration(sql, []);
    expect(
      await sql`select cohort, tenth, looks, right_share, claimed_share from catalog.calibration order by tenth`,
    ).toEqual([
      {
        cohort: 'live',
        tenth: 0.3,
        looks: '100',
        right_share: 0.4,
        claimed_share: 0.35,
      },
      {
        cohort: 'live',
        tenth: 0.95,
        looks: '200',
        right_share: 0.96,
        claimed_share: 0.97,
      },
    ]);
  });

  test('has as the error of a cohort the mean distance over the bins', async () => {
    const { sql } = store;
    await storeCalibration(sql, [
      counted({ looks: 300, right: 294, claimed: 297 }),
      counted({ bin: 3, right: 40, claimed: 35 }),
    ]);
    await storeCalibration(sql, [counted({ cohort: 'snapshot', right: 100, claimed: 99.5 })]);
    const [live, snapshot] = await readCalibration(sql);
    expect(live).toEqual({
      cohort: 'live',
      looks: 400,
      rightShare: expect.closeTo(334 / 400, 6),
      claimedShare: expect.closeTo(332 / 400, 6),
      error: expect.closeTo((300 * 0.01 + 100 * 0.05) / 400, 6),
    });
    expect(snapshot).toMatchObject({ cohort: 'snapshot', looks: 100, error: expect.closeTo(0.005, 6) });
  });

  test('has a name for each bin', async () => {
    await storeCalibration(
      store.sql,
      BINS.map((_, bin) => counted({ bin })),
    );
    const rows = await store.sql<{ tenth: number }[]>`select tenth from catalog.calibration order by tenth`;
    expect(rows.map(({ tenth }) => tenth)).toEqual([...BINS]);
    // As a seller writes them in SQL.
    for (const bin of BINS)
      expect(await store.sql.unsafe(`select from catalog.calibration where tenth = ${bin}`)).toHaveLength(1);
    expect(await store.sql.unsafe('select from catalog.calibration where tenth >= 0.95')).toHaveLength(2);
  });

  test('covers the last seven days, even if the clock was wrong; older rows are pruned', async () => {
    const { sql } = store;
    await storeCalibration(sql, [counted()]);
    await sql`
      insert into catalog_internal.calibration_hours
      select hour + make_interval(hours => at), cohort, bin, 1000, 0, 1000, 0, 0 from catalog_internal.calibration_hours, unnest('{-170, -200, 3, 400}'::int[]) at`;
    expect(await readCalibration(sql)).toMatchObject([{ looks: 100 }]);
    await pruneCalibration(sql);
    expect(await hours()).toHaveLength(1);
  });
});

describe('each refresh', () => {
  test('tests what was believed of its SKU and of its sizes', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('L', { priceSource: 'live' }));
    await mark(sql, ['A'], 'sweep');
    await ask(found('A', { 1: 100, 2: 200 }), found('L', { 1: 100, 2: 200, 3: 300, 4: 400 }));
    await sql`delete from catalog_internal.calibration_hours`;
    await sql`update catalog.skus set asked_at = asked_at - interval '30 minutes', priced_at = priced_at - interval '30 minutes'`;
    await mark(sql, ['L'], 'live');
    await mark(sql, ['A'], 'sweep');
    const [said] = await sql`select p_right, size_p_right from catalog.sku_trust where sku = 'L'`;
    await ask(found('A', { 1: 100, 2: 200 }), found('L', { 1: 100, 2: 200, 3: 300, 4: 444 }));
    const rows =
      await sql`select cohort, looks::int as looks, right_share, claimed_share from catalog.calibration order by cohort`;
    expect(rows).toEqual([
      {
        cohort: 'live',
        looks: 1,
        right_share: 0,
        claimed_share: expect.closeTo(said?.['p_right'] as number, 3),
      },
      {
        cohort: 'live sizes',
        looks: 4,
        right_share: 0.75,
        claimed_share: expect.closeTo(said?.['size_p_right'] as number, 3),
      },
      { cohort: 'snapshot', looks: 1, right_share: 1, claimed_share: expect.closeTo(0.98, 3) },
      { cohort: 'snapshot sizes', looks: 2, right_share: 1, claimed_share: expect.closeTo(0.98, 3) },
    ]);
  });

  test('of a SKU that the delta reported tests the report', async () => {
    const { sql } = store;
    await standing(store, line('A'));
    await mark(sql, ['A'], 'sweep');
    await ask(found('A', { 1: 100 }));
    await sql`delete from catalog_internal.calibration_hours`;
    await mark(sql, ['A'], 'changed');
    await ask(found('A', { 1: 101 }));
    const rows =
      await sql`select cohort, looks::int as looks, right_share, claimed_share from catalog.calibration order by cohort`;
    expect(rows[0]).toEqual({
      cohort: 'reported',
      looks: 1,
      right_share: 0,
      claimed_share: expect.closeTo(0.1, 3),
    });
  });

  test('that cannot be counted is applied all the same, and counted with the next one', async () => {
    const { sql } = store;
    await standing(store, line('A'));
    await mark(sql, ['A'], 'sweep');
    const calibration = new CalibrationCounts({ monotonic: () => 0 }, 0);
    const refresh = async (price: number) => {
      await mark(sql, ['A'], 'sweep');
      const claim = await claimDue(sql, { quotas: allDue(1) }, LEASE_MS);
      if (claim === null) throw new Error('nothing claimed');
      return await applyAnswer(sql, claim, [found('A', { 1: price })], REFRESH, {
        observers: { ...NO_OBSERVERS, calibration },
      });
    };
    await refresh(100);
    await sql`delete from catalog_internal.calibration_hours`;
    {
      await using _ = await failing(sql, 'insert on catalog_internal.calibration_hours');
      expect(await refresh(101)).toMatchObject({ accepted: 1, priceChanges: 1 });
    }
    await refresh(101);
    const rows = await sql`select looks::int as looks from catalog.calibration where cohort = 'snapshot'`;
    expect([...rows]).toEqual([{ looks: 2 }]);
  });

  test('without a result tests nothing', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('B'));
    await mark(sql, ['A', 'B'], 'sweep');
    await ask(found('A', { 1: 100 }), found('B', { 1: 100 }));
    await sql`delete from catalog_internal.calibration_hours`;
    await mark(sql, ['A', 'B'], 'sweep');
    await ask({ sku: 'A', kind: 'deferred', waitMs: 1000 }, { sku: 'B', kind: 'error', waitMs: 1000 });
    expect(await hours()).toHaveLength(0);
  });
});

describe('live SKUs drawn at random', () => {
  const live = async (count: number) => {
    const skus = Array.from({ length: count }, (_, i) => `L${String(i).padStart(4, '0')}`);
    await store.sql`
      insert into catalog.skus (sku, price_source, in_manifest, state, asked_at, priced_at, first_priced_at)
      select s, 'live', true, 'priced', now() - interval '1 hour', now() - interval '1 hour', now() from unnest(${skus}::text[]) s`;
    await store.sql`select catalog_internal.mark_due(${skus}::text[], 'live', true)`;
    return skus;
  };

  test('are the given share of the priced SKUs that wait for nothing, the same ones for the same seed', async () => {
    const { sql } = store;
    await live(2000);
    await sql`update catalog.skus set state = 'not_found' where sku < 'L0100'`;
    await sql`update catalog_internal.due set held_until = now() + interval '1 hour' where sku between 'L0100' and 'L0199'`;
    await drawRandomRefreshes(sql, { part: 0.25, minutes: 10, seed: 7 });
    const first = await drawn();
    expect(first.length).toBeGreaterThan(360);
    expect(first.length).toBeLessThan(540);
    expect(first.every((sku) => sku >= 'L0200')).toBe(true);
    const [{ spread }] = await sql<[{ spread: number }]>`
      select (extract(epoch from max(look_at) - min(look_at)) / 60)::float8 as spread from catalog_internal.random_looks`;
    expect(spread).toBeGreaterThan(8);
    expect(spread).toBeLessThanOrEqual(10);
    await sql`delete from catalog_internal.random_looks`;
    await drawRandomRefreshes(sql, { part: 0.25, minutes: 10, seed: 7 });
    expect(await drawn()).toEqual(first);
    await sql`delete from catalog_internal.random_looks`;
    await drawRandomRefreshes(sql, { part: 0.25, minutes: 10, seed: 8 });
    expect(await drawn()).not.toEqual(first);
  });

  test('are forgotten an hour after their time, or if a wrong clock has dated them', async () => {
    const { sql } = store;
    await sql`
      insert into catalog_internal.random_looks values ('old', now() - interval '61 minutes'), ('present', now() - interval '50 minutes'),
        ('ahead', now() + interval '8 days')`;
    await drawRandomRefreshes(sql, { part: 1, minutes: 10, seed: 7 });
    expect(await drawn()).toEqual(['present']);
  });

  test('are candidates of the next call, due or not, are counted separately, and are then no longer drawn', async () => {
    const { sql } = store;
    const [first = '', second = ''] = await live(3);
    await sql`update catalog_internal.due set due_at = now() + interval '5 hours'`;
    await sql`update catalog_internal.live_plan set refresh_threshold = 1, max_interval_minutes = 600`;
    await sql`
      insert into catalog_internal.random_looks values (${first}, now() - interval '1 minute'), (${second}, now() + interval '5 minutes')`;
    const { candidates } = await callInputs(sql);
    expect(candidates).toMatchObject([{ sku: first, random: true }]);
    await ask(found(first, { 1: 100 }), found(second, { 1: 100 }));
    expect(await drawn()).toEqual([second]);
    const rows =
      await sql`select cohort, looks::int as looks from catalog.calibration where cohort not like '% sizes' order by cohort`;
    expect(rows).toEqual([
      { cohort: 'live', looks: 2 },
      { cohort: 'random', looks: 1 },
    ]);
  });
});

describe('what the mirror believes', () => {
  test('stays at its initial values while nothing was counted', async () => {
    const before = await beliefs();
    await learnBeliefs(store.sql);
    const after = await beliefs();
    for (const [name, value] of Object.entries(before))
      if (typeof value === 'number') expect([name, after[name]]).toEqual([name, expect.closeTo(value, 5)]);
  });

  test('approaches what refreshes find, by what each of them tests', async () => {
    const { sql } = store;
    await snapshotPriced(sql, 'S', 1000);
    await storeCalibration(sql, [
      counted({ cohort: 'reported', bin: 1, looks: 10_000, right: 3000, claimed: 1000, minutes: 1e6 }),
      counted({
        cohort: 'snapshot',
        looks: 20_000,
        right: 19_600,
        claimed: 19_900,
        minutes: 2e6,
        missed: 300,
      }),
      counted({ cohort: 'snapshot sizes', looks: 200_000, right: 199_000, claimed: 0, minutes: 0 }),
      counted({ cohort: 'reported sizes', looks: 100_000, right: 86_000, claimed: 0, minutes: 0 }),
    ]);
    await sql`update catalog_internal.calibration_hours set hour = now() - interval '1000 minutes'`;
    await sql`insert into catalog_internal.live_rates values ('L', 1, 100, 1000, 250)`;
    await learnBeliefs(sql);
    const { live_moved_part: live, snapshot_moved_part: snapshot, ...told } = await beliefs();
    expect(live).toBeCloseTo(0.25, 1);
    // 15,000 of the sizes moved, in 7,400 refreshes that found a move, of ten sizes each.
    expect(snapshot).toBeCloseTo(15_000 / 74_000, 2);
    expect(told['reported_moves']).toBeCloseTo(0.7, 2);
    expect(told['waiting_moves']).toBeCloseTo(104 / 20_200, 6);
    expect(told['missed_rate']).toBeCloseTo(300 / 3e6, 6);
    // 7,400 moves of 1,000 SKUs in 1,000 minutes.
    expect(told['move_rate']).toBeCloseTo(0.0074, 3);
  });

  test('about unknown SKUs follows what refreshes find, and each refresh counts once', async () => {
    const { sql } = store;
    const minutes = async () => (await beliefs())['live_prior_minutes'] as number;
    const wrong = counted({ right: 400, claimed: 700, looks: 1000, leverage: 200 });
    await storeCalibration(sql, [wrong, counted({ cohort: 'snapshot', right: 0, claimed: 90 })]);
    await learnBeliefs(sql);
    const after = await minutes();
    expect(after).toBeGreaterThanOrEqual(10);
    expect(after).toBeLessThan(20);
    await learnBeliefs(sql);
    expect(await minutes()).toBe(after);
    await storeCalibration(sql, [counted({ right: 990, claimed: 700, looks: 1000, leverage: 200 })]);
    await learnBeliefs(sql);
    expect(await minutes()).toBeGreaterThan(after);
  });

  test('stays in bounds whatever was counted, and ignores counts from the future', async () => {
    const { sql } = store;
    await storeCalibration(sql, [
      counted({ cohort: 'snapshot', looks: 5, right: 0, minutes: 0, missed: 5 }),
      counted({ cohort: 'snapshot sizes', looks: 3, right: 0 }),
    ]);
    await storeCalibration(sql, [counted({ cohort: 'reported', looks: 1e6, right: 1e6 })]);
    await sql`update catalog_internal.calibration_hours set hour = now() + interval '3 hours' where cohort = 'reported'`;
    await learnBeliefs(sql);
    const held = await beliefs();
    expect(held['reported_moves']).toBeCloseTo(0.9, 6);
    for (const name of ['live_moved_part', 'snapshot_moved_part', 'reported_moves', 'waiting_moves']) {
      expect(held[name]).toBeGreaterThanOrEqual(0);
      expect(held[name]).toBeLessThanOrEqual(1);
    }
  });
});
