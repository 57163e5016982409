import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../support/soak.ts';
import { expectSound, FIELDS, FORMS, HOUR, KINDS, type Step, World } from './entry-forms-world.ts';

const process = fc.constantFrom(0, 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      does: fc.constant('answer' as const),
      by: process,
      entries: fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 4 }),
      records: fc.constantFrom(1, 1, 25),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('member' as const), field: fc.constantFrom(...FIELDS) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('renames' as const),
      to: fc.constantFrom(...FORMS),
      keeps: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('restart' as const), which: process }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('time' as const), minutes: fc.constantFrom(1, 29, 61) }),
  },
);
const steps = fc.array(step, { minLength: 10, maxLength: 60 });

test('once a form is held, no other member becomes a price, and unreadable entries never mean sold out', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...FORMS), steps, async (field, drawn) => {
      const world = new World(field);
      for (const drawnStep of drawn) {
        const answered = await world.step(drawnStep);
        if (answered !== null) expectSound(answered);
      }
    }),
    { numRuns: runs(400) },
  );
});

test('a form that all entries use is held within an hour and five answers, whatever happened before', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...FORMS),
      steps,
      fc.constantFrom(...FORMS),
      async (first, drawn, last) => {
        const world = new World(first);
        for (const drawnStep of drawn) await world.step(drawnStep);
        world.field = last;
        world.forgetMembers();
        // What a process has not heard of yet, it picks up with its next answer but one.
        world.pass(0);
        await world.answer(0, ['offered'], 25);
        world.pass(HOUR);
        for (const by of [1, 0, 1, 0]) await world.answer(by, ['offered', 'sold']);
        expect(world.held).toEqual({ field: last });
      },
    ),
    { numRuns: runs(300) },
  );
});
