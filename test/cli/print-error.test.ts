import { expect, test } from 'vitest';
import { explain } from '../../src/cli/errors.ts';

test('an error is printed with its causes and its remedy', () => {
  const error = Object.assign(new Error('no answer', { cause: new Error('refused') }), { hint: 'start it' });
  expect(explain(error)).toBe('no answer\n  because: refused\n  what to do: start it');
  expect(explain('text')).toBe('text');
});

test('an error without a message is printed by the errors it contains, its code or its name', () => {
  // What Node.js throws if a name has two addresses and neither answers.
  const refused = (address: string) => new Error(`connect ECONNREFUSED ${address}:5432`);
  const both = Object.assign(new AggregateError([refused('::1'), refused('127.0.0.1')]), {
    code: 'ECONNREFUSED',
  });
  expect(explain(new Error('Postgres does not answer', { cause: both }))).toBe(
    'Postgres does not answer\n  because: connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432',
  );
  expect(explain(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED');
  expect(explain(new TypeError(''))).toBe('TypeError');
});
