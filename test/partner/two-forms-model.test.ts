import fc from 'fast-check';
import { test } from 'vitest';
import { runs } from '../support/soak.ts';
import {
  type Drawn,
  expectRead,
  expectSound,
  FIELDS,
  FORMS,
  HOUR,
  KINDS,
  type Step,
  TwoForms,
} from './two-forms-world.ts';

const kind = fc.constantFrom(0 as const, 1 as const);
const record: fc.Arbitrary<Drawn> = fc.record({
  kind,
  sizes: fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 3 }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      does: fc.constant('answer' as const),
      by: fc.constantFrom(0, 1),
      records: fc.array(record, { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('renames' as const), kind, to: fc.constantFrom(...FORMS) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('restart' as const), which: fc.constantFrom(0, 1) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('time' as const), minutes: fc.constantFrom(1, 29, 61) }),
  },
);
const steps = fc.array(step, { minLength: 10, maxLength: 60 });
const form = fc.constantFrom(...FORMS);

test('records of both kinds are read correctly or not at all, across moves of the price and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(form, form, steps, async (first, second, drawn) => {
      const world = new TwoForms(first, second);
      for (const drawnStep of drawn) {
        const read = await world.step(drawnStep);
        if (read !== null) expectSound(read);
      }
    }),
    { numRuns: runs(400) },
  );
});

/** Where prices are in the end: both kinds in one place, or one kind in a field and the other as bare numbers. */
const settled = fc.oneof(
  form.map((one) => [one, one] as const),
  fc.constantFrom(...FIELDS).map((field) => [field, null] as const),
  fc.constantFrom(...FIELDS).map((field) => [null, field] as const),
);

test('all records are read an hour and some answers after the last move, whatever happened before', async () => {
  await fc.assert(
    fc.asyncProperty(
      form,
      form,
      steps,
      settled,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 5 }),
      async (first, second, drawn, [one, other], ones, others) => {
        const world = new TwoForms(first, second);
        for (const drawnStep of drawn) await world.step(drawnStep);
        world.move(0, one);
        world.move(1, other);
        const answer: Drawn[] = [
          ...Array.from({ length: ones }, () => ({ kind: 0 as const, sizes: ['offered', 'sold'] as const })),
          ...Array.from({ length: others }, () => ({ kind: 1 as const, sizes: ['offered'] as const })),
        ];
        // What a process has not heard of yet, it picks up with its next answer but one.
        world.pass(0);
        await world.answer(0, answer);
        world.pass(HOUR);
        for (const by of [1, 0, 1, 0]) await world.answer(by, answer);
        expectRead(await world.answer(0, answer));
        expectRead(await world.answer(1, answer));
      },
    ),
    { numRuns: runs(400) },
  );
});
