import { expect, test } from 'vitest';
import { explain } from '../../src/cli/errors.ts';
import {
  adviceOn,
  obstacleOf,
  otherHint,
  remedyOf,
  remedyOfKind,
} from '../../src/store/connection/remedies.ts';

const postgres = (code: string, more: object = {}) =>
  Object.assign(new Error('as Postgres says it'), { code, severity: 'ERROR', ...more });

test.each([
  ['a trigger that raises', 'P0001', '', 'refused-by-trigger', /event trigger/],
  ['a lock that is not free in time', '55P03', '', 'locked', /store\.locked/],
  ['no replica identity', '55000', 'CheckCmdReplicaIdentity', 'replica-identity', /REPLICA IDENTITY/],
  ['a row filter', '42P10', 'CheckCmdReplicaIdentity', 'replica-identity', /row filter/],
  ['another column that does not fit', '42P10', 'transformOnConflictArbiter', null, null],
  ['another state that is wrong', '55000', 'nextval_internal', null, null],
  ['too large temporary files', '53400', 'FileWrite', 'temp-file-limit', /ALTER ROLE … SET temp_file_limit/],
  ['a read-only session', '25006', '', 'read-only', /pg_is_in_recovery.*default_transaction_read_only/],
  [
    'no connection for the role',
    '53300',
    'InitializeSessionUserId',
    'too-many-connections',
    /^raise its limit \(ALTER ROLE/,
  ],
  [
    'none for the database',
    '53300',
    'CheckMyDatabase',
    'too-many-connections',
    /^raise its limit \(ALTER DATABASE/,
  ],
  ['none for anybody', '53300', 'InitProcess', 'too-many-connections', /role.*database.*max_connections/],
  ['a constraint', '23514', '', null, null],
])('%s is recognised by its code, even wrapped in an error of a library', (_, code, routine, kind, hint) => {
  const error = postgres(code, { routine });
  for (const one of [error, new Error('Failed query', { cause: error })]) {
    expect(obstacleOf(one)).toBe(kind);
    if (hint === null) expect(remedyOf(one)).toBeNull();
    else expect(remedyOf(one)?.hint).toMatch(hint);
  }
});

test('an explanation says first what is in the way, then the cause, and then what to do', () => {
  expect(explain(postgres('25006')).split('\n')).toEqual([
    'this database, role or server takes no writes (read-only)',
    '  because: as Postgres says it',
    expect.stringMatching(/^ {2}what to do: point DATABASE_URL at the primary/),
  ]);
});

test("the mirror's own hint takes precedence, and the HINT of Postgres comes last", () => {
  const own = Object.assign(new Error('', { cause: postgres('53300') }), { hint: 'lower DATABASE_POOL_MAX' });
  expect(adviceOn(own)).toEqual({ what: null, hint: 'lower DATABASE_POOL_MAX' });
  expect(adviceOn(postgres('55P03', { hint: 'of Postgres' })).hint).toMatch(/store\.locked/);
  expect(adviceOn(postgres('42601', { hint: 'of Postgres' }))).toEqual({ what: null, hint: 'of Postgres' });
  expect(adviceOn('text')).toEqual({ what: null, hint: null });
});

test('an answering Postgres is not reported as away, and remedies can be looked up by kind', () => {
  expect(otherHint(postgres('XX000'))).toMatch(/^Postgres answers/);
  expect(otherHint(new Error('no connection'))).toMatch(/^check DATABASE_URL/);
  expect(remedyOfKind('locked')?.what).toMatch(/lock/);
  expect(remedyOfKind('fault')).toBeNull();
  expect(remedyOfKind(null)).toBeNull();
});
