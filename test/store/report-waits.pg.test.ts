import { beforeEach, describe, expect, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { learnBeliefs } from '../../src/store/trust/beliefs.ts';
import { pruneCalibration } from '../../src/store/trust/calibration.ts';
import { snapshotPriced } from './priced.ts';
import { useStore } from './support.ts';

/* How long moves wait until the delta reports them, and what that says about prices that are not reported. */

const store = useStore();

/** Sets how many minutes ago the token moved, and the delta last had nothing newer. */
async function moved(token: number, checked: number): Promise<void> {
  await store.sql`
    update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now() - interval '9 hours',
      token_at = now() - make_interval(mins => ${token}), delta_checked_at = now() - make_interval(mins => ${checked})`;
}

const delta = async (changed: readonly string[], toSnapshot = 's2', since = 's1') =>
  await applyDelta(store.sql, { since, toSnapshot, changed, removed: [], nowLive: [] });

async function waits() {
  const rows = await store.sql<{ reports: number; each: number }[]>`
    select reports::int, minutes / reports as each from catalog_internal.report_waits order by hour`;
  return rows.map(({ reports, each }) => [reports, Math.round(each * 100) / 100]);
}

async function waiting(): Promise<number> {
  await learnBeliefs(store.sql);
  const [row] = await store.sql<[{ waiting: number }]>`
    select waiting_moves as waiting from catalog_internal.beliefs`;
  return row.waiting;
}

beforeEach(() => snapshotPriced(store.sql, 'S', 200));

describe('the time that moves waited for their report', () => {
  test('is the mean of the times since the token moved and since the last poll', async () => {
    await moved(60, 4);
    await delta(['S1', 'S2', 'S3']);
    expect(await waits()).toEqual([[3, 32]]);
  });

  test('is half the time since the last poll if a delta of the same run has just moved the token', async () => {
    await moved(0, 4);
    await delta(['S1']);
    expect(await waits()).toEqual([[1, 2]]);
  });

  test.each([
    ['nobody had asked for longer than two polls', async () => await moved(60, 30), 's2'],
    ['a clock that was ahead has dated the last poll', async () => await moved(60, -30), 's2'],
    ['the token stays', async () => await moved(60, 4), 's1'],
  ])('is not recorded if %s', async (_, given, to) => {
    await given();
    await delta(['S1', 'S2'], to);
    expect(await waits()).toEqual([]);
  });

  test('is forgotten after seven days, or if the record is dated in the future', async () => {
    await store.sql`
      insert into catalog_internal.report_waits
      values (now() - interval '8 days', 1, 1), (now() - interval '6 days', 2, 4), (now() + interval '2 hours', 3, 9)`;
    await pruneCalibration(store.sql);
    expect(await waits()).toEqual([[2, 2]]);
  });
});

describe('the share of unreported prices that are wrong', () => {
  /** Records, over the last hours, reports that were all moves, and a thousand other refreshes that found nothing. */
  async function found(reported: number, hours: number): Promise<void> {
    await store.sql`
      insert into catalog_internal.calibration_hours (hour, cohort, bin, looks, "right", claimed, minutes, missed)
      values (now() - make_interval(hours => ${hours}), 'reported', 1, ${reported}, 0, 0, 0, 0),
        (now(), 'snapshot', 10, 1000, 1000, 980, 0, 0)`;
  }

  test('includes moves that wait for their report, even if no other refresh finds them', async () => {
    await found(4000, 5);
    expect(await waiting()).toBeCloseTo(4 / 1200, 6);
    await moved(8, 2);
    await delta(['S1', 'S2']);
    // 4,000 moves that waited for five minutes each, among 200 SKUs in 300 minutes.
    expect(await waiting()).toBeCloseTo((4 + 4000 * 5) / (200 + 200 * 300), 3);
  });

  test('spans only the time since the first price in the first hour, as does the move rate', async () => {
    await store.sql`update catalog.skus set first_priced_at = now() - interval '3 minutes'`;
    await found(100, 1);
    await moved(2, 1);
    await delta(['S1', 'S2']);
    expect(await waiting()).toBeCloseTo((4 + 100 * 1.5) / (200 + 200 * 3), 2);
    const [{ rate }] = await store.sql<[{ rate: number }]>`
      select move_rate as rate from catalog_internal.beliefs`;
    expect(rate).toBeCloseTo(101 / (4320 + 200 * 3), 4);
  });

  test('never exceeds 1', async () => {
    await found(1e6, 1);
    await moved(300, 4);
    await delta(['S1']);
    expect(await waiting()).toBe(1);
  });
});
