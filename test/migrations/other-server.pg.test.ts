import { randomBytes } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { ALL, applied, everything } from './support.ts';

/*
 * Distributions build Postgres with their own patches: Debian's 15.20 refused a statement that 15.18, 17.10 and
 * 18.4 from npm accept. `.ci/run` names its machine's server, if there is one.
 */
const url = process.env['TEST_OTHER_POSTGRES_URL'];

test.skipIf(url === undefined)(
  "migrations create the same database on the distribution's own server",
  async () => {
    const admin = connect(url ?? '', { max: 1 });
    const name = `catalog_mirror_test_${randomBytes(8).toString('hex')}`;
    await admin.unsafe(`create database ${name}`);
    onTestFinished(async () => {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
    });
    const there = new URL(url ?? '');
    there.pathname = `/${name}`;
    await migrateDatabase(there.href);
    const database = connect(there.href, { max: 1 });
    onTestFinished(() => database.end());
    expect(await applied(database)).toBe(ALL);

    const ours = connect(inject('postgresUrl').replace(/\/[^/]*$/, '/migrated'), { max: 1 });
    onTestFinished(() => ours.end());
    expect((await everything(database)).schema).toEqual((await everything(ours)).schema);
  },
);
