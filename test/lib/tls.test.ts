import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { connectionOf, TlsParameterError } from '../../src/lib/tls.ts';

const files = (path: string): string => {
  if (path === '/ca.pem') return 'CA';
  if (path === '/c.pem' || path === '/c.key') return path;
  throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
};

test.each([
  ['postgres://u:p@h/db', 'postgres://u:p@h/db'],
  ['postgres://u:p@h/db?sslmode=disable', 'postgres://u:p@h/db'],
  ['postgres://u:p@h/db?ssl=false&a=1', 'postgres://u:p@h/db?a=1'],
  ['postgres://u:p#x@h/db', 'postgres://u:p#x@h/db'],
  [
    'postgres://u:%2Fp@h:1,i:2/db?application_name=a%20b',
    'postgres://u:%2Fp@h:1,i:2/db?application_name=a%20b',
  ],
  ['redis://u:p@h:1/2', 'redis://u:p@h:1/2'],
])('%s connects without TLS', (url, bare) => {
  expect(connectionOf(url, files)).toEqual({ url: bare, tls: null });
});

test.each([
  ['postgres://h/db?sslmode=require', { rejectUnauthorized: false, servername: 'h' }],
  [
    'postgres://h/db?sslmode=require&sslrootcert=/ca.pem',
    { rejectUnauthorized: true, ca: 'CA', servername: 'h' },
  ],
  ['postgres://h/db?sslmode=verify-full', { rejectUnauthorized: true, servername: 'h' }],
  [
    'postgres://h/db?sslmode=verify-full&sslnegotiation=direct&uselibpqcompat=true',
    { rejectUnauthorized: true, servername: 'h' },
  ],
  ['postgres://h/db?ssl=true', { rejectUnauthorized: true, servername: 'h' }],
  ['postgres://h/db?sslrootcert=system', { rejectUnauthorized: true, servername: 'h' }],
  ['postgres://10.0.0.7/db?sslrootcert=%2Fca.pem', { rejectUnauthorized: true, ca: 'CA' }],
  ['postgres://[fd00::1]/db?sslrootcert=/ca.pem', { rejectUnauthorized: true, ca: 'CA' }],
  [
    'postgres://h/db?sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/c.key',
    { rejectUnauthorized: true, ca: 'CA', cert: '/c.pem', key: '/c.key', servername: 'h' },
  ],
  ['rediss://h', { rejectUnauthorized: true, servername: 'h' }],
  ['REDISS://h?sslmode=require', { rejectUnauthorized: false, servername: 'h' }],
])('%s connects with TLS', (url, options) => {
  const { url: bare, tls } = connectionOf(url, files);
  const { checkServerIdentity, ...rest } = tls ?? {};
  expect(rest).toEqual(options);
  expect(checkServerIdentity).toBeTypeOf('function');
  expect(bare).not.toMatch(/ssl/i);
});

test.each([
  ['postgres://u:canary@h/db?sslmode=prefer', 'sslmode'],
  ['postgres://u:canary@h/db?sslmode=allow', 'sslmode'],
  ['postgres://u:canary@h/db?sslmode=Verify-Full', 'sslmode'],
  ['postgres://u:canary@h/db?sslmode=', 'sslmode'],
  ['postgres://u:canary@h/db?sslmode=toString', 'sslmode'],
  ['postgres://u:canary@h/db?sslmode=disable&sslmode=verify-full', 'sslmode once'],
  ['postgres://u:canary@h/db?sslmode=verify-ca', 'sslrootcert'],
  ['postgres://u:canary@h/db?sslmode=verify-ca&sslrootcert=system', 'sslrootcert'],
  ['postgres://u:canary@h/db?sslrootcert=/canary', 'sslrootcert to be the path of a readable file (ENOENT)'],
  ['postgres://u:canary@h/db?sslrootcert=/ca.pem&sslcert=/c.pem', 'sslcert and sslkey'],
  ['redis://u:canary@h?sslmode=verify-full', 'rediss://'],
  ['redis://u:canary@h?sslrootcert=/ca.pem', 'rediss://'],
  ['rediss://u:canary@h?sslmode=disable', 'rediss://'],
])('%s is a configuration problem, reported without a secret', (url, told) => {
  expect(() => connectionOf(url, files)).toThrow(TlsParameterError);
  const name = url.startsWith('postgres') ? 'DATABASE_URL' : 'REDIS_URL';
  const env = {
    PARTNER_BASE_URL: 'https://a.example',
    PARTNER_API_KEY: 'k',
    PARTNER_SECRET: 's',
    [name]: url,
  };
  let message = '';
  try {
    loadConfig(env, files);
  } catch (error) {
    message = String(error);
  }
  expect(message).toContain(`${name}: expected `);
  expect(message).toContain(told);
  expect(message).not.toContain('canary');
});
