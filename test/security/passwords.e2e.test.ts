import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { startProgram, temporaryFolder } from '../support/process.ts';
import { dropRoles } from './neighbours.ts';

test.concurrent.for(['DATABASE_URL', 'DATABASE_URL_FILE'])(
  'demo on a %s prints how to connect without its password',
  async (variable, { expect, onTestFinished }) => {
    const database = await createDatabase();
    const role = `seller_${randomBytes(6).toString('hex')}`;
    const password = 'PRODUCTIONpassw0rd';
    onTestFinished(async () => {
      await database.drop();
      await dropRoles(role);
    });
    const admin = connect(database.url, { max: 1 });
    await admin.unsafe(`
    create role ${role} login password '${password}';
    grant create on database ${new URL(database.url).pathname.slice(1)} to ${role}`);
    await admin.end();
    const url = new URL(database.url);
    url.username = role;
    url.password = password;
    const file = join(await temporaryFolder(onTestFinished), 'url');
    await writeFile(file, url.href);
    await using demo = startProgram(['demo', '--skus', '120'], {
      [variable]: variable === 'DATABASE_URL' ? url.href : file,
    });
    await eventually(() => demo.stdout.some((line) => line.includes('status --watch')), {
      what: 'where to look',
    });
    expect(await demo.end('SIGINT')).toMatchObject({ code: 0 });
    const said = [...demo.stdout, ...demo.stderr].join('\n');
    expect(said).not.toContain(password);
    expect(said).toContain(
      variable === 'DATABASE_URL' ? 'psql "$DATABASE_URL"\n' : 'psql "$(cat "$DATABASE_URL_FILE")"\n',
    );
    expect(said).toContain('stopped; the mirror is kept in the database of DATABASE_URL');
  },
);

test('run warns at its start which connections send a password in clear text to another host', async () => {
  await using daemon = startProgram(['run'], {
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'of the partner',
    PARTNER_BASE_URL: 'https://partner.invalid',
    DATABASE_URL: 'postgres://seller:PRODUCTIONpassw0rd@db.invalid/shop',
    REDIS_URL: 'redis://:PRODUCTIONpassw0rd@cache.invalid',
  });
  await daemon.until('config.warning');
  await daemon.until('database.waiting');
  const warnings = daemon.logged('config.warning').map(({ warning }) => warning);
  expect(warnings).toEqual([
    expect.stringMatching(
      /^DATABASE_URL: the connection to db\.invalid is not encrypted, the password included; add sslmode/,
    ),
    expect.stringMatching(
      /^REDIS_URL: the connection to cache\.invalid is not encrypted, the password included; use rediss/,
    ),
  ]);
  expect(daemon.stdout.join('')).not.toContain('PRODUCTIONpassw0rd');
});
