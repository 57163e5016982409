import { randomBytes } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { makeTemplate } from './template.ts';

test('a template whose migration fails is not used, and the next run creates it', async () => {
  const server = inject('postgresUrl');
  const name = `template_${randomBytes(6).toString('hex')}`;
  const admin = connect(server, { max: 1 });
  onTestFinished(async () => {
    await admin.unsafe(`drop database if exists ${name}`);
    await admin.end({ timeout: 1 });
  });
  const filling = (statements: string) => async (url: string) => {
    const sql = connect(url, { max: 1 });
    try {
      await sql.unsafe(statements);
    } finally {
      await sql.end({ timeout: 1 });
    }
  };
  const isThere = async () => (await admin`select from pg_database where datname = ${name}`).length === 1;
  const half = makeTemplate(server, name, filling('create table public.half (made int); select 1 / 0'));
  await expect(half).rejects.toThrow('division by zero');
  expect(await isThere()).toBe(false);
  await makeTemplate(server, name, filling('create table public.whole (made int)'));
  expect(await isThere()).toBe(true);
  // A third run finds it.
  await makeTemplate(server, name, () => Promise.reject(new Error('not filled again')));
});
