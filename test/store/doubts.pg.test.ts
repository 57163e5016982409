import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { acceptDoubted, readDoubts } from '../../src/store/answer/seller-doubts.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { stillDue } from '../../src/store/catalog/sync-state.ts';
import { adoptAccount } from '../../src/store/setup/account.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { claimEarly, daemon, doubting, hearPrices, MOVED, POISON, USUAL } from './doubting.ts';
import { claimAll, found, ledger, mark, REFRESH, removeByDelta, useStore } from './support.ts';

const store = useStore();

const { answer, passMinutes, seen, priced } = doubting(store);

describe('implausible prices', () => {
  test('are shown and recorded, but not actionable before a second answer, requested after five minutes', async () => {
    const { sql } = store;
    await priced('A', 'B');
    expect(await seen('A')).toEqual({ doubt: null, actionable: true, price: 4100 });
    const applied = await answer([found('A', POISON), found('B', USUAL)]);
    expect(applied.doubted).toEqual([{ sku: 'A', oddity: 'jump' }]);
    expect(await seen('A')).toEqual({ doubt: 'implausible', actionable: false, price: 41_000 });
    expect(await seen('B')).toEqual({ doubt: null, actionable: true, price: 4100 });
    const row = (await ledger(sql)).get('A');
    expect(row).toMatchObject({ reason: 'doubted', lane: 1 });
    expect(row?.dueIn).toBeLessThanOrEqual(0);
    expect(row?.heldFor).toBeCloseTo(5 / 60, 2);
    expect(await readDoubts(sql)).toMatchObject({ implausible: 1, massMoved: 0, last: 'A', massMove: null });

    expect(await answer([found('A', POISON)])).toMatchObject({ doubted: [] });
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
    await passMinutes(6);
    await answer([found('A', POISON)]);
    expect(await seen('A')).toEqual({ doubt: null, actionable: true, price: 41_000 });
    // It was reported, and answered with nothing new.
    expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'again' });
  });

  test('that are gone with the next answer leave no doubt', async () => {
    await priced('A');
    await answer([found('A', POISON)]);
    await answer([found('A', USUAL)]);
    expect(await seen('A')).toEqual({ doubt: null, actionable: true, price: 4100 });
  });

  test('stay doubted while the SKU is reported, marked, or deferred', async () => {
    const { sql } = store;
    await priced('A');
    await answer([found('A', POISON)]);
    await mark(sql, ['A'], 'changed');
    expect((await ledger(sql)).get('A')).toMatchObject({ heldFor: null });
    expect(await seen('A')).toMatchObject({ doubt: 'implausible' });
    await sql`update catalog_internal.due set held_until = null`;
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'deferred', waitMs: 1 }], REFRESH);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
  });

  test.each([
    ['removed', 'removed'],
    ['not found', 'not_found'],
    ['answered without a price', null],
    ['answered with what is no price', null],
  ])('are doubted if a SKU that was %s comes back with them', async (how, doubt) => {
    const { sql } = store;
    const ten = Object.fromEntries(Object.entries(USUAL).map(([size, price]) => [size, price * 10]));
    const nothing = Object.fromEntries(Object.keys(USUAL).map((size) => [size, null]));
    const vanish = async () => {
      if (how === 'removed') await removeByDelta(sql, 'A');
      else if (how === 'not found') await answer([{ sku: 'A', kind: 'not_found' }]);
      else await answer([found('A', how === 'answered without a price' ? {} : nothing)]);
    };
    await priced('A');
    await vanish();
    expect(await seen('A')).toMatchObject({ doubt, price: null });
    expect((await answer([found('A', ten)])).doubted).toEqual([{ sku: 'A', oddity: 'jump' }]);
    // The same if they come again after a moment without prices.
    await vanish();
    expect(await readDoubts(sql)).toMatchObject({ implausible: 0 });
    await answer([found('A', ten)]);
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
    await passMinutes(6);
    await answer([found('A', ten)]);
    expect(await seen('A')).toMatchObject({ doubt: null, actionable: true });
  });

  test.each([
    [59, 1],
    [61, 0],
  ])('of a SKU that is back after %i minutes count %i times for a mass move', async (minutes, count) => {
    const { sql } = store;
    await priced('A');
    await answer([found('A', {})]);
    await passMinutes(minutes);
    await sql`update catalog.price_history set observed_at = observed_at - make_interval(mins => ${minutes})`;
    const moves = daemon();
    expect((await answer([found('A', POISON)], moves)).doubted).toHaveLength(1);
    expect(moves.hour()).toMatchObject({ answers: count, implausible: count });
  });

  test.each([
    { what: 'of a SKU that is asked for before its time', how: 'early' },
    { what: 'of a reported SKU', how: 'reported' },
  ])('are visible to a trigger on prices as doubted, and others as actionable, $what', async ({ how }) => {
    const { sql } = store;
    await priced('A', 'B');
    await using heard = await hearPrices(sql);
    const results = [found('A', POISON), found('B', MOVED)];
    if (how === 'early') await applyAnswer(sql, await claimEarly(sql), results, REFRESH);
    else await answer(results);
    expect(await heard.rows()).toEqual([
      { sku: 'A', size: '41', price: 41_000, actionable: false },
      { sku: 'B', size: '41', price: 4150, actionable: true },
    ]);
  });

  test('that the seller accepts are actionable at once', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await answer([found('A', POISON), found('B', POISON)]);
    expect(await acceptDoubted(sql, ['A', 'unknown'])).toBe(1);
    expect(await seen('A')).toMatchObject({ doubt: null, actionable: true });
    expect(await seen('B')).toMatchObject({ doubt: 'implausible' });
    expect(await acceptDoubted(sql, null)).toBe(1);
    expect(await seen('B')).toMatchObject({ doubt: null, actionable: true });
  });

  test('count as still due only once their wait is over', async () => {
    const { sql } = store;
    await priced('A');
    await answer([found('A', POISON)]);
    expect((await ledger(sql)).get('A')).toMatchObject({
      reason: 'doubted',
      heldFor: expect.closeTo(5 / 60, 2) as number,
    });
    expect((await stillDue(sql, new Date(0))).due).toEqual([]);
    await passMinutes(6);
    expect((await stillDue(sql, new Date(0))).due).toEqual([{ reason: 'doubted', count: 1 }]);
  });

  test('do not hold up a report that came during the request', async () => {
    const { sql } = store;
    await priced('A');
    await mark(sql, ['A']);
    const claim = await claimAll(sql);
    await mark(sql, ['A']);
    await applyAnswer(sql, claim, [found('A', POISON)], REFRESH);
    expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'changed', heldFor: null });
    expect(await seen('A')).toMatchObject({ doubt: 'implausible', actionable: false });
    expect((await stillDue(sql, new Date(0))).due).toEqual([{ reason: 'changed', count: 1 }]);
  });

  test('count as due in metrics and SQL once a second answer counts, like deferred SKUs', async () => {
    const { sql } = store;
    const shown = async () => {
      const [row] = await sql<{ due: number }[]>`select due_skus::int as due from catalog.sync_status`;
      return { counted: (await countCatalog(sql)).due.map(({ reason, count }) => [reason, count]), ...row };
    };
    await priced('A');
    await answer([found('A', POISON)]);
    expect(await shown()).toEqual({ counted: [], due: 0 });
    await passMinutes(6);
    expect(await shown()).toEqual({ counted: [['doubted', 1]], due: 1 });
  });

  test('are explained: what is odd, since when, and the prices before', async () => {
    await priced('A');
    await answer([found('A', POISON)]);
    const [row] = await store.sql`select catalog.explain('A') -> 'trust' -> 'doubted' as doubted`;
    expect(row?.['doubted']).toMatchObject({ oddity: 'jump', before: USUAL });
  });

  test('are not judged against the prices of another account', async () => {
    const { sql } = store;
    await priced('A');
    await adoptAccount(sql, { baseUrl: 'https://other.example', apiKey: 'k' });
    expect(await answer([found('A', { 40: 90_000, 41: 95_000, 42: 99_000 })])).toMatchObject({ doubted: [] });
  });
});

describe('mass moves', () => {
  const many = Array.from({ length: 300 }, (_, n) => `M${String(n).padStart(3, '0')}`);
  const times = (factor: number) =>
    Object.fromEntries(Object.entries(USUAL).map(([size, price]) => [size, Math.round(price * factor)]));

  test('begin with implausible answers, doubt all moves of the hour, and end by evidence', async () => {
    const { sql } = store;
    const moves = daemon();
    await priced(...many);
    await answer(
      many.slice(0, 196).map((sku) => found(sku, times(1.02))),
      moves,
    );
    expect(await seen('M000')).toMatchObject({ doubt: null, actionable: true });
    const began = await answer(
      many.slice(196, 200).map((sku) => found(sku, POISON)),
      moves,
    );
    expect(began.massMoved).toMatchObject({
      event: 'began',
      kind: 'implausible',
      skus: 196,
      answers: 200,
      implausible: 4,
    });
    expect(await seen('M000')).toMatchObject({ doubt: 'mass-move', actionable: false });
    expect(await seen('M250')).toMatchObject({ doubt: null, actionable: true });
    expect(await readDoubts(sql)).toMatchObject({
      implausible: 4,
      massMoved: 196,
      massMove: { kind: 'implausible', answers: 200 },
    });

    // Every move is doubted now, except one that goes back.
    await answer([found('M250', times(1.01)), found('M000', USUAL)], moves);
    expect(await seen('M250')).toMatchObject({ doubt: 'mass-move' });
    expect(await seen('M000')).toMatchObject({ doubt: null, actionable: true });

    await passMinutes(6);
    const ended = await answer(
      [
        ...many.slice(1, 196).map((sku) => found(sku, times(1.02))),
        ...many.slice(252, 270).map((sku) => found(sku, USUAL)),
      ],
      moves,
    );
    expect(ended.accepted).toBe(213);
    expect(ended.massMoved).toMatchObject({ event: 'ended' });
    expect(await seen('M001')).toMatchObject({ doubt: null, actionable: true });
    expect(await readDoubts(sql)).toMatchObject({ massMoved: 1, massMove: null });
  });

  test('do not hold up a report that exists when they begin', async () => {
    const { sql } = store;
    const moves = daemon();
    await priced(...many);
    await answer(
      many.slice(0, 196).map((sku) => found(sku, times(1.02))),
      moves,
    );
    // A call of another daemon is under way.
    await mark(sql, many.slice(196, 200));
    const claim = await claimAll(sql);
    await mark(sql, ['M000']);
    const results = many.slice(196, 200).map((sku) => found(sku, POISON));
    const applied = await applyAnswer(sql, claim, results, REFRESH, {
      observers: { ...NO_OBSERVERS, moves },
    });
    expect(applied.massMoved).toMatchObject({ event: 'began' });
    const rows = await ledger(sql);
    expect(rows.get('M000')).toMatchObject({ reason: 'changed', heldFor: null });
    expect(rows.get('M001')).toMatchObject({
      reason: 'doubted',
      heldFor: expect.closeTo(5 / 60, 2) as number,
    });
    expect(await seen('M000')).toMatchObject({ doubt: 'mass-move', actionable: false });
  });

  test('are detected if many SKUs lose all prices, and those are requested again when it ends', async () => {
    const { sql } = store;
    const moves = daemon();
    await priced(...many);
    const gone = many.slice(0, 80);
    const began = await answer(
      [
        ...gone.map((sku, n): SkuResult => (n < 40 ? found(sku, {}) : { sku, kind: 'not_found' })),
        ...many.slice(80).map((sku) => found(sku, USUAL)),
      ],
      moves,
    );
    expect(began.massMoved).toMatchObject({ event: 'began', kind: 'lost', answers: 300, implausible: 80 });
    const waiting = async () => {
      const rows = await sql<{ sku: string }[]>`
        select sku from catalog_internal.due where due_at <= now() and reason = 'doubted' order by sku`;
      return rows.map(({ sku }) => sku);
    };
    expect(await waiting()).toEqual([]);
    const ended = await answer(
      [found('M000', USUAL), ...many.slice(80).map((sku) => found(sku, USUAL))],
      moves,
    );
    expect(ended.massMoved).toMatchObject({ event: 'ended' });
    expect(await waiting()).toEqual(gone.slice(1));
  });

  test.each([
    ['a fault', () => times(100), 'factor'],
    ['other implausible numbers', (n: number) => ({ ...USUAL, 41: 20_000 + 4000 * n }), 'implausible'],
  ])('have lost SKUs requested again when they end if these are known as %s', async (_, prices, kind) => {
    const { sql } = store;
    let now = 0;
    const moves = daemon(() => now);
    await priced(...many);
    const odd = many.slice(0, 8).map((sku, n) => found(sku, prices(n)));
    expect((await answer(odd, moves)).massMoved).toMatchObject({ event: 'began', kind });
    const gone = many.slice(8, 88);
    const others = many.slice(88).map((sku) => found(sku, USUAL));
    await answer([...gone.map((sku) => found(sku, {})), ...others], moves);
    now += 61 * 60_000;
    await passMinutes(61);
    const ended = await answer([...many.slice(0, 8).map((sku) => found(sku, USUAL)), ...others], moves);
    expect(ended.massMoved).toMatchObject({ event: 'ended' });
    const asked = await sql`
      select sku from catalog_internal.due where due_at <= now() and reason = 'doubted' order by sku`;
    expect(asked.map(({ sku }) => sku as string)).toEqual(gone);
  });

  test('of a market that halves let every price through with its second answer', async () => {
    const moves = daemon();
    await priced(...many);
    const halved = () => many.map((sku) => found(sku, times(0.45)));
    const first = await answer(halved(), moves);
    expect(first.massMoved).toMatchObject({ event: 'began' });
    expect(first.doubted).toHaveLength(300);
    await passMinutes(5);
    expect((await answer(halved(), moves)).massMoved).toMatchObject({ event: 'ended' });
    expect(await readDoubts(store.sql)).toMatchObject({ implausible: 0, massMoved: 0, massMove: null });
    expect(await seen('M123')).toMatchObject({ doubt: null, actionable: true });
  });

  test('are seen by every daemon, and end for all when the seller accepts', async () => {
    const { sql } = store;
    await priced(...many);
    await answer(many.map((sku) => found(sku, times(0.45))));
    const another = daemon();
    await sql`update catalog_internal.due set doubt = null where sku = 'M000'`;
    await answer([found('M000', times(0.46))], another);
    expect(await seen('M000')).toMatchObject({ doubt: 'mass-move' });
    expect(await acceptDoubted(sql, null)).toBe(300);
    expect(await readDoubts(sql)).toMatchObject({ implausible: 0, massMoved: 0, massMove: null });
    expect(await seen('M000')).toMatchObject({ doubt: null, actionable: true });
  });

  test('that cannot be stored fail no answer', async () => {
    const { sql } = store;
    const moves = daemon();
    await priced(...many);
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.mass_move for update`;
      const halved = many.map((sku) => found(sku, times(0.45)));
      expect(await answer(halved, moves)).toMatchObject({ accepted: 300, massMoved: null });
    });
    expect((await answer([found('M000', times(0.45))], moves)).massMoved).toMatchObject({ event: 'began' });
  });
});
