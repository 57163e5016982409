import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { damageLines, readDamage, UNDAMAGED } from '../../src/cli/doctor/damage.ts';
import { readConnections } from '../../src/cli/doctor/postgres-facts.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

let database: TestDatabase;
let admin: Sql;
const role = `limited_${randomBytes(4).toString('hex')}`;

beforeAll(async () => {
  database = await createDatabase('migrated');
  admin = connect(database.url, { max: 1 });
  await admin.unsafe(`create role ${role} login password '${role}' connection limit 4`);
});
afterAll(async () => {
  await admin.unsafe(`drop role ${role}`);
  await admin.end({ timeout: 1 });
  await database.drop();
});

/** Runs `work` as a role that owns nothing and cannot see the sessions of others. */
async function asOther<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connect(Object.assign(new URL(database.url), { username: role, password: role }).href, {
    max: 1,
  });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

test('a fresh mirror has no damage', async () => {
  expect(await readDamage(admin)).toEqual(UNDAMAGED);
  expect(damageLines(UNDAMAGED)).toEqual([]);
});

test('disabled and missing parts are named, and the advice restores them', async () => {
  await admin.unsafe(`
    alter table catalog.skus disable trigger user;
    alter table catalog.watchlist enable trigger watch_added;
    alter table catalog.watchlist disable trigger watch_deleted;
    alter table catalog.prices enable row level security;
    drop view catalog.calibration`);
  const damage = await readDamage(admin);
  expect(damage).toEqual({
    hidden: [],
    closed: ['catalog.prices'],
    disabled: [
      { name: 'forget_all', table: 'catalog.skus' },
      { name: 'forget_with_skus', table: 'catalog.skus' },
      { name: 'watch_deleted', table: 'catalog.watchlist' },
    ],
    gone: ['catalog.calibration'],
    dropping: [],
  });
  expect(await asOther(readDamage)).toMatchObject({ hidden: ['catalog.prices'], closed: [] });
  const lines = damageLines(damage);
  expect(lines.map(({ level, check }) => `${level} ${check}`)).toEqual([
    'WARN row security',
    'FAIL own triggers',
    'FAIL views',
  ]);
  const advice = lines.flatMap(({ remedy = '' }) => remedy.match(/ALTER TABLE [^;]+/g) ?? []);
  for (const statement of advice) await admin.unsafe(statement);
  expect(await readDamage(admin)).toEqual({ ...UNDAMAGED, gone: ['catalog.calibration'] });
});

test('a foreign trigger that always drops rows is a fault whatever its name, and one that may is reported', async () => {
  await admin.unsafe(`
    create function public.nothing() returns trigger language plpgsql as 'begin return null; end';
    create function public.cheap() returns trigger language plpgsql as
      'begin if new.price < 5 then return  NULL; end if; return new; end';
    create trigger "none on all" before insert or update on catalog.prices for each row execute function public.nothing();
    create trigger cheap before insert on catalog.prices for each row execute function public.cheap();
    create trigger later after insert on catalog.prices for each row execute function public.nothing();
    create trigger once before insert on catalog.prices for each statement execute function public.nothing();
    create trigger off before insert on catalog.skus for each row execute function public.nothing();
    alter table catalog.skus disable trigger off`);
  const lines = damageLines({ ...UNDAMAGED, dropping: (await readDamage(admin)).dropping });
  expect(lines).toMatchObject([
    { level: 'FAIL', check: 'triggers', text: expect.stringMatching(/: "none on all" on catalog\.prices$/) },
    { level: 'WARN', check: 'triggers', text: expect.stringMatching(/: cheap on catalog\.prices$/) },
  ]);
  await admin.unsafe('drop function public.nothing, public.cheap cascade');
});

test('the advice for a disabled trigger holds whatever its name', () => {
  const disabled = [{ name: '"a on b"', table: 'catalog.skus' }];
  expect(damageLines({ ...UNDAMAGED, disabled })[0]?.remedy).toBe(
    'ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER "a on b"',
  );
});

test('row-level security with a policy is accepted, unless it applies to the mirror, too', async () => {
  await admin.unsafe(`
    alter table catalog.products enable row level security;
    create policy mine on catalog.products for select using (true)`);
  expect(await readDamage(admin)).toMatchObject({ hidden: [], closed: [] });
  const [line] = damageLines({ ...UNDAMAGED, hidden: (await asOther(readDamage)).hidden });
  expect(line).toMatchObject({
    level: 'FAIL',
    remedy: 'ALTER TABLE catalog.products NO FORCE ROW LEVEL SECURITY',
  });
  // A company rule that enables it on every table, and lets the mirror see and write everything.
  await admin.unsafe(`
    drop policy mine on catalog.products;
    create policy everyone on catalog.products using (true) with check (true)`);
  expect(await asOther(readDamage)).toMatchObject({ hidden: [] });
  await admin.unsafe('create policy few on catalog.products as restrictive using (sku < $$M$$)');
  expect(await asOther(readDamage)).toMatchObject({ hidden: ['catalog.products'] });
  await admin.unsafe('alter table catalog.products disable row level security');
});

test("sessions of other roles count against the server's limit, not the role's", async () => {
  const others = connect(database.url, { max: 3, name: 'shop' });
  try {
    await Promise.all([1, 2, 3].map(() => others`select pg_sleep(0.2)`));
    expect(await asOther(readConnections)).toEqual({
      connectionLimit: 4,
      connectionsMost: 4,
      connectionsOthers: 0,
    });
    await admin.unsafe(`alter role ${role} connection limit -1`);
    const { connectionLimit, connectionsOthers } = await asOther(readConnections);
    expect(connectionLimit).toBeNull();
    expect(connectionsOthers).toBeGreaterThanOrEqual(3);
  } finally {
    await others.end({ timeout: 1 });
  }
});
