import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { dropRoles } from '../security/neighbours.ts';
import { createDatabase, type TestDatabase } from './db.ts';

/** A mirror that belongs to its own role, as if its daemon had migrated it. */
export interface GivenMirror extends AsyncDisposable {
  /** The role, and DATABASE_URL with its login or with another one. */
  readonly role: string;
  readonly url: string;
  readonly as: (login: string, password?: string) => string;
  /** The administrator's login, and a pool that uses it. */
  readonly adminUrl: string;
  readonly admin: Sql;
}

const PASSWORD = 'x';

/**
 * SQL that gives everything in the mirror's schemas to a role; sequences and partitions follow their tables or are
 * listed themselves.
 */
const givingTo = (role: string) => `
  do $$
  declare one text;
  begin
    for one in
      with own as (select oid, nspname from pg_namespace where nspname in ('catalog', 'catalog_internal', 'catalog_queue'))
      select format('schema %I', nspname) from own
      union all
      select format('%s %s', case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, c.oid::regclass)
      from pg_class c join own n on n.oid = relnamespace
      where relkind in ('r', 'p', 'v', 'S') and not exists (
        select from pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i') and relkind = 'S')
      union all
      select format('type %s', t.oid::regtype) from pg_type t join own n on n.oid = typnamespace
      where typtype = 'e' or typrelid in (select oid from pg_class where relkind = 'c')
      union all
      select format('routine %s', p.oid::regprocedure) from pg_proc p join own n on n.oid = pronamespace
    loop
      execute format('alter %s owner to ${role}', one);
    end loop;
  end $$`;

/** Creates one from the run's migrated database, or as a copy of another with the same role. */
export async function giveMirror(like?: GivenMirror): Promise<GivenMirror> {
  const role = like?.role ?? `given_${randomBytes(4).toString('hex')}`;
  const database: TestDatabase = await createDatabase(like === undefined ? 'migrated' : { copyOf: like.url });
  const admin = connect(database.url, { max: 1 });
  if (like === undefined) {
    await admin.unsafe(`create role ${role} login password '${PASSWORD}'`);
    await admin.unsafe(givingTo(role));
  }
  const name = new URL(database.url).pathname.slice(1);
  await admin.unsafe(`grant create, temporary on database ${name} to ${role}`);
  const as = (login: string, password = PASSWORD) =>
    Object.assign(new URL(database.url), { username: login, password }).href;
  return {
    role,
    url: as(role),
    as,
    adminUrl: database.url,
    admin,
    async [Symbol.asyncDispose]() {
      await admin.end({ timeout: 1 });
      await database.drop();
      if (like === undefined) await dropRoles(role);
    },
  };
}

/** One for copies: it has the SKU A1, and nobody is connected to it. */
export async function writtenMirror(): Promise<GivenMirror> {
  const mirror = await giveMirror();
  await mirror.admin`insert into catalog.skus (sku, in_manifest, state) values ('A1', true, 'not_found')`;
  // As one that is written to: copies of it have all sequences looked at before they are.
  await mirror.admin`select catalog_internal.lock_changes()`;
  await mirror.admin.end({ timeout: 1 });
  return mirror;
}

/** A copy, for the length of one test, on which these statements were run; `mirror_role` stands for its role. */
export async function spoiltCopy(like: GivenMirror, statements: readonly string[]): Promise<GivenMirror> {
  const mirror = await giveMirror(like);
  onTestFinished(() => mirror[Symbol.asyncDispose]());
  for (const statement of statements)
    await mirror.admin.unsafe(statement.replaceAll('mirror_role', mirror.role));
  return mirror;
}
