import { randomBytes } from 'node:crypto';
import type { Sql } from '../../src/store/connection/db.ts';

export interface ActingLogins extends AsyncDisposable {
  /** The role as which the logins act. */
  readonly owner: string;
  /** Creates another login each time; returns DATABASE_URL with it. */
  login(): Promise<string>;
}

/**
 * Creates logins that act as another role (ALTER ROLE … SET role), of which they are members but not vice versa,
 * like those from Vault. That role may do everything in the database, and sees the activity of no session but its
 * own.
 */
export async function actingLogins(sql: Sql, databaseUrl: string): Promise<ActingLogins> {
  const owner = `owner_${randomBytes(4).toString('hex')}`;
  const database = new URL(databaseUrl).pathname.slice(1);
  await sql.unsafe(`create role ${owner}; grant all on database ${database} to ${owner}`);
  const schemas = await sql<{ name: string }[]>`
    select nspname as name from pg_namespace where nspname in ('catalog', 'catalog_internal')`;
  for (const { name } of schemas)
    for (const what of [
      `schema ${name}`,
      ...['tables', 'sequences', 'functions'].map((all) => `all ${all} in schema ${name}`),
    ])
      await sql.unsafe(`grant all on ${what} to ${owner}`);
  const logins: string[] = [];
  return {
    owner,
    async login() {
      const login = `login_${randomBytes(4).toString('hex')}`;
      await sql.unsafe(
        `create role ${login} login password 'x' in role ${owner}; alter role ${login} set role = ${owner}`,
      );
      logins.push(login);
      return Object.assign(new URL(databaseUrl), { username: login, password: 'x' }).href;
    },
    async [Symbol.asyncDispose]() {
      for (const login of logins) await sql.unsafe(`drop role ${login}`);
      await sql.unsafe(`drop owned by ${owner} cascade; drop role ${owner}`);
    },
  };
}
