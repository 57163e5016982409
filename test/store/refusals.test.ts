import { expect, test } from 'vitest';
import { permanentConnectError } from '../../src/store/sql-errors.ts';

const failed = (code: string) => Object.assign(new Error('of a driver'), { code });

test.each([
  ['28P01', 'Postgres rejects the login', 'user and password'],
  ['28000', 'Postgres rejects the login', 'user and password'],
  ['3D000', 'Postgres answers, and does not have this database', 'CREATE DATABASE'],
  ['CERT_HAS_EXPIRED', 'the certificate of Postgres is not trusted', 'sslrootcert'],
])('%s is an end, and not a wait: %s', (code, what, hint) => {
  expect(permanentConnectError(new Error('wrapped', { cause: failed(code) }))).toEqual({
    what,
    hint: expect.stringContaining(hint),
  });
});

test.each(['ECONNREFUSED', '57P03', '53300', 'CONNECT_TIMEOUT'])('%s may pass', (code) => {
  expect(permanentConnectError(failed(code))).toBeNull();
});
