import fc from 'fast-check';
import { test } from 'vitest';
import { runs } from '../support/soak.ts';
import {
  type BackEnd,
  type Drawn,
  expectRead,
  type Form,
  FORMS,
  isBare,
  isNumber,
  isPriced,
  MEMBERS,
  SizeMaps,
  type Step,
} from './size-maps-world.ts';

const one = fc.constantFrom(0 as const, 1 as const);
const drawn: fc.Arbitrary<Drawn> = fc.record({
  by: one,
  sizes: fc.oneof(fc.constant([]), fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 5 })),
  hasNulls: fc.boolean(),
});
const records = fc.oneof(
  { weight: 3, arbitrary: fc.array(drawn, { minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.array(drawn, { minLength: 1, maxLength: 100, size: 'max' }) },
);
const answer = fc.record({ does: fc.constant('answer' as const), process: one, records });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 9, arbitrary: answer },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('changes' as const), by: one, to: fc.constantFrom(...FORMS) }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('restart' as const), process: one }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('time' as const), minutes: fc.constantFrom(1, 29, 61) }),
  },
);
const steps = fc.array(step, { minLength: 5, maxLength: 30 });
const kind = fc.constantFrom(...MEMBERS);
/**
 * If prices are bare numbers from the first answer on, nothing distinguishes other numbers from them. The same
 * holds for objects.
 */
const backEnd: fc.Arbitrary<BackEnd> = fc.record({
  form: fc.constantFrom(...FORMS),
  members: fc.array(kind, { maxLength: 3 }),
});
const told = ({ form, members }: BackEnd): BackEnd => ({
  form,
  members: members.filter((member) => !(isBare(form) ? isNumber : isPriced)(member)),
});
/** One of two back ends has bare numbers, or both use the same field: of two fields only one is read. */
const pair = fc
  .tuple(backEnd, backEnd)
  .map(([first, second]): BackEnd[] =>
    isBare(first.form) === isBare(second.form) ? [first, { ...second, form: first.form }] : [first, second],
  );
const world = fc
  .oneof(
    backEnd.map((only) => [only]),
    pair,
  )
  .map((backEnds) => backEnds.map(told));

/** Records of all back ends: some with prices of varying sizes, some sold out. */
const ordinary = (offered: number, sold: number): Drawn[] =>
  [0 as const, 1 as const].flatMap((by) => [
    ...Array.from({ length: offered }, (_, n) => ({
      by,
      sizes: [1 + (n % 9), 1 + ((n + 1) % 9), 1 + ((n + 2) % 9), 1 + ((n + 3) % 9)],
      hasNulls: false,
    })),
    ...Array.from({ length: sold }, () => ({ by, sizes: [], hasNulls: false })),
  ]);

/** Gives all back ends one form of prices, and answers until a lost form is found again. */
async function settles(it: SizeMaps, to: Form): Promise<void> {
  it.change(0, to);
  it.change(1, to);
  it.pass(0);
  for (let n = 0; n < 2; n += 1) await it.answer(0, ordinary(25, 3));
  it.pass(61);
  for (const process of [1, 0, 1, 0, 1] as const) await it.answer(process, ordinary(25, 3));
  expectRead(await it.answer(0, ordinary(1, 5)));
  expectRead(await it.answer(1, ordinary(0, 5)));
}

test('no other member becomes a price, no sold-out SKU has a price, and in the end everything is read', async () => {
  await fc.assert(
    fc.asyncProperty(world, steps, fc.constantFrom(...FORMS), async (backEnds, history, last) => {
      const it = new SizeMaps(backEnds);
      for (let n = 0; n < 3; n += 1) await it.answer(0, ordinary(30, 3));
      it.pass(0);
      for (const next of history) await it.step(next);
      await settles(it, last);
    }),
    { numRuns: runs(400) },
  );
});

/**
 * If every record has objects with a price, few records do not show which of them are sizes and which stand beside
 * them.
 */
const toldByFew = world.map((backEnds) =>
  backEnds.every(({ form }) => isBare(form))
    ? backEnds
    : backEnds.map(({ form, members }) => ({
        form,
        members: members.filter((member) => !isPriced(member)),
      })),
);

test('no other member becomes a price, and everything is read, even if calls contain few SKUs', async () => {
  await fc.assert(
    fc.asyncProperty(
      toldByFew,
      fc.integer({ min: 1, max: 9 }),
      fc.array(fc.boolean(), { maxLength: 30 }),
      async (backEnds, size, restarts) => {
        const it = new SizeMaps(backEnds);
        for (let n = 0; n < 30; n += 1) {
          if (restarts[n] === true) await it.step({ does: 'restart', process: 0 });
          await it.step({ does: 'answer', process: 0, records: ordinary(size, n % 2) });
        }
        expectRead(await it.answer(0, ordinary(0, 3)));
      },
    ),
    { numRuns: runs(200) },
  );
});
