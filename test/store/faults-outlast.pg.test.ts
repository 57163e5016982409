import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { acceptDoubted, readDoubts } from '../../src/store/answer/seller-doubts.ts';
import { runs } from '../support/soak.ts';
import { daemon, doubting, USUAL } from './doubting.ts';
import { empty, found, useStore } from './support.ts';

/*
 * The partner has some SKUs in another unit, or with one price for all sizes, and answers the others as ever:
 * these are no evidence about the fault, however many they are and whoever requests them.
 */

const store = useStore();
const { answer, passMinutes, seen, priced } = doubting(store);

const times = (factor: number) =>
  Object.fromEntries(Object.entries(USUAL).map(([size, price]) => [size, Math.round(price * factor)]));
const named = (letter: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${letter}${String(n).padStart(3, '0')}`);
const all = (skus: readonly string[], prices: Record<string, number>) =>
  skus.map((sku) => found(sku, prices));

const FAULTS = {
  'another unit': times(100),
  'one price for all sizes': { 40: 4000, 41: 4000, 42: 4000, 43: 4000 },
};
/** The same faults with other numbers. */
const OTHERS = {
  'another unit': { ...times(100), 42: 430 },
  'one price for all sizes': { 40: 4600, 41: 4600, 42: 4600, 43: 4600 },
};
const bad = named('B', 30);
const good = named('G', 220);

async function dueForDoubt(): Promise<readonly string[]> {
  const rows = await store.sql<{ sku: string }[]>`
    select sku from catalog_internal.due where due_at <= now() and reason = 'doubted'
      and (held_until is null or held_until <= now()) order by sku`;
  return rows.map(({ sku }) => sku);
}

/** Answers until they wait for their sweep, and not for a second check of a report. */
async function answeredTwice(faulty: Record<string, number>, moves = daemon()): Promise<void> {
  await answer(all(bad, faulty), moves);
  await passMinutes(6);
  await answer(all(bad, faulty), moves);
  await store.sql`
    update catalog_internal.due set reason = 'sweep', due_at = now() + interval '20 hours', again_at = null where sku like 'B%'`;
}

describe.each(Object.entries(FAULTS))('%s', (_, faulty) => {
  test('is not acted on after any number of usual answers for others', async () => {
    const moves = daemon();
    await priced(...bad, ...good);
    expect((await answer(all(bad, faulty), moves)).massMoved).toMatchObject({ event: 'began' });
    expect((await answer(all(good, USUAL), moves)).massMoved).toBeNull();
    await passMinutes(6);
    await answer(all(bad, faulty), moves);
    expect(await seen('B000')).toMatchObject({ doubt: 'implausible', actionable: false });
    expect((await readDoubts(store.sql)).massMove).not.toBeNull();
  });

  test('is not over for a restarted daemon, nor for another one that sees other SKUs', async () => {
    await priced(...bad, ...good);
    await answeredTwice(faulty);
    let now = 0;
    const another = daemon(() => now);
    expect((await answer(all(good, USUAL), another)).massMoved).toBeNull();
    now += 70 * 60_000;
    await passMinutes(70);
    // Some SKUs are requested whose last answers are too old as evidence.
    expect((await answer(all(good, USUAL), another)).massMoved).toBeNull();
    const asked = await dueForDoubt();
    expect(asked).toHaveLength(20);
    await answer(all(asked, faulty), another);
    expect((await answer(all(good, USUAL), daemon())).massMoved).toBeNull();
    expect(await dueForDoubt()).toEqual([]);
    expect(await seen('B000')).toMatchObject({ actionable: false });
  });

  test('is over once several of its SKUs are normal; the others wait for that, or for the seller', async () => {
    let now = 0;
    const moves = daemon(() => now);
    await priced(...bad, ...good);
    await answeredTwice(faulty, moves);
    now += 70 * 60_000;
    await passMinutes(70);
    await answer(all(good, USUAL), moves);
    const asked = await dueForDoubt();
    // As left by an answer that was being written when the fault became known.
    await store.sql`update catalog_internal.due set oddity = 'jump' where sku = 'B029'`;
    const over = await answer(all(asked, USUAL), moves);
    expect(over.massMoved).toMatchObject({ event: 'ended' });
    const others = bad.filter((sku) => !asked.includes(sku));
    expect(await dueForDoubt()).toEqual(others);
    const again = await answer(all(others, faulty), moves);
    expect(again.massMoved).toBeNull();
    await passMinutes(6);
    await answer(all(others, faulty), moves);
    const [one = '', other = ''] = others;
    for (const sku of [one, 'B029'])
      expect(await seen(sku)).toMatchObject({ doubt: 'implausible', actionable: false });
    await answer(all([one], times(1.01)), moves);
    expect(await seen(one)).toMatchObject({ doubt: null, actionable: true });
    expect(await acceptDoubted(store.sql, [other])).toBe(1);
    expect(await seen(other)).toMatchObject({ doubt: null, actionable: true });
  });

  test('is over once none of its SKUs is left, whoever has seen them return', async () => {
    await priced(...bad, ...good);
    await answer(all(bad, faulty), daemon());
    await answer(all(bad, USUAL), daemon());
    expect((await answer(all(good, USUAL), daemon())).massMoved).toMatchObject({ event: 'ended' });
  });
});

describe('another fault while one lasts', () => {
  test.each([
    ['another unit', times(1 / 36)],
    ['one price for all sizes', { 40: 3000, 41: 3000, 42: 3000, 43: 3000 }],
  ])('is detected as well: %s', async (_, other) => {
    let now = 0;
    const moves = daemon(() => now);
    await priced(...bad, ...good);
    await answer(all(bad, FAULTS['another unit']), moves);
    now += 3 * 60_000;
    await answer(all(good.slice(0, 100), USUAL), moves);
    await answer(all(good.slice(100, 140), other), moves);
    await passMinutes(6);
    await answer(all(good.slice(100, 140), other), moves);
    for (const sku of ['G100', 'G139', 'B000'])
      expect(await seen(sku)).toMatchObject({ doubt: 'implausible', actionable: false });
    await passMinutes(6);
    await answer(all(bad, FAULTS['another unit']), moves);
    expect(await seen('B000')).toMatchObject({ doubt: 'implausible', actionable: false });
  });

  test('of the same SKUs does not end the first', async () => {
    const moves = daemon();
    await priced(...bad, ...good);
    await answer(all(bad, FAULTS['one price for all sizes']), moves);
    await answer(all(good, USUAL), moves);
    for (let time = 0; time < 2; time += 1) {
      await answer(all(bad, FAULTS['another unit']), moves);
      await passMinutes(6);
    }
    expect(await seen('B000')).toMatchObject({ doubt: 'implausible', actionable: false });
    expect((await readDoubts(store.sql)).massMove).not.toBeNull();
  });
});

test('one price for all sizes stays a fault even if some sizes are sold', async () => {
  const moves = daemon();
  await priced(...bad, ...good);
  await answer(all(bad, FAULTS['one price for all sizes']), moves);
  await answer(all(['B000'], { 40: 4000, 41: 4000 }), moves);
  expect(await seen('B000')).toMatchObject({ doubt: 'implausible', actionable: false });
  await answer(all(['B000'], { 40: 4000, 41: 4100 }), moves);
  expect(await seen('B000')).toMatchObject({ doubt: null, actionable: true });
});

test.each([
  ['are sold out', {}],
  ['have a new size that is rare', { ...USUAL, 49: 16_000 }],
  ['have a size that has really moved far', { ...USUAL, 43: 13_000 }],
])('a fault is over although a few of its SKUs %s', async (_, prices) => {
  let now = 0;
  const moves = daemon(() => now);
  const pass = async (minutes: number) => {
    now += minutes * 60_000;
    await passMinutes(minutes);
  };
  await priced(...bad, ...good);
  await answer(all(bad, FAULTS['another unit']), moves);
  await pass(70);
  await answer([...all(bad.slice(4), USUAL), ...all(bad.slice(0, 4), prices)], moves);
  await pass(70);
  for (let hour = 0; hour < 4; hour += 1) {
    await answer(all(good, USUAL), moves);
    const asked = await dueForDoubt();
    if (asked.length > 0) await answer(all(asked, prices), moves);
    await pass(70);
  }
  expect((await readDoubts(store.sql)).massMove).toBeNull();
});

test('a fault is over even if its SKUs only have errors', async () => {
  await priced(...bad, ...good);
  await answeredTwice(FAULTS['another unit']);
  await passMinutes(70);
  await store.sql`update catalog_internal.due set failures = 2 where sku like 'B%'`;
  expect((await answer(all(good, USUAL), daemon())).massMoved).toMatchObject({ event: 'ended' });
  expect(await seen('B000')).toMatchObject({ doubt: 'implausible', actionable: false });
});

/** What happens next; `part`: to which of the SKUs with the fault. */
type Step =
  | { readonly kind: 'faulty' | 'right' | 'other'; readonly daemon: 0 | 1; readonly part: 0 | 1 | 2 }
  | { readonly kind: 'others'; readonly daemon: 0 | 1 }
  | { readonly kind: 'restart'; readonly daemon: 0 | 1 }
  | { readonly kind: 'pass'; readonly minutes: number };

const ofDaemon = fc.constantFrom<0 | 1>(0, 1);
const steps = fc.array(
  fc.oneof<fc.Arbitrary<Step>[]>(
    fc.record({
      kind: fc.constantFrom('faulty', 'faulty', 'right', 'other'),
      daemon: ofDaemon,
      part: fc.constantFrom<0 | 1 | 2>(0, 1, 2),
    }),
    fc.record({ kind: fc.constant('others'), daemon: ofDaemon }),
    fc.record({ kind: fc.constant('restart'), daemon: ofDaemon }),
    fc.record({ kind: fc.constant('pass'), minutes: fc.constantFrom(6, 61) }),
  ),
  { minLength: 6, maxLength: 14 },
);

test.each(['another unit', 'one price for all sizes'] as const)(
  'no order of answers, daemons and restarts makes %s actionable, and it ends once the partner is right',
  async (fault) => {
    const faulty = FAULTS[fault];
    await fc.assert(
      fc.asyncProperty(steps, async (drawn) => {
        await empty(store.sql);
        let now = 0;
        const daemons = [daemon(() => now), daemon(() => now)];
        const few = bad.slice(0, 24);
        const others = good.slice(0, 40);
        const partOf = (part: number) => few.filter((_, at) => at % 3 === part);
        const pass = async (minutes: number) => {
          now += minutes * 60_000;
          await passMinutes(minutes);
        };
        await priced(...few, ...others);
        await answer(all(few, faulty), daemons[0]);
        for (const step of drawn) {
          if (step.kind === 'pass') await pass(step.minutes);
          else if (step.kind === 'restart') daemons[step.daemon] = daemon(() => now);
          else if (step.kind === 'others') await answer(all(others, USUAL), daemons[step.daemon]);
          else {
            const prices = { faulty, right: USUAL, other: OTHERS[fault] }[step.kind];
            await answer(all(partOf(step.part), prices), daemons[step.daemon]);
          }
          const wrong = await store.sql`
            select sku from catalog.current_prices where sku like 'B%' and actionable
              and sku in (select sku from catalog.prices where size = '41' and price <> ${USUAL[41]})`;
          expect(wrong).toEqual([]);
        }
        await pass(61);
        await answer(all(few, USUAL), daemons[1]);
        for (const each of daemons) await answer(all(others, USUAL), each);
        await pass(61);
        for (const each of daemons) await answer(all(others, USUAL), each);
        expect(await readDoubts(store.sql)).toMatchObject({ implausible: 0, massMoved: 0, massMove: null });
      }),
      { numRuns: runs(6) },
    );
  },
  300_000,
);
