import { describe, expect, test } from 'vitest';
import { MAX_TESTED, UNTESTED } from '../../src/store/live/hint-state.ts';
import { storeHintTests } from '../../src/store/sellers/hints.ts';
import { hintPrecision, hintRecall, learnHints, undonePart } from '../../src/sync/live/hints.ts';
import { found, knownSkus, mark } from '../store/support.ts';
import { LIVE, moved, unmoved, useHints } from './hinting.ts';

const { store, hint, drain, came, claimed, answer, call, rate, dueIn, waiting, source, seen } = useHints();

describe('catalog.hint', () => {
  test('accepts hints for known SKUs by named sources, each once until it is read', async () => {
    expect(await came()).toBe(false);
    expect(await hint('L00')).toBe(true);
    expect(await hint('L00', ' orders ')).toBe(true);
    expect(await hint('L00', 'sales')).toBe(true);
    expect(await hint('L00', 'x'.repeat(60))).toBe(true);
    const rows = await store.sql<{ source: string }[]>`select source from catalog_internal.hints order by id`;
    expect(rows.map((row) => row.source)).toEqual(['orders', 'sales', 'x'.repeat(60)]);
    expect(await came()).toBe(true);
  });

  test.for([
    ['nobody knows it', 'orders'],
    [null, 'orders'],
    ['L00', ''],
    ['L00', ' \n'],
    ['L00', null],
    ['L00', 'x'.repeat(61)],
  ] as const)('rejects %j by %j', async ([sku, by]) => {
    expect(await hint(sku, by)).toBe(false);
    expect(await came()).toBe(false);
  });

  test('accepts no more while 100,000 wait', async () => {
    await store.sql`
      insert into catalog_internal.hints (sku, source, hinted_at) select 'L00', 'n' || n, now() from generate_series(1, 100000) n`;
    expect(await hint('L01')).toBe(true);
    expect(await hint('L02')).toBe(false);
  });

  test('waits for nobody, and nobody waits for its caller', async () => {
    const { sql } = store;
    await sql.begin(async (tx) => {
      await tx`select catalog.hint('L00', 'orders')`;
      await tx`select catalog.hint('L01', 'orders')`;
      await sql.begin(async (other) => {
        await other`set local lock_timeout = '1s'`;
        await other`select catalog.hint('L00', 'orders')`;
      });
      await call(moved('L00'), moved('L01'));
      await drain();
    });
    const claim = await claimed('L02');
    await sql.begin(async (tx) => {
      await tx`select from catalog.skus where sku = 'L02' for update`;
      await tx`select from catalog_internal.due where sku = 'L02' for update`;
      await sql.begin(async (other) => {
        await other`set local lock_timeout = '1s'`;
        await other`select catalog.hint('L02', 'orders')`;
      });
    });
    await answer(claim, [unmoved('L02')]);
    await drain();
    // Hints from before the request have no effect any more.
    expect(await waiting()).toEqual(['L02 orders']);
    expect(await source()).toMatchObject({ hints: 4 });
  });
});

describe('a hint', () => {
  test('brings the refresh of a live SKU forward, and lowers the trust in its price', async () => {
    const believed = async () => {
      const [row] = await store.sql<
        [{ p: number }]
      >`select p_right::float8 as p from catalog.sku_trust where sku = 'L00'`;
      return row.p;
    };
    const before = await believed();
    await hint('L00');
    await drain();
    expect(await dueIn('L00')).toBeLessThan(1);
    expect(await dueIn('L01')).toBeGreaterThan(1000);
    expect((await rate('L00'))?.['hazard']).toBeCloseTo(-Math.log(0.7), 9);
    expect(await believed()).toBeCloseTo(0.7 * before, 3);
    expect(await waiting()).toEqual(['L00 orders']);
    expect(await source()).toMatchObject({ hints: 1, pulled: 1, tested: 0 });
    expect(seen()).toEqual([{ event: 'hint.source', source: 'orders' }]);
    const [early] = await store.sql<[{ early: number }]>`select early from catalog_internal.releases`;
    expect(early.early).toBeCloseTo(1 / 120, 6);
    await hint('L00');
    await hint('L00', 'sales');
    await drain();
    expect((await rate('L00'))?.['hazard']).toBeCloseTo(-2 * Math.log(0.7), 9);
    expect(await source()).toMatchObject({ hints: 2, pulled: 1 });
  });

  test('for a SKU that is not live, or is due for another reason, is counted but moves nothing', async () => {
    const { sql } = store;
    await sql`update catalog_internal.due set reason = 'refresh', lane = 1 where sku = 'L01'`;
    await sql`update catalog_internal.due set held_until = now() + interval '1 hour' where sku = 'L02'`;
    for (const sku of ['S0', 'L01', 'L02']) await hint(sku);
    await drain();
    for (const sku of ['S0', 'L01', 'L02']) expect(await dueIn(sku)).toBeGreaterThan(1000);
    expect(await waiting()).toEqual(['L01 orders', 'L02 orders']);
    // No hint moves anything if refreshes are not scarce.
    await sql`update catalog_internal.live_plan set refresh_threshold = null, max_interval_minutes = null`;
    await hint('L03');
    await drain();
    expect(await dueIn('L03')).toBeGreaterThan(1000);
    expect(await source()).toMatchObject({ hints: 4, pulled: 0 });
  });

  test('that comes during a request for its SKU is read after the answer', async () => {
    const claim = await claimed('L00');
    await hint('L00');
    expect(await came()).toBe(false);
    await drain();
    expect(await waiting()).toEqual([]);
    await answer(claim, [unmoved('L00')]);
    expect(await source()).toBeUndefined();
    expect(await came()).toBe(true);
    await drain();
    expect(await waiting()).toEqual(['L00 orders']);
  });

  test('for a SKU whose ledger row is locked is read later, and does not delay others', async () => {
    await hint('L00');
    await hint('L01');
    await store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.due where sku = 'L00' for update`;
      await drain();
      expect(await waiting()).toEqual(['L01 orders']);
    });
    await drain();
    expect(await waiting()).toEqual(['L00 orders', 'L01 orders']);
  });

  test('is deleted with its SKU', async () => {
    await hint('L00');
    await drain();
    await hint('L00');
    await hint('L01');
    await store.sql`delete from catalog.skus where sku = 'L00'`;
    expect(await waiting()).toEqual([]);
    await store.sql`truncate catalog.skus cascade`;
    const [left] = await store.sql<
      [{ count: number }]
    >`select count(*)::int as count from catalog_internal.hints`;
    expect(left.count).toBe(0);
  });
});

describe('a refresh', () => {
  test('tests each hint once, by the rate of the SKU', async () => {
    await hint('L00');
    await hint('L01');
    await drain();
    await call(moved('L00'), unmoved('L01'), moved('L02'));
    const known = await source();
    expect(known).toMatchObject({ tested: 2, unmoved: 1, moves: 3 - 1 });
    expect(known?.['expected']).toBeGreaterThan(0.5);
    expect(await waiting()).toEqual([]);
    expect((await rate('L00'))?.['hazard']).toBeNull();
    await call(moved('L00'), unmoved('L01'));
    expect(await source()).toMatchObject({ tested: 2 });
  });

  test('dates a move that a hint explains to the end of the wait, and otherwise teaches as usual', async () => {
    await store.sql`update catalog_internal.live_rates set alpha = 10, beta = 4000, short_odds = null`;
    await store.sql`update catalog_internal.beliefs set live_prior_minutes = 120`;
    await hint('L00');
    await hint('L01');
    await drain();
    await call(moved('L00'), unmoved('L01'), moved('L02'));
    const { long_alpha: moves, long_beta: minutes } = (await rate('L00')) ?? {};
    expect(moves).toBeCloseTo(11, 5);
    expect(minutes).toBeGreaterThan(4059);
    expect((await rate('L01'))?.['long_beta']).toBeGreaterThan(4050);
    expect((await rate('L02'))?.['long_alpha']).not.toBe(10);
  });

  test('shows whether a move that hints had told of stayed, was undone, or moved on', async () => {
    const quiet = () =>
      store.sql`update catalog_internal.live_rates set alpha = 10, beta = 4000, short_odds = null`;
    await quiet();
    await store.sql`update catalog_internal.beliefs set live_prior_minutes = 120`;
    for (const sku of ['L00', 'L01', 'L02', 'L03', 'L06']) await hint(sku);
    await drain();
    await call(...['L00', 'L01', 'L02', 'L04', 'L06'].map(moved), unmoved('L03'));
    const told = async () =>
      await store.sql`select sku, told from catalog_internal.live_rates where told is not null order by sku`;
    const of = { sources: ['orders'], former: { 7: 100 } };
    expect([...(await told())]).toEqual(['L00', 'L01', 'L02', 'L06'].map((sku) => ({ sku, told: of })));
    expect(await source()).toMatchObject({ followed: 0 });
    await store.sql`update catalog.skus set asked_at = asked_at - interval '1 hour', priced_at = priced_at - interval '1 hour'`;
    await quiet();
    // Nobody told of L04, so its return shows nothing about hints.
    const back = ['L01', 'L04', 'L06'].map(unmoved);
    await call(moved('L00'), ...back, found('L02', { 7: 120 }), unmoved('L03'));
    expect(await source()).toMatchObject({ followed: 4, stayed: 1, undone: 2 });
    expect([...(await told())]).toEqual([]);
    // Undoing a hinted move is not a move of its own.
    const [own, hinted] = [await rate('L04'), await rate('L01')];
    expect(hinted?.['beta']).toBeGreaterThan(own?.['beta'] as number);
    // A SKU that is no longer live is not followed any further.
    await hint('L05');
    await drain();
    await call(moved('L05'));
    expect(await told()).toHaveLength(1);
    await store.sql`update catalog.skus set price_source = 'snapshot' where sku = 'L05'`;
    await call(unmoved('L05'));
    expect(await source()).toMatchObject({ followed: 4 });
    expect(await told()).toEqual([]);
  });

  test('of a SKU named like an object member finds no hints that do not exist', async () => {
    const names = ['constructor', '__proto__', 'toString'];
    await knownSkus(store.sql, names, { priceSource: 'live' });
    await mark(store.sql, names, 'live', true);
    await call(...names.map(unmoved));
    await hint('__proto__');
    await drain();
    expect(await waiting()).toEqual(['__proto__ orders']);
    await call(...names.map(moved));
    expect(await waiting()).toEqual([]);
    expect(await source()).toMatchObject({ tested: 1 });
  });

  test('that failed leaves the hint waiting', async () => {
    await hint('L00');
    await drain();
    await call({ sku: 'L00', kind: 'deferred', waitMs: 1000 });
    expect(await waiting()).toEqual(['L00 orders']);
    await call({ sku: 'L00', kind: 'not_found' });
    expect(await waiting()).toEqual([]);
  });
});

describe('a source', () => {
  test('without a record may have fifty hints waiting', async () => {
    for (const sku of LIVE) await hint(sku);
    await drain();
    expect(await waiting()).toHaveLength(50);
    expect(await source()).toMatchObject({ hints: 80, pulled: 50 });
  });

  test('that is never right brings nothing forward, but is still tested', async () => {
    await hint('L00');
    await drain();
    await store.sql`update catalog_internal.hint_sources set tested = 300, expected = 270, unmoved = 275`;
    await hint('L01');
    await drain();
    expect(await dueIn('L01')).toBeGreaterThan(1000);
    expect((await rate('L01'))?.['hazard']).toBe(0);
    expect(await waiting()).toEqual(['L00 orders', 'L01 orders']);
  });

  test('beyond the fiftieth counts as “other”', async () => {
    for (let n = 0; n < 60; n += 1) await hint('L00', `source ${n}`);
    await drain();
    const rows = await store.sql<{ source: string; hints: string }[]>`
      select source, hints::text from catalog.hint_sources where source !~ '^source' or hints <> 1`;
    expect([...rows]).toEqual([{ source: 'other', hints: '10' }]);
    const [all] = await store.sql<
      [{ count: number }]
    >`select count(*)::int as count from catalog.hint_sources`;
    expect(all.count).toBe(51);
  });

  test('is shown with the figures that planning uses, and its tests fade in the same way', async () => {
    const { sql } = store;
    await hint('L00');
    await drain();
    let known = UNTESTED;
    for (const shown of [
      { tested: 300, expected: 250, unmoved: 130, moves: 700, followed: 150, stayed: 70, undone: 20 },
      { tested: 400, expected: 310, unmoved: 200, moves: 500, followed: 190, stayed: 90, undone: 35 },
    ]) {
      known = learnHints(known, shown);
      const { moves, ...sums } = shown;
      await storeHintTests(sql, { shown: [{ source: 'orders', ...sums }], moves });
    }
    expect(known.tested).toBeCloseTo(MAX_TESTED, 9);
    const [row] = await sql<[{ precision: number; recall: number; tested: number; undone: number }]>`
      select precision, recall, refreshes_tested as tested, undone from catalog.hint_sources`;
    expect(row.tested).toBeCloseTo(known.tested, 6);
    expect(row.precision).toBeCloseTo(hintPrecision(known), 9);
    expect(row.recall).toBeCloseTo(hintRecall(known), 9);
    expect(undonePart(known)).toBeGreaterThan(0.05);
    expect(row.undone).toBeCloseTo(undonePart(known), 9);
  });
});

test('times of hints that a clock ahead has dated are set back, too', async () => {
  const { sql } = store;
  await hint('L00');
  await drain();
  await hint('L01');
  await sql`update catalog_internal.hints set hinted_at = now() + interval '2 hours'`;
  await sql`update catalog_internal.waiting_hints set hinted_at = now() + interval '2 hours'`;
  await sql`update catalog_internal.hint_sources set last_hint = now() + interval '2 hours'`;
  await sql`update catalog_internal.clock set high_water = clock_timestamp() + interval '2 hours'`;
  await sql`select catalog_internal.set_back_clock()`;
  const [row] = await sql`
    select (select max(hinted_at) from catalog_internal.hints) > clock_timestamp() as hints,
      (select max(hinted_at) from catalog_internal.waiting_hints) > clock_timestamp() as waiting,
      (select max(last_hint) from catalog_internal.hint_sources) > clock_timestamp() as sources`;
  expect(row).toEqual({ hints: false, waiting: false, sources: false });
});
