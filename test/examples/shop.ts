import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';

/**
 * Creates a role such as the examples ask for, until the test ends: a member of catalog_reader that owns the
 * schema shop and may create nothing in the database. Returns the database's URL with its login.
 */
export async function shopOwner(sql: Sql, database: string): Promise<string> {
  const role = `shop_${randomBytes(6).toString('hex')}`;
  onTestFinished(async () => void (await sql.unsafe(`drop owned by ${role} cascade; drop role ${role}`)));
  await sql.unsafe(`
    drop schema if exists shop cascade;
    create role ${role} login password 'x' in role catalog_reader;
    create schema shop authorization ${role}`);
  return Object.assign(new URL(database), { username: role, password: 'x' }).href;
}
