import { describe, expect, test } from 'vitest';
import { type Applied, applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { readDoubts } from '../../src/store/answer/seller-doubts.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { daemon, doubting, POISON, USUAL } from './doubting.ts';
import { claimAll, found, knownSkus, ledger, mark, REFRESH, useStore } from './support.ts';

const store = useStore();
const { answer, passMinutes, seen, priced } = doubting(store);

describe('prices that are suddenly gone', () => {
  const NOTHING = {};
  /** Applies an answer to a refresh that only the schedule asked for. */
  async function swept(...results: readonly SkuResult[]): Promise<Applied> {
    const { sql } = store;
    const skus = results.map(({ sku }) => sku);
    await sql`
      update catalog_internal.due set due_at = least(due_at, now()), held_until = null,
        reason = case when reason = 'doubted' then reason else 'sweep' end where sku = any(${skus})`;
    return await applyAnswer(sql, await claimAll(sql), results, REFRESH);
  }
  const doubtOf = async (sku: string) => {
    const [row] = await store.sql`
      select t.doubt, t.actionable, t.fresh, d.reason, d.lane, round(extract(epoch from d.held_until - now()) / 60)::int as minutes
      from catalog.sku_trust t join catalog_internal.due d using (sku) where t.sku = ${sku}`;
    return row;
  };

  test('are shown as gone, and are requested once more after five minutes, which decides', async () => {
    const { sql } = store;
    await priced('A', 'B');
    expect((await swept(found('A', NOTHING))).doubted).toEqual([{ sku: 'A', oddity: 'no-prices' }]);
    expect(await doubtOf('A')).toEqual({
      doubt: 'implausible',
      actionable: false,
      fresh: false,
      reason: 'doubted',
      lane: 1,
      minutes: 5,
    });
    expect(await sql`select from catalog.prices where sku = 'A'`).toHaveLength(0);
    expect(await readDoubts(sql)).toMatchObject({ implausible: 1, last: 'A' });
    await passMinutes(2);
    await swept(found('A', NOTHING));
    expect(await doubtOf('A')).toMatchObject({ doubt: 'implausible', minutes: 3 });
    await passMinutes(4);
    await swept(found('A', NOTHING));
    expect(await doubtOf('A')).toMatchObject({ doubt: null, reason: 'sweep', minutes: null });
    expect(await readDoubts(sql)).toMatchObject({ implausible: 0 });
    await passMinutes(60);
    await swept(found('A', NOTHING));
    expect(await doubtOf('A')).toMatchObject({ doubt: null, reason: 'sweep' });
  });

  describe('or are missing in the first record, though the manifest counts sizes,', () => {
    const listed = async (sizes: number | null) => {
      await priced('A');
      await knownSkus(store.sql, ['N']);
      await store.sql`update catalog.skus set sizes = ${sizes} where sku = 'N'`;
      await mark(store.sql, ['N']);
    };

    test.each([
      ['no size', 'snapshot', NOTHING],
      ['no price', 'snapshot', { 40: null, 41: null }],
      ['no price', 'live', { 40: null, 41: null }],
    ])(
      '(it has %s, %s) are requested once more after five minutes, which decides',
      async (_, source, none) => {
        await listed(4);
        await store.sql`update catalog.skus set price_source = ${source} where sku = 'N'`;
        expect((await answer([found('N', none)])).doubted).toEqual([{ sku: 'N', oddity: 'no-prices' }]);
        expect(await doubtOf('N')).toMatchObject({ doubt: 'implausible', actionable: false, minutes: 5 });
        expect((await seen('N'))?.['actionable']).not.toBe(true);
        await passMinutes(6);
        await swept(found('N', none));
        expect(await doubtOf('N')).toMatchObject({ doubt: null, minutes: null });
        await swept(found('N', none));
        expect(await doubtOf('N')).toMatchObject({ doubt: null });
      },
    );

    test.each([[NOTHING], [{ 40: null, 41: null }]])(
      'are believed as soon as they are there: %j',
      async (none) => {
        await listed(4);
        await answer([found('N', none)]);
        await passMinutes(6);
        await swept(found('N', USUAL));
        expect(await seen('N')).toMatchObject({ doubt: null, actionable: true, price: 4100 });
      },
    );

    test.each([
      [0, NOTHING],
      [null, NOTHING],
      [0, { 41: null, 42: null }],
      [null, { 41: null }],
      [4, { 41: 4100, 42: null }],
      [4, { 41: 4100 }],
    ])('are not doubted with %s sizes in the manifest and %j in the record', async (sizes, prices) => {
      await listed(sizes);
      expect((await answer([found('N', prices)])).doubted).toEqual([]);
      expect(await doubtOf('N')).toMatchObject({ doubt: null });
    });
  });

  test('and are there again leave no doubt', async () => {
    await priced('A');
    await swept(found('A', NOTHING));
    await swept(found('A', USUAL));
    expect(await doubtOf('A')).toMatchObject({ doubt: null, actionable: true, reason: 'sweep' });
  });

  test('but return with implausible numbers are doubted for those', async () => {
    await priced('A');
    await swept(found('A', NOTHING));
    expect((await swept(found('A', POISON))).doubted).toEqual([{ sku: 'A', oddity: 'jump' }]);
  });

  test('are believed at once if a report said so, before or meanwhile', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await mark(sql, ['A'], 'changed');
    await applyAnswer(sql, await claimAll(sql), [found('A', NOTHING)], REFRESH);
    expect(await doubtOf('A')).toMatchObject({ doubt: null, reason: 'sweep' });
    await swept(found('B', NOTHING));
    await sql`update catalog.skus set reported_at = clock_timestamp() where sku = 'B'`;
    await mark(sql, ['B'], 'changed');
    expect((await ledger(sql)).get('B')).toMatchObject({ reason: 'changed', heldFor: null });
    await applyAnswer(sql, await claimAll(sql), [found('B', NOTHING)], REFRESH);
    // The answer contains nothing new for the report, so the SKU is requested again, as after any report.
    expect(await doubtOf('B')).toMatchObject({ doubt: null, reason: 'again' });
  });

  test('for most sizes only are doubted, but not for single sizes', async () => {
    await priced('A', 'B');
    const { doubted } = await swept(found('A', { 40: 4000 }), found('B', { 40: 4000, 41: 4100 }));
    expect(doubted).toEqual([{ sku: 'A', oddity: 'few-sizes' }]);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
    await passMinutes(6);
    await swept(found('A', { 40: 4000 }));
    expect(await seen('A')).toMatchObject({ doubt: null, actionable: true });
  });

  test('of live SKUs are doubted if that is unusual', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await sql`update catalog.skus set price_source = 'live'`;
    await sql`update catalog_internal.due set live = true, reason = 'live'`;
    await answer([found('B', { 40: 4000, 41: 4100 })]);
    const gone = await swept(found('A', NOTHING), found('B', NOTHING));
    expect(gone.doubted).toEqual([{ sku: 'A', oddity: 'no-prices' }]);
  });

  test('after a doubted number are requested once more, and no longer', async () => {
    await priced('A');
    await answer([found('A', POISON)]);
    await swept(found('A', NOTHING));
    expect(await doubtOf('A')).toMatchObject({ doubt: 'implausible', reason: 'doubted', minutes: 5 });
    await passMinutes(6);
    await swept(found('A', NOTHING));
    expect(await doubtOf('A')).toMatchObject({ doubt: 'implausible', reason: 'sweep', minutes: null });
  });

  test('and are to be requested again wait like doubted SKUs, even without a doubt', async () => {
    const { sql } = store;
    await priced('A');
    await mark(sql, ['A'], 'doubted');
    await sql`update catalog_internal.due set held_until = now() + interval '5 minutes'`;
    const due = async () => (await countCatalog(sql)).due.map(({ reason, count }) => [reason, count]);
    expect(await due()).toEqual([]);
    await mark(sql, ['A'], 'changed');
    expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', heldFor: null });
    expect(await due()).toEqual([['changed', 1]]);
  });

  test('are not implausible numbers in the evidence for mass moves, and count once', async () => {
    const moves = daemon();
    await priced('A');
    const lost = async () =>
      await applyAnswer(store.sql, await claimAll(store.sql), [found('A', NOTHING)], REFRESH, {
        observers: { ...NO_OBSERVERS, moves },
      });
    await mark(store.sql, ['A'], 'sweep');
    await lost();
    expect(moves.hour()).toMatchObject({ answers: 1, implausible: 0, lost: 1 });
    await store.sql`update catalog_internal.due set held_until = null`;
    await lost();
    expect(moves.hour()).toMatchObject({ answers: 1, implausible: 0, lost: 1 });
  });
});
