import { expect, test } from 'vitest';
import {
  isLoginRejected,
  isNotLetIn,
  permanentConnectError,
  rejection,
  storeFailure,
} from '../../src/store/connection/sql-errors.ts';

const WAY = { role: 'mirror', database: 'shop', isClear: true };
const failed = (code: string, routine?: string) =>
  Object.assign(new Error('of a driver'), { severity: 'ERROR', code, routine });

test.each([
  ['28P01', 'Postgres rejects the login', 'user and password'],
  ['28000', 'Postgres rejects the login', 'user and password'],
  ['3D000', 'Postgres answers, and does not have this database', 'CREATE DATABASE'],
  ['CERT_HAS_EXPIRED', 'the certificate of Postgres is not trusted', 'sslrootcert'],
])('%s is permanent, and not waited for: %s', (code, what, hint) => {
  expect(permanentConnectError(new Error('wrapped', { cause: failed(code) }), WAY)).toEqual({
    what,
    hint: expect.stringContaining(hint),
  });
});

test.each([
  [
    '42501',
    'Postgres does not let this role connect to the database',
    'GRANT CONNECT ON DATABASE "shop" TO "mirror"',
  ],
  ['55000', 'the database takes no connections', 'ALTER DATABASE "shop" ALLOW_CONNECTIONS true'],
])('%s at a login is permanent, but has no advice if a statement fails with it: %s', (code, what, hint) => {
  const ended = Object.assign(failed(code), { severity: 'FATAL' });
  expect(permanentConnectError(ended, WAY)).toEqual({ what, hint: expect.stringContaining(hint) });
  expect(permanentConnectError(failed(code), WAY)).toBeNull();
});

test('a setting that a session may not start with is not a missing CONNECT privilege', () => {
  const ended = (routine: string) => Object.assign(failed('42501', routine), { severity: 'FATAL' });
  expect(permanentConnectError(ended('CheckMyDatabase'), WAY)?.hint).toMatch('GRANT CONNECT');
  for (const routine of ['call_string_check_hook', 'set_config_option', 'InitPostgres'])
    expect(permanentConnectError(ended(routine), WAY)).toBeNull();
});

test.each([
  [true, 'sslmode=verify-full'],
  [false, 'ask'],
])('a missing pg_hba.conf entry is blamed on neither user nor password: in the clear %s', (isClear, told) => {
  const refused = failed('28000', 'ClientAuthentication');
  expect(permanentConnectError(refused, { ...WAY, isClear })).toEqual({
    what: "the server's pg_hba.conf lets no such connection in",
    hint: expect.stringMatching(told) as unknown,
  });
  expect([isLoginRejected(refused), isNotLetIn(refused)]).toEqual([false, true]);
  const unknown = failed('28000', 'InitializeSessionUserId');
  expect([isLoginRejected(unknown), isNotLetIn(unknown)]).toEqual([true, false]);
});

test.each(['ECONNREFUSED', '57P03', '53300', 'CONNECT_TIMEOUT'])('%s may be temporary', (code) => {
  expect(permanentConnectError(failed(code), WAY)).toBeNull();
});

test.each([
  ['PreCommit_Notify', 'notify-queue-full'],
  ['GetNewTransactionId', 'out-of-transaction-ids'],
  ['GetNewMultiXactId', 'out-of-transaction-ids'],
])('a server limit in %s is not blamed on the rows: %s', (routine, kind) => {
  const error = new Error('wrapped', { cause: failed('54000', routine) });
  expect([storeFailure(error), rejection(error)]).toEqual([kind, null]);
});

test('a row limit is blamed on that row, and other errors of a function are not blamed on the server', () => {
  const tooLong = failed('54000', '_bt_check_third_page');
  expect([storeFailure(tooLong), rejection(tooLong)?.state]).toEqual([null, '54000']);
  const others = failed('22023', 'PreCommit_Notify');
  expect([storeFailure(others), rejection(others)?.state]).toEqual([null, '22023']);
});

test('a duplicate number is not blamed on the rows that should get it; a duplicate key of theirs is', () => {
  const taken = (constraint_name: string) =>
    rejection(Object.assign(failed('23505'), { constraint_name }))?.state ?? null;
  const numbered = ['price_history_12_pkey', 'product_history_pkey', 'change_batches_pkey'];
  expect(numbered.map(taken)).toEqual([null, null, null]);
  expect(['prices_pkey', 'price_history_x_pkey', 'mine'].map(taken)).toEqual(['23505', '23505', '23505']);
});

test('a missing chunk of the history is not blamed on the rows that belong there', () => {
  const without = (table_name: string, more = {}) =>
    rejection(Object.assign(failed('23514'), { schema_name: 'catalog_internal', table_name, ...more }))
      ?.state ?? null;
  expect([without('price_history', { schema_name: 'catalog' }), without('price_history_default')]).toEqual([
    null,
    null,
  ]);
  // A check that somebody added has a name, and another table says nothing about the feed.
  expect([
    without('price_history_7', { constraint_name: 'mine' }),
    without('price_history', { schema_name: 'shop' }),
    without('due'),
  ]).toEqual(['23514', '23514', '23514']);
});

test.each([
  ['53000', 'too many open files', 'BasicOpenFilePerm'],
  ['53400', 'more temporary files than are allowed', 'FileWriteV'],
  ['58030', 'an error of the disk', 'mdreadv'],
  ['58P01', 'a file that is missing', 'mdopenfork'],
  ['XX000', 'a quota', 'mdextend'],
  ['42501', 'a file system that became read-only', 'mdwritev'],
  ['XX001', 'a page that is corrupted', 'PageIsVerifiedExtended'],
  ['XX002', 'an index that is corrupted', '_bt_checkpage'],
])('%s of the server (%s) is not blamed on the rows', (code, _what, routine) => {
  expect(rejection(failed(code, routine))).toBeNull();
});

test.each([
  ['XX000', 'exec_stmt_raise'],
  ['42501', 'aclcheck_error'],
])('%s from %s, as a trigger may raise it, is blamed on the rows', (code, routine) => {
  expect(rejection(failed(code, routine))?.state).toBe(code);
});
