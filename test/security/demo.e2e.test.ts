import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/db.ts';
import { createDatabase } from '../support/db.ts';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { dropRoles } from './neighbours.ts';

test.for(['DATABASE_URL', 'DATABASE_URL_FILE'])(
  'demo on a %s says how to look without its password',
  async (variable) => {
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
    const file = join(await temporaryFolder(), 'url');
    await writeFile(file, url.href);
    const { code, stdout, stderr } = await runProgram(['demo', '--once', '--skus', '120'], {
      [variable]: variable === 'DATABASE_URL' ? url.href : file,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain(password);
    expect(stdout).toContain(
      variable === 'DATABASE_URL' ? 'psql "$DATABASE_URL" -c' : 'psql "$(cat "$DATABASE_URL_FILE")" -c',
    );
  },
);
