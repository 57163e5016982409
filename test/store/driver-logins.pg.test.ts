import { randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { createPostgresQueues } from '../../src/queues/postgres-queues.ts';
import { connect, connectAlone } from '../../src/store/connection/db.ts';
import { createDatabase } from '../support/db.ts';

/** Returns whom the three ways to Postgres log in as: the pool, a connection of its own, and the queues. */
async function loginsBy(url: string): Promise<string[]> {
  const QUERY = 'select session_user::text as login';
  const sql = connect(url, { max: 1 });
  const queues = createPostgresQueues({
    databaseUrl: url,
    connections: 1,
    answerWithinMs: 5000,
    onError() {},
  });
  try {
    const [row] = await sql.unsafe<{ login: string }[]>(QUERY);
    const alone = await connectAlone(url, { application_name: 'a test' });
    const { rows } = await alone.query<{ login: string }>(QUERY);
    await alone.end();
    const queued = await queues.pool.query<{ login: string }>(QUERY);
    return [row, rows[0], queued.rows[0]].map((found) => found?.login ?? '');
  } finally {
    await Promise.all([sql.end({ timeout: 1 }), queues.close()]);
  }
}

test('if DATABASE_URL names no user, all connections of a daemon log in as the same one', async () => {
  const database = await createDatabase();
  const admin = connect(database.url, { max: 1 });
  const login = `login-${randomBytes(6).toString('hex')}`;
  await admin.unsafe(`create role "${login}" login password 'its-own'`);
  // One driver knows this variable and the system's user; the other uses USER.
  vi.stubEnv('PGUSERNAME', login);
  try {
    const url = Object.assign(new URL(database.url), { username: '', password: 'its-own' }).href;
    expect(await loginsBy(url)).toEqual([login, login, login]);
    expect(await loginsBy(database.url)).toEqual(Array(3).fill(new URL(database.url).username));
  } finally {
    vi.unstubAllEnvs();
    await admin.unsafe(`drop role "${login}"`);
    await admin.end({ timeout: 1 });
    await database.drop();
  }
});
