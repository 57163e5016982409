import { expect, test } from 'vitest';
import { faultKind } from '../../src/sync/reprice/slice.ts';

const answered = (code: string, more: object = {}) =>
  Object.assign(new Error('of Postgres'), { code, severity: 'ERROR', ...more });

test.each<[string, unknown, string | null]>([
  ['a column that is gone', answered('42703'), '42703'],
  ['a privilege that is lacking', answered('42501'), '42501'],
  ['one that a library has wrapped', new Error('of a library', { cause: answered('42P01') }), 'defect'],
  ['a defect', new TypeError('undefined is not a function'), 'defect'],
  ['a lock', answered('55P03'), null],
  ['a deadlock', answered('40P01'), null],
  ['a full disk', answered('53100'), null],
  ['no writes', answered('25006'), null],
  ['a session that was ended', answered('57P01', { severity: 'FATAL' }), null],
  ['a connection that was lost', Object.assign(new Error('closed'), { code: 'CONNECTION_CLOSED' }), null],
])('%s', (_, error, kind) => {
  expect(faultKind(error)).toBe(kind);
});
