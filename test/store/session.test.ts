import fc from 'fast-check';
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test, vi } from 'vitest';
import { applicationName, loneUrl, SESSION, sessionConnection } from '../../src/store/connection/session.ts';

const pins = Object.keys(SESSION).length;

test.each([
  ['postgres://h/db', 'postgres://h/db'],
  ['postgres://h/db?search_path=public', 'postgres://h/db'],
  ['postgres://h/db?Search_Path=public&connect_timeout=9', 'postgres://h/db?connect_timeout=9'],
  ['postgres://h/db?connect_timeout=9&statement%5Ftimeout=5', 'postgres://h/db?connect_timeout=9'],
  ['postgres://h/db?Application%5Fname=a', 'postgres://h/db'],
  ['postgres://u:p%3Fw@h/db?datestyle=German', 'postgres://u:p%3Fw@h/db'],
])('from %s the drivers get %s', (given, url) => {
  expect(sessionConnection(given).url).toBe(url);
});

test('options of the URL come first, so that pinned settings take precedence over them', () => {
  const { url, options } = sessionConnection(
    'postgres://h/db?options=-c%20search_path%3Dpublic%20-c%20geqo%3Doff&x=1',
  );
  expect(url).toBe('postgres://h/db?x=1');
  expect(options.startsWith('-c search_path=public -c geqo=off -c search_path=pg_catalog ')).toBe(true);
  expect(options.split('-c ')).toHaveLength(pins + 3);
});

test('a space in a value is escaped as part of it', () => {
  expect(sessionConnection('postgres://h/db').options).toContain(
    'default_transaction_isolation=read\\ committed ',
  );
});

test('both drivers read the same database name from a URL, whatever the name', () => {
  const asWritten = fc.constantFrom(encodeURIComponent, encodeURI, (name: string) =>
    name.replaceAll('%', '%25'),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), asWritten, (name, written) => {
      // Dots between slashes are relative path steps, which pg resolves.
      fc.pre(!/[?#]/.test(name) && name.isWellFormed() && !/[\s\\]|(?:^|\/)\.+(?:\/|$)/.test(name));
      const {
        url,
        options: _,
        ...connection
      } = sessionConnection(`postgres://u:p%2F@h:1/${written(name)}?x=1`);
      expect(postgres(url, connection).options.database).toBe(name);
      expect(new pg.Client({ connectionString: url }).database).toBe(name);
    }),
    {
      examples: [
        ['my db', encodeURIComponent],
        ['a%41/b', encodeURIComponent],
        ['café@x', encodeURI],
      ],
    },
  );
});

test.each([
  'postgres://u:p%2F@/my%20db?host=/run/pg%20sockets&port=5433&connect_timeout=9',
  'postgresql://u:p%2F@db.example:1/my%20db?connect_timeout=9&port=5433&host=%2Frun%2Fpg%20sockets',
  'postgres://u:p%2F@%2Frun%2Fpg%20sockets:5433/my%20db?connect_timeout=9',
  'postgres://u:p%2F@:5433/my%20db?connect_timeout=9&sslmode=require&host=/run/pg%20sockets',
])('both drivers connect to the same Unix socket for %s', (written) => {
  const { url, options: _, ...connection } = sessionConnection(written);
  expect(connection.ssl).toBe(false);
  const { path, user, pass, database, connection: parameters } = postgres(url, connection).options as never;
  expect({ path, user, pass, database, parameters }).toMatchObject({
    path: '/run/pg sockets/.s.PGSQL.5433',
    user: 'u',
    pass: 'p/',
    database: 'my db',
  });
  expect(parameters).not.toHaveProperty('host');
  expect(new pg.Client({ connectionString: loneUrl(written) })).toMatchObject({
    host: '/run/pg sockets',
    port: 5433,
    user: 'u',
    password: 'p/',
    database: 'my db',
  });
});

test('a socket directory may contain colons, as with Google’s proxy', () => {
  const written = 'postgres://u:p@/db?host=/cloudsql/project:region:instance';
  const { url, options: _, ...connection } = sessionConnection(written);
  const { path } = postgres(url, connection).options as never;
  expect(path).toBe('/cloudsql/project:region:instance/.s.PGSQL.5432');
  expect(new pg.Client({ connectionString: loneUrl(written) })).toMatchObject({
    host: '/cloudsql/project:region:instance',
    port: 5432,
  });
});

test('a URL without a database leaves the choice to the drivers', () => {
  expect(sessionConnection('postgres://h')).not.toHaveProperty('database');
  expect(sessionConnection('postgres://h/?x=%41')).not.toHaveProperty('database');
});

test.each([
  ['postgres://h/db', 'catalog-mirror'],
  ['postgres://h/db?application_name=', 'catalog-mirror'],
  ['postgres://h/db?x=1&Application%5FName=our%20shop', 'catalog-mirror (our shop)'],
])('sessions of %s are named %s', (url, name) => {
  expect(applicationName('catalog-mirror', url)).toBe(name);
});

test.each([
  ['postgres://u:p@[::1]/d', '::1', 5432],
  ['postgres://u:p@[2001:db8::1]:5433/my%20db?sslmode=require', '2001:db8::1', 5433],
  ['postgres://u:p%40@[FD00:10::5]/d?connect_timeout=9', 'fd00:10::5', 5432],
  ['postgres://[::ffff:10.0.0.7]:1/d', '::ffff:a00:7', 1],
  ['postgres://u:p@ss@[::1]/d', '::1', 5432],
  ['postgres://u:p@/d?host=::1', '::1', 5432],
  ['postgres://u:p@other:1/d?sslmode=require&port=5433&host=[fd00::1]', 'fd00::1', 5433],
  ['postgres:///d?host=db.example', 'db.example', 5432],
  ['postgres://u:p@/d?host=db.example&port=5433', 'db.example', 5433],
  ['postgres://u:p@db.example:1/d?port=5433', 'db.example', 5433],
])('both drivers connect to the same host for %s', (written, host, port) => {
  // For an IPv6 address, neither driver uses PGPORT.
  if (host.includes(':')) vi.stubEnv('PGPORT', '1');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { url, options: _, ...connection } = sessionConnection(written);
  expect(postgres(url, connection).options).toMatchObject({ host: [host], port: [port] });
  expect(new pg.Client({ connectionString: loneUrl(written) })).toMatchObject({ host, port });
});
