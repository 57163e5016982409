import { randomBytes } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';

test.each(['WIN1252', 'SQL_ASCII', 'LATIN1'])(
  'a database in %s is refused with advice, and nothing is created in it',
  async (encoding) => {
    const name = `encoding_${randomBytes(6).toString('hex')}`;
    const url = Object.assign(new URL(inject('postgresUrl')), { pathname: `/${name}` }).href;
    const admin = connect(inject('postgresUrl'), { max: 1 });
    const [{ provider }] = await admin<[{ provider: string }]>`
      select case when current_setting('server_version_num')::int >= 150000 then 'locale_provider libc' else '' end as provider`;
    await admin.unsafe(
      `create database ${name} encoding '${encoding}' ${provider} lc_collate 'C' lc_ctype 'C' template template0`,
    );
    const sql = connect(url, { max: 1 });
    try {
      await expect(migrateDatabase(url)).rejects.toMatchObject({
        name: 'EncodingError',
        message: expect.stringContaining(encoding) as string,
        hint: expect.stringContaining("ENCODING 'UTF8' TEMPLATE template0") as string,
      });
      expect(await sql`select from pg_namespace where nspname like 'catalog%'`).toHaveLength(0);
    } finally {
      await sql.end({ timeout: 2 });
      await admin.unsafe(`drop database ${name}`);
      await admin.end({ timeout: 2 });
    }
  },
);
