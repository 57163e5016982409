import { Redis } from 'ioredis';
import type { Sql } from '../../src/store/connection/db.ts';

/**
 * Returns every row of every table of the database, in any schema, as text. Temporary tables of other sessions are
 * left out: they cannot be read, and they come and go.
 */
export async function allRows(sql: Sql): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and c.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`;
  const rows = await Promise.all(
    tables.map(async ({ name }) => [
      name,
      await sql.unsafe(`select "the whole row"::text from ${name} "the whole row"`),
    ]),
  );
  return JSON.stringify(rows);
}

const READ: Readonly<Record<string, (redis: Redis, key: string) => Promise<unknown>>> = {
  string: (redis, key) => redis.get(key),
  hash: (redis, key) => redis.hgetall(key),
  list: (redis, key) => redis.lrange(key, 0, -1),
  set: (redis, key) => redis.smembers(key),
  zset: (redis, key) => redis.zrange(key, '0', '-1'),
  stream: (redis, key) => redis.xrange(key, '-', '+'),
};

/** Returns every key with this prefix and its whole value, as text. */
export async function allKeys(url: string, prefix: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const keys: string[] = [];
    let cursor = '0';
    do {
      const [next, found] = await redis.scan(cursor, 'MATCH', `${prefix}:*`, 'COUNT', 1000);
      keys.push(...found);
      cursor = next;
    } while (cursor !== '0');
    const values = keys.map(async (key) => {
      const type = await redis.type(key);
      // A key may vanish between the scan and the read.
      return type === 'none' ? [key] : [key, await readerOf(type)(redis, key)];
    });
    return JSON.stringify(await Promise.all(values));
  } finally {
    await redis.quit();
  }
}

function readerOf(type: string): (redis: Redis, key: string) => Promise<unknown> {
  const read = READ[type];
  if (read === undefined) throw new Error(`a key of type ${type}, which nobody reads`);
  return read;
}
