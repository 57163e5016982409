import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { MassMoved } from '../../src/store/answer/mass-move.ts';
import { pruneOddMoves } from '../../src/store/answer/odd-moves.ts';
import { acceptDoubted, readDoubts } from '../../src/store/answer/seller-doubts.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { runs } from '../support/soak.ts';
import { daemon, doubting, USUAL } from './doubting.ts';
import { empty, found, useStore } from './support.ts';

/*
 * One source of the partner uses another unit for a few SKUs in a thousand. These wait for the seller's decision,
 * and all others go on as ever.
 */

const store = useStore();
const { answer: answerOne, passMinutes, seen, priced: pricedOne } = doubting(store);
/** More than one bulk call may contain. */
const MOST = 900;

const times = (factor: number) =>
  Object.fromEntries(Object.entries(USUAL).map(([size, price]) => [size, Math.round(price * factor)]));
const named = (letter: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${letter}${String(n).padStart(4, '0')}`);
const all = (skus: readonly string[], factor: number) => skus.map((sku) => found(sku, times(factor)));

const pieces = <T>(of: readonly T[]) =>
  Array.from({ length: Math.ceil(of.length / MOST) }, (_, n) => of.slice(n * MOST, (n + 1) * MOST));

/** Applies several bulk answers, and returns what became of the mass move. */
async function answer(results: readonly SkuResult[], moves = daemon()): Promise<MassMoved | null> {
  let turned: MassMoved | null = null;
  for (const piece of pieces(results)) turned = (await answerOne(piece, moves)).massMoved ?? turned;
  return turned;
}

async function priced(...skus: readonly string[]): Promise<void> {
  for (const piece of pieces(skus)) await pricedOne(...piece);
}

/** Returns how many SKUs with this letter have a price that may be acted on, and how many have none. */
async function actionable(letter: string) {
  const [row] = await store.sql<[{ yes: number; no: number }]>`
    select (count(*) filter (where a))::int as yes, (count(*) filter (where not a))::int as no
    from (select bool_or(actionable) as a from catalog.current_prices where sku like ${`${letter}%`} group by sku) s`;
  return row;
}

/** Whether a SKU is due now, to confirm its price. */
async function isAsked(sku: string) {
  const [row] = await store.sql<[{ asked: boolean }]>`
    select reason = 'doubted' and due_at <= clock_timestamp() as asked from catalog_internal.due where sku = ${sku}`;
  return row.asked;
}

test('faulty SKUs are never actionable, however many answers, while others that move are', async () => {
  const { sql } = store;
  const moves = daemon();
  const [bad, good] = [named('B', 23), named('G', 1985)];
  await priced(...bad, ...good);
  expect(await answer(all(good, 1.02), moves)).toBeNull();
  const began = await answer(all(bad.slice(0, 15), 100), moves);
  expect(began).toMatchObject({ event: 'began', kind: 'factor-of-some', skus: 0, implausible: 15 });
  for (let look = 0; look < 3; look += 1) {
    await passMinutes(6);
    expect(await answer(all(bad, 100 + look), moves)).toBeNull();
    expect(await answer(all(good, 1.03 + look / 100), moves)).toBeNull();
    expect(await actionable('B')).toEqual({ yes: 0, no: 23 });
    expect(await actionable('G')).toEqual({ yes: 1985, no: 0 });
  }
  expect(await readDoubts(sql)).toMatchObject({ implausible: 23, massMoved: 0 });
  // First prices are not doubted.
  await priced('N0000');
  await answer(all(['N0000'], 1), moves);
  expect(await actionable('N')).toEqual({ yes: 1, no: 0 });

  expect(await answer(all(bad, 1.01), moves)).toMatchObject({ event: 'ended' });
  expect(await actionable('B')).toEqual({ yes: 23, no: 0 });
});

test('faulty SKUs are found even if confirmed before the fault was known, or answered later by any daemon', async () => {
  const bad = named('B', 20);
  await priced(...bad, ...named('G', 900));
  const moves = daemon();
  await answer(all(named('G', 900), 1.02), moves);
  await answer(all(bad.slice(0, 3), 0.0285), moves);
  await passMinutes(6);
  await answer(all(bad.slice(0, 3), 0.0285), moves);
  expect(await seen('B0000')).toMatchObject({ doubt: null, actionable: true });
  await answer(all(named('G', 900), 1.03), moves);
  const began = await answer(all(bad.slice(3, 8), 0.0285), moves);
  expect(began).toMatchObject({ event: 'began', kind: 'factor-of-some', skus: 3 });
  await answer(all(bad.slice(8), 0.0285), daemon());
  await passMinutes(6);
  await answer(all(bad, 0.0285), daemon());
  expect(await actionable('B')).toEqual({ yes: 0, no: 20 });
  expect(await actionable('G')).toEqual({ yes: 900, no: 0 });
  expect(await acceptDoubted(store.sql, null)).toBe(20);
  expect(await actionable('B')).toEqual({ yes: 20, no: 0 });
});

test('a fault is found if each of two daemons gets part of it, even if one has since stopped', async () => {
  const bad = named('B', 12);
  await priced(...bad, ...named('G', 900));
  expect(await answer(all(bad.slice(0, 4), 100), daemon())).toBeNull();
  const other = daemon();
  await answer(all(named('G', 900), 1.02), other);
  const began = await answer(all(bad.slice(4), 100), other);
  expect(began).toMatchObject({ event: 'began', kind: 'factor-of-some' });
  await passMinutes(6);
  await answer(all(bad, 100), daemon());
  expect(await actionable('B')).toEqual({ yes: 0, no: 12 });
  expect(await actionable('G')).toEqual({ yes: 900, no: 0 });
  // What revealed this fault is no evidence of the next one.
  await acceptDoubted(store.sql, null);
  expect(await store.sql`select from catalog_internal.odd_moves`).toHaveLength(0);
});

test('a fault is not found by evidence older than an hour, nor by one SKU that repeats itself', async () => {
  const { sql } = store;
  const bad = named('B', 12);
  await priced(...bad, ...named('G', 1300));
  await answer(all(bad.slice(0, 4), 100));
  await sql`update catalog_internal.odd_moves set begun_at = begun_at - interval '61 minutes'`;
  const moves = daemon();
  await answer(all(named('G', 1300), 1.02), moves);
  expect(await answer(all(bad.slice(4, 9), 100), moves)).toBeNull();
  for (const factor of [3, 100, 3, 100]) expect(await answer(all(['B0009'], factor), moves)).toBeNull();
  await pruneOddMoves(sql);
  expect(await sql`select distinct sku from catalog_internal.odd_moves`).toHaveLength(6);
});

test('if many more SKUs are faulty or vanish, each move is doubted until the fault is over', async () => {
  let now = 0;
  const moves = daemon(() => now);
  const [bad, good] = [named('B', 10), named('G', 1200)];
  await priced(...bad, ...good);
  await answer(all(good, 1.02), moves);
  await answer(all(bad, 100), moves);
  const gone = good.slice(0, 400).map((sku) => found(sku, {}));
  const began = await answer([...gone, ...all(good.slice(400), 1.03)], moves);
  expect(began).toMatchObject({ event: 'began', kind: 'factor' });
  expect(await seen('G0400')).toMatchObject({ doubt: 'mass-move', actionable: false });
  await passMinutes(6);
  await answer(all(bad, 100), moves);
  expect(await seen('B0000')).toMatchObject({ actionable: false });
  now += 61 * 60_000;
  await passMinutes(61);
  await answer(all(bad, 1), moves);
  const ended = await answer(all(good.slice(400), 1.03), moves);
  expect(ended).toMatchObject({ event: 'ended' });
  const [asked] = await store.sql`
    select count(*)::int from catalog_internal.due where sku < 'G0400' and sku like 'G%' and reason = 'doubted' and due_at <= now()`;
  expect(asked).toEqual({ count: 400 });
});

test('if all others are normal again while the fault lasts, they no longer wait', async () => {
  let now = 0;
  const moves = daemon(() => now);
  const [bad, good] = [named('B', 8), named('G', 1780)];
  await priced(...bad, ...good);
  await answer(all(good, 1.02), moves);
  await answer(all(bad, 100), moves);
  const gone = good.slice(0, 550).map((sku) => found(sku, {}));
  expect(await answer([...gone, ...all(good.slice(550), 1.03)], moves)).toMatchObject({ kind: 'factor' });
  await priced('F0000');
  await passMinutes(6);
  await answer(all(['F0000'], 1), moves);
  expect(await actionable('F')).toEqual({ yes: 0, no: 1 });
  // As if only its sweep were planned: nobody waits for its second answer.
  await store.sql`
    update catalog_internal.due set claim = null, held_until = null, again_at = null, reason = 'sweep', due_at = now() + interval '20 hours'
    where sku = 'F0000'`;
  now += 61 * 60_000;
  await passMinutes(61);
  await answer(all(bad, 100), moves);
  const left = await answer(all(good, 1.03), moves);
  expect(left).toMatchObject({ event: 'began', kind: 'factor-of-some' });
  expect(await isAsked('F0000')).toBe(true);
  await passMinutes(6);
  await answer(all(good, 1.04), moves);
  await priced('N0000');
  await answer(all(['N0000'], 1), moves);
  expect(await actionable('G')).toEqual({ yes: 1780, no: 0 });
  expect(await actionable('N')).toEqual({ yes: 1, no: 0 });
  expect(await actionable('B')).toEqual({ yes: 0, no: 8 });
  await answer(all(bad, 1), moves);
  expect(await actionable('B')).toEqual({ yes: 8, no: 0 });
});

test('a second, smaller fault is found too, whichever goes on, and the two do not alternate', async () => {
  let now = 0;
  const moves = daemon(() => now);
  const [bad, other, good] = [named('B', 19), named('C', 8), named('G', 2800)];
  await priced(...bad, ...other, ...good);
  await answer(all(good, 1.02), moves);
  expect(await answer(all(bad.slice(0, 10), 1 / 36), moves)).toMatchObject({ kind: 'factor-of-some' });
  await answer(all(good, 1.025), moves);
  expect(await answer([...all(bad.slice(10), 1 / 36), ...all(other, 4.3)], moves)).toBeNull();
  now += 2 * 60_000;
  await passMinutes(2);
  expect(await answer(all(good, 1.03), moves)).toMatchObject({ event: 'began' });
  await passMinutes(4);
  await answer([...all(bad, 1 / 36), ...all(other, 4.3)], moves);
  expect(await actionable('B')).toEqual({ yes: 0, no: 19 });
  expect(await actionable('C')).toEqual({ yes: 0, no: 8 });
  expect(await actionable('G')).toEqual({ yes: 2800, no: 0 });
});

test('SKUs that return from an undetected fault do not look like another fault', async () => {
  let now = 0;
  const moves = daemon(() => now);
  const [bad, early, good] = [named('B', 8), named('E', 12), named('G', 1300)];
  await priced(...bad, ...early, ...good);
  await answer(all(good, 1.02), moves);
  // Each confirmed by a second answer, and longer ago than moves are doubted for.
  for (let at = 0; at < early.length; at += 3) {
    const few = daemon();
    await answer(all(early.slice(at, at + 3), 100), few);
    await passMinutes(6);
    await answer(all(early.slice(at, at + 3), 100), few);
    await store.sql`update catalog_internal.odd_moves set begun_at = begun_at - interval '2 hours'`;
  }
  expect(await actionable('E')).toEqual({ yes: 12, no: 0 });
  await store.sql`update catalog.price_history set observed_at = observed_at - interval '2 hours'`;
  await answer(all(bad, 100), moves);
  await answer(all(good, 1.03), moves);
  now += 3 * 60_000;
  await answer(all(early, 1), moves);
  await passMinutes(6);
  await answer(all(early, 1), moves);
  expect(await actionable('E')).toEqual({ yes: 12, no: 0 });
  expect(await actionable('B')).toEqual({ yes: 0, no: 8 });
});

test('a fault does not end while the partner has no answer for its SKUs', async () => {
  const moves = daemon();
  const [bad, good] = [named('B', 10), named('G', 1200)];
  await priced(...bad, 'L0000', ...good);
  await answer(all(good, 1.02), moves);
  await answer(all(bad, 100), moves);
  await store.sql`update catalog_internal.due set deferrals = 1 where sku like 'B%'`;
  await answer(all(good, 1.03), moves);
  expect((await readDoubts(store.sql)).massMove).toMatchObject({ kind: 'factor-of-some' });
  await answer(all(['L0000'], 100), moves);
  await passMinutes(6);
  await answer(all(['L0000'], 100), moves);
  expect(await actionable('L')).toEqual({ yes: 0, no: 1 });
});

/** What happens next, to the SKUs with the fault or to others. */
const step = fc.record({
  kind: fc.constantFrom('faulty', 'faulty', 'others', 'restart', 'pass'),
  daemon: fc.constantFrom<0 | 1>(0, 1),
  part: fc.constantFrom<0 | 1 | 2>(0, 1, 2),
  drift: fc.integer({ min: -3, max: 3 }),
});

test('no size, factor, order of answers or restart makes a faulty SKU actionable, or another SKU wait', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        size: fc.integer({ min: 8, max: 14 }),
        catalog: fc.integer({ min: 1500, max: 2000 }),
        factor: fc.constantFrom(100, 1 / 100, 1 / 35, 36, 4.5, 10),
        steps: fc.array(step, { minLength: 4, maxLength: 10 }),
      }),
      async ({ size, catalog, factor, steps }) => {
        await empty(store.sql);
        let now = 0;
        const daemons = [daemon(() => now), daemon(() => now)];
        const [bad, good] = [named('B', size), named('G', catalog)];
        await priced(...bad, ...good);
        await answer(all(good, 1), daemons[0]);
        await answer(all(bad, factor), daemons[0]);
        for (const { kind, daemon: by, part, drift } of steps) {
          const others = good.filter((_, at) => at % 60 === part);
          if (kind === 'restart') daemons[by] = daemon(() => now);
          else if (kind === 'others') await answer(all(others, 1 + drift / 100), daemons[by]);
          else if (kind === 'faulty') {
            const some = bad.filter((_, at) => at % 3 === part);
            await answer(all(some, factor * (1 + drift / 100)), daemons[by]);
          } else {
            now += 6 * 60_000;
            await passMinutes(6);
          }
          expect(await actionable('B')).toMatchObject({ yes: 0 });
          expect(await actionable('G')).toMatchObject({ no: 0 });
        }
        await answer(all(bad, 1), daemons[0]);
        for (const each of daemons) await answer(all(good, 1), each);
        expect(await actionable('B')).toMatchObject({ no: 0 });
        expect(await readDoubts(store.sql)).toMatchObject({ implausible: 0, massMoved: 0, massMove: null });
      },
    ),
    { numRuns: runs(3) },
  );
}, 300_000);
