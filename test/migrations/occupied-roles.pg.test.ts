import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { readOccupied } from '../../src/store/setup/migrations.ts';
import { readRoles } from '../../src/store/setup/occupied.ts';
import { dropRoles } from '../security/neighbours.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createDatabase('empty');
  sql = connect(database.url, { max: 2 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});

async function someRole(): Promise<string> {
  const role = `mirror_${randomBytes(6).toString('hex')}`;
  onTestFinished(() => dropRoles(role));
  await sql.unsafe(`create role ${role}`);
  return role;
}

/**
 * Roles belong to the whole cluster, where other tests run: the roles with the real names are changed only in a
 * transaction that is rolled back.
 */
describe('existing roles of the cluster with the names of the mirror’s roles', () => {
  const undone = new Error('taken back');

  async function altered(statements: string, url = database.url) {
    const admin = connect(url, { max: 1 });
    let seen: Awaited<ReturnType<typeof readRoles>> = [];
    let occupied: Awaited<ReturnType<typeof readOccupied>>['occupied'] = [];
    try {
      await admin.begin(async (tx) => {
        await tx.unsafe(statements);
        seen = await readRoles(tx as unknown as Sql);
        ({ occupied } = await readOccupied(tx as unknown as Sql));
        throw undone;
      });
    } catch (error) {
      if (error !== undone) throw error;
    } finally {
      await admin.end();
    }
    return { seen, occupied };
  }

  test.each([
    ['SUPERUSER', 'superuser', 'NOSUPERUSER'],
    ['CREATEROLE', 'createrole', 'NOCREATEROLE'],
    ['CREATEDB', 'createdb', 'NOCREATEDB'],
    ['REPLICATION', 'replication', 'NOREPLICATION'],
    ['BYPASSRLS', 'bypassrls', 'NOBYPASSRLS'],
  ])('prevent a first start if one has %s', async (power, attribute, without) => {
    const { occupied } = await altered(`alter role catalog_reader ${attribute}`);
    expect(occupied).toMatchObject([
      {
        kind: 'role-of-another',
        text: expect.stringContaining(power) as string,
        remedy: expect.stringContaining(without) as string,
      },
    ]);
  });

  test('are reported with their login and members, which prevent nothing', async () => {
    const role = await someRole();
    const { seen, occupied } = await altered(
      `alter role catalog_watcher login; grant catalog_watcher to ${role}`,
    );
    expect(occupied).toEqual([]);
    expect(seen.find(({ role: name }) => name === 'catalog_watcher')).toMatchObject({
      canLogin: true,
      members: expect.arrayContaining([role]) as string[],
    });
  });

  test('prevent a first start if the reader is a member of the mirror’s role, or is that role', async () => {
    const role = await someRole();
    const member = await altered(`grant ${role} to catalog_reader; set local role ${role}`);
    expect(member.occupied).toMatchObject([
      { text: expect.stringContaining(`a member of ${role}`) as string },
    ]);
    const self = await altered('set local role catalog_reader');
    expect(self.occupied).toMatchObject([
      { text: expect.stringContaining('the role of the mirror itself') as string },
    ]);
  });

  test('prevent nothing once a mirror has run', async () => {
    const mirror = await createDatabase('migrated');
    onTestFinished(() => mirror.drop());
    const { occupied, seen } = await altered('alter role catalog_reader superuser', mirror.url);
    expect(occupied).toEqual([]);
    expect(seen.find(({ role }) => role === 'catalog_reader')).toMatchObject({ powers: ['SUPERUSER'] });
  });
});
