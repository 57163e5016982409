import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { createStack } from '../support/stack.ts';
import { canary, findings } from './canaries.ts';
import { allKeys, allRows } from './sinks.ts';

describe('the search for canaries', () => {
  const forms: [string, (text: string) => string][] = [
    ['as it is', (core) => core],
    ['cut off', (core) => core.slice(0, 20)],
    ['percent-encoded', (core) => encodeURIComponent(`/ü${core}+`)],
    ['in JSON in JSON', (core) => JSON.stringify(JSON.stringify(`"${core}\n`))],
    ...['', 'a', 'ab'].map((before): [string, (text: string) => string] => [
      `in base64 behind ${before.length} bytes`,
      (core) => Buffer.from(`${before}${core}:more`).toString('base64'),
    ]),
    ['in hexadecimal', (core) => Buffer.from(core).toString('hex')],
    ['in HEXADECIMAL', (core) => Buffer.from(core).toString('hex').toUpperCase()],
  ];

  test.each(forms)('finds a canary %s', (_, write) => {
    const one = canary('planted');

    expect(findings({ place: `before ${write(one.core)} after` }, [one]).length).toBeGreaterThan(0);
    expect(findings({ place: `before ${write(canary('other').core)} after` }, [one])).toEqual([]);
  });

  test('reads every table of every schema, and every type of Redis key', async () => {
    await using stack = await createStack({ database: 'empty', sandbox: { skus: 5 } });
    const { sql } = stack;
    const [inTable, inJson, inQueue] = [canary('table'), canary('json'), canary('queue')];
    await sql`create schema elsewhere`;
    await sql`create schema catalog_queue`;
    await sql`create table elsewhere."odd Name" (t text, j jsonb)`;
    await sql`create table catalog_queue.job (data bytea)`;
    await sql`insert into elsewhere."odd Name" values (${inTable.core}, jsonb_build_object(${inJson.core}::text, 1))`;
    await sql`insert into catalog_queue.job values (${Buffer.from(inQueue.core)})`;
    const rows = findings({ rows: await allRows(sql) }, [inTable, inJson, inQueue]);
    for (const { name } of [inTable, inJson, inQueue]) expect(rows.join('\n')).toContain(`${name} (`);
    const url = inject('redisUrl');
    if (url === null) return;
    const redis = new Redis(url);
    const prefix = stack.env['QUEUE_PREFIX'] ?? '';
    const planted = ['key', 'string', 'hash', 'list', 'set', 'zset', 'stream'].map(canary);
    const [key, string, hash, list, set, zset, stream] = planted.map(({ core }) => core);
    try {
      await redis.set(`${prefix}:${key ?? ''}`, '1', 'EX', 60);
      await redis.set(`${prefix}:s`, string ?? '', 'EX', 60);
      await redis.hset(`${prefix}:h`, { [hash ?? '']: '1' });
      await redis.rpush(`${prefix}:l`, list ?? '');
      await redis.sadd(`${prefix}:set`, set ?? '');
      await redis.zadd(`${prefix}:z`, 1, zset ?? '');
      await redis.xadd(`${prefix}:x`, '*', 'field', stream ?? '');
      const found = findings({ keys: await allKeys(url, prefix) }, planted).join('\n');
      for (const { name } of planted) expect(found).toContain(`${name} (`);
    } finally {
      await redis.del(['h', 'l', 'set', 'z', 'x', 's', key ?? ''].map((name) => `${prefix}:${name}`));
      await redis.quit();
    }
  });
});
