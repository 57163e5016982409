import { describe, expect, test } from 'vitest';
import { readLivePlan } from '../../src/store/live/live.ts';
import { QUIET_LINE } from '../../src/store/live/product-line-state.ts';
import { readLines, storeLineChanges } from '../../src/store/live/product-lines.ts';
import { planLive } from '../../src/sync/live/plan-live.ts';
import { followHints } from '../../src/sync/reprice/take-hints.ts';
import { mark } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';
import { OTHERS, priced, SKUS, useLines } from './line-calls.ts';

const { store, context, call, line, hazards, dueNow, pass, seen } = useLines();

describe('a line whose SKUs move together', () => {
  test('is suspected after two of them: eight others are due at once, and none of other lines', async () => {
    await call([priced('L00', 200), priced('L01', 200)]);
    expect(await line()).toMatchObject({ phase: 'suspected', step: 2, answers: 0 });
    expect(seen()).toEqual([{ event: 'release.suspected', brand: 'Acme', model: 'One', skus: 8 }]);
    const panel = await hazards();
    expect(panel).toHaveLength(8);
    expect(await dueNow()).toEqual(panel);
    expect(panel).not.toContain('L00');
    expect(await line('Acme', 'Two')).toBeUndefined();
  });

  test('is confirmed by two more: all others are due sooner, and moves with the line teach no rate', async () => {
    const { sql } = store;
    await call([priced('L00', 200), priced('L01', 200)]);
    const [third = '', fourth = ''] = await hazards();
    const others = SKUS.slice(2).filter((sku) => sku !== third && sku !== fourth);
    const rate = () =>
      sql`select alpha, beta, sizes_seen, wholesale_moves from catalog_internal.live_rates where sku = ${third}`;
    const before = [...(await rate())];
    await call([priced(third, 200), priced(fourth, 200)]);
    expect(await line()).toMatchObject({ phase: 'released', hits: 2, misses: 0 });
    expect([...(await rate())]).toEqual(before);
    expect(await hazards()).toEqual(others);
    expect(await dueNow()).toEqual(others);
    const [row] =
      await sql`select suspected::int, confirmed::int, dismissed::int, refreshes::int from catalog_internal.releases`;
    // Eight of the panel, and the twenty others.
    expect(row).toEqual({ suspected: 1, confirmed: 1, dismissed: 0, refreshes: 28 });
    expect(seen().map(({ event }) => event)).toEqual(['release.suspected', 'release.confirmed']);
    const [fifth = '', ...rest] = others;
    await call([priced(fifth, 200)]);
    expect(await hazards()).toEqual(rest);
  });

  test('is confirmed in a backlog, too: this orders the others, but changes no due time', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set due_at = now() - interval '1 hour' where sku like 'L%'`;
    const dueAt = () => sql`select sku, due_at from catalog_internal.due where sku > 'L03' order by sku`;
    const before = [...(await dueAt())];
    await call([priced('L00', 200), priced('L01', 200), priced('L02', 200), priced('L03', 200)]);
    expect(await line()).toMatchObject({ phase: 'released' });
    expect(await hazards()).toEqual(SKUS.slice(4));
    expect([...(await dueAt())]).toEqual(before);
    const [row] = await sql`select early, refreshes::int from catalog_internal.releases`;
    expect(row).toEqual({ early: 0, refreshes: 0 });
  });

  test('is dismissed if the others have not moved, and they wait as before', async () => {
    await call([priced('L00', 200), priced('L01', 200)]);
    const panel = await hazards();
    expect(panel).toHaveLength(8);
    // Requested by somebody meanwhile, so it stays due.
    const marked = panel.slice(7);
    await mark(store.sql, marked, 'refresh');
    await pass(6);
    // A SKU that is worth a refresh once a day waits as long again.
    await store.sql`update catalog_internal.live_plan set refresh_threshold = 1e6`;
    await call(panel.slice(0, 6).map((sku) => priced(sku, 100)));
    expect(await line()).toMatchObject({ phase: 'quiet', since: null });
    expect(await hazards()).toEqual(marked);
    expect(await dueNow()).toEqual(marked);
    const [row] = await store.sql`select threshold, dismissed::int from catalog_internal.releases`;
    expect(row).toEqual({ threshold: 6.5, dismissed: 1 });
  });

  test('is dismissed without cancelling the refresh of a SKU that somebody has hinted at meanwhile', async () => {
    const { sql } = store;
    await call([priced('L00', 200), priced('L01', 200)]);
    const panel = await hazards();
    // The hint alone justifies a refresh. The SKU's own rate does not for hours.
    await sql`update catalog_internal.live_plan set refresh_threshold = 40`;
    await sql`select catalog.hint(${panel[7] ?? ''}, 'orders')`;
    await followHints(context(), await readLivePlan(sql));
    await pass(6);
    await call(panel.slice(0, 6).map((sku) => priced(sku, 100)));
    expect(await line()).toMatchObject({ phase: 'quiet' });
    expect(await hazards()).toEqual([]);
    expect(await dueNow()).toEqual(panel.slice(7));
  });

  test('is left alone if it is small', async () => {
    await call([priced('M0', 200, 'Acme', 'Two'), priced('M1', 200, 'Acme', 'Two')]);
    expect(await line('Acme', 'Two')).toMatchObject({ phase: 'quiet', evidence: 0 });
    expect(await hazards()).toEqual([]);
    expect(seen()).toEqual([]);
  });

  test('lowers the probability of its prices until they are refreshed', async () => {
    const { sql } = store;
    const right = async () => {
      const [row] = await sql<[{ p: number; with: number | null }]>`
        select p_right::float8 as p, (catalog.explain(sku)->'belief'->>'moved_with_line')::float8 as with from catalog.sku_trust where sku = 'L20'`;
      return row;
    };
    const before = await right();
    expect(before.with).toBeNull();
    await call([priced('L00', 200), priced('L01', 200), priced('L02', 200), priced('L03', 200)]);
    const after = await right();
    // 2.4 of 4, and two of two.
    expect(after.with).toBeCloseTo(4.4 / 6, 3);
    expect(after.p).toBeCloseTo(before.p * (1 - 4.4 / 6), 2);
    await call([priced('L20', 100)]);
    expect(await right()).toMatchObject({ with: null });
  });
});

describe('a confirmed line does not move', () => {
  test('SKUs that are claimed, marked, deferred, withdrawn or by now of another line', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set claim = 99, held_until = now() + interval '1 hour' where sku = 'L10'`;
    await mark(sql, ['L11'], 'refresh');
    await sql`update catalog_internal.due set deferrals = 1, held_until = now() + interval '1 hour' where sku = 'L12'`;
    await sql`update catalog.skus set price_source = 'snapshot' where sku = 'L13'`;
    await call([priced('L14', 100, 'Acme', 'Renamed')]);
    await sql`delete from catalog.skus where sku = 'L15'`;
    await sql`update catalog_internal.due set due_at = now() + interval '1 day' where sku = 'L14'`;
    const dueAt = () =>
      sql`select sku, due_at, held_until, reason, generation from catalog_internal.due where sku in ('L10', 'L11', 'L12', 'L13', 'L14') order by sku`;
    const before = [...(await dueAt())];
    expect(before).toHaveLength(5);
    await call([priced('L00', 200), priced('L01', 200), priced('L02', 200), priced('L03', 200)]);
    expect(await hazards()).toEqual(SKUS.filter((sku) => sku > 'L03' && !/L1[0-5]/.test(sku)));
    expect([...(await dueAt())]).toEqual(before);
  });

  test('SKUs whose rows somebody has locked, and does not wait for them', async () => {
    const { sql } = store;
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.due where sku = 'L20' for update`;
      await call([priced('L00', 200), priced('L01', 200), priced('L02', 200), priced('L03', 200)]);
    });
    expect(await hazards()).toEqual(SKUS.filter((sku) => sku > 'L03' && sku !== 'L20'));
  });

  test('SKUs without brand or model, but does move those with names longer than any index allows', async () => {
    const long = 'x'.repeat(5000);
    await call(SKUS.map((sku) => priced(sku, 100, long, 'One')));
    await pass();
    await call(OTHERS.map((sku) => priced(sku, 100, null, ' ')));
    await pass();
    await call([priced('M0', 300, null, ' '), priced('M1', 300, null, ' ')]);
    await call([priced('L00', 300, long, 'One'), priced('L01', 300, long, 'One')]);
    expect(await line(long, 'One')).toMatchObject({ phase: 'suspected' });
    const names =
      await store.sql`select count(*)::int as count from catalog_internal.live_lines where model = ' '`;
    expect(names[0]).toEqual({ count: 0 });
  });
});

describe('calls side by side', () => {
  test('weigh a line again that another call has changed meanwhile', async () => {
    await call([priced('L00', 200)]);
    const { id, state } = (await readLines(store.sql, [String((await line())?.['line'])]))[0]!;
    const other = {
      id,
      brand: 'Acme',
      model: 'One',
      from: state!.step,
      to: { ...state!, step: state!.step + 1, evidence: 3 },
    };
    const stored = await call([priced('L01', 200)], async () => {
      expect(await storeLineChanges(store.sql, [other])).toEqual([id]);
    });
    expect(stored).toEqual([]);
    expect(await line()).toMatchObject({ phase: 'suspected', step: 3 });
    expect(await hazards()).toHaveLength(8);
  });

  test('skip a line that somebody has locked, without waiting', async () => {
    await call([priced('L00', 200)]);
    await store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.live_lines for update`;
      expect(await call([priced('L01', 200)])).toEqual([]);
    });
    expect(await line()).toMatchObject({ phase: 'quiet', step: 1 });
  });

  test('add a new line once if two of them try to', async () => {
    const to = { ...QUIET_LINE, step: 1 };
    const change = { id: '-9223372036854775808', brand: 'B', model: 'M', from: 0, to };
    const both = await Promise.all([
      storeLineChanges(store.sql, [change]),
      storeLineChanges(store.sql, [change]),
    ]);
    expect(both.flat()).toEqual([change.id]);
    expect(await storeLineChanges(store.sql, [{ ...change, from: 1, to: { ...to, step: 2 } }])).toEqual([
      change.id,
    ]);
  });
});

describe('the plan', () => {
  test('learns how often SKUs move wholesale, reserves early refreshes, and forgets old lines', async () => {
    const { sql } = store;
    await sql`update catalog_internal.live_rates set wholesale_moves = 3, wholesale_minutes = 1000`;
    await sql`insert into catalog_internal.live_lines values (1, 'Old', 'Old', 1, 'quiet', 0, now() - interval '8 days', null, 0, 0, 0, 0)`;
    await sql`insert into catalog_internal.live_lines values (2, 'New', 'New', 1, 'quiet', 0, now() - interval '6 days', null, 0, 0, 0, 0)`;
    const threshold = async (early: number) => {
      await sql`update catalog_internal.releases set early = ${early}, early_at = now()`;
      await planLive({
        ...context(),
        settings: settingsWith({
          LIVE_INTERVAL: '1s',
          PARTNER_RATE_LIMIT: '12',
          PARTNER_RATE_SHARE: '1',
          BULK_LIVE_BUDGET: '1',
        }),
      });
      return (await readLivePlan(sql)).refreshThreshold ?? 0;
    };
    const usual = await threshold(0);
    expect(await threshold(10)).toBeGreaterThan(usual);
    const [row] = await sql<[{ rate: number }]>`select wholesale_rate as rate from catalog_internal.releases`;
    expect(row.rate).toBeCloseTo((4 + 35 * 3) / (6000 + 35_000), 6);
    expect(await line('Old', 'Old')).toBeUndefined();
    expect(await line('New', 'New')).toBeDefined();
  });
});

test('times of lines that a clock ahead has dated are set back, without waiting for a locked line', async () => {
  const { sql } = store;
  await call([priced('L00', 200), priced('L01', 200)]);
  await sql`update catalog_internal.live_lines set weighed_at = now() + interval '2 hours', since = now() + interval '2 hours'`;
  await sql`update catalog_internal.releases set early_at = now() + interval '2 hours'`;
  const ahead = async () => {
    const [row] = await sql<[{ ahead: boolean }]>`
      select bool_or(weighed_at > clock_timestamp()) as ahead from catalog_internal.live_lines`;
    return row.ahead;
  };
  const setBack = async () => {
    await sql`update catalog_internal.clock set high_water = clock_timestamp() + interval '2 hours'`;
    await sql`select catalog_internal.set_back_clock()`;
  };
  await sql.begin(async (tx) => {
    await tx`select from catalog_internal.live_lines for update`;
    await tx`select from catalog_internal.releases for update`;
    await setBack();
  });
  expect(await ahead()).toBe(true);
  await setBack();
  expect(await ahead()).toBe(false);
});
