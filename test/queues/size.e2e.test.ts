import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { QUEUE_SCHEMA } from '../../src/store/setup/occupied.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';

/**
 * Returns the exact number of rows in the tables of the queues, without events, which are a log of fixed length
 * like the streams of Redis.
 */
async function rowsOf(sql: Sql): Promise<number> {
  const [row] = await sql<[{ rows: number }]>`
    select coalesce(sum((xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I.%I', schemaname, tablename),
      false, true, '')))[1]::text::int), 0)::int as rows
    from pg_tables where schemaname = ${QUEUE_SCHEMA} and tablename not in ('event', 'migration')`;
  return row.rows;
}

/** Returns the number of keys of the queues plus the number of their entries. */
async function entriesOf(prefix: string): Promise<number> {
  const redis = new Redis(inject('redisUrl') ?? '');
  const keys = await redis.keys(`${prefix}:*`);
  const held = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      if (type === 'list') return await redis.llen(key);
      if (type === 'zset') return await redis.zcard(key);
      return type === 'stream' ? 0 : 1;
    }),
  );
  await redis.quit();
  return keys.length + held.reduce((sum, n) => sum + n, 0);
}

describe.each(backends())('queues in %s', (backend) => {
  test('hold no more with fifty thousand SKUs due than with none', async () => {
    await using stack: Stack = await createStack({
      backend,
      sandbox: { skus: 50 },
      // No call is let through while the test runs.
      env: { PARTNER_RATE_LIMIT: '2', PARTNER_RATE_SHARE: '0.5' },
    });
    const size = () => (backend === 'redis' ? entriesOf(stack.env['QUEUE_PREFIX'] ?? '') : rowsOf(stack.sql));
    const app = await stack.start();
    const wakeAll = async () => {
      for (const task of ['reprice', 'metadata', 'maintenance', 'delta', 'manifest'] as const)
        for (let i = 0; i < 20; i += 1) await app.wake(task);
    };
    await wakeAll();
    const before = await size();
    await stack.sql`
      insert into catalog.skus (sku, in_manifest) select 'OWED-' || n, true from generate_series(1, 50000) n`;
    await stack.sql`
      select catalog_internal.mark_due(array(select sku from catalog.skus where sku like 'OWED-%' order by sku), 'changed')`;
    await wakeAll();
    const after = await size();
    expect(before).toBeGreaterThan(0);
    // Jobs come and go: a few more or fewer may exist at this moment.
    expect(after).toBeLessThan(before + 100);
  });
});
