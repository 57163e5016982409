import { describe, expect, inject, test } from 'vitest';
import { POSTGRES_AWAY } from '../../src/status/health.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { gateTo, through } from '../support/net.ts';
import { runProgram, runUntilOnlyPending } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';
import { metric, readyz } from './harness.ts';

describe('`run --once` and `readyz`:', () => {
  test('`run --once --timeout D` exits 75 and names what is due: deferred SKUs, but not later refreshes', async () => {
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 1201, liveShare: 0.1, liveBudget: 0, ghostShare: 0 },
    });
    const given = await runUntilOnlyPending(stack.env, '6 SKUs (deferred)');
    expect(given).toMatchObject({ code: 75, stderr: 'timed out; still pending: 6 SKUs (deferred)' });
    await stack.sql`
      update catalog_internal.due set due_at = now() + interval '1 minute', deferrals = 0 where deferrals > 0`;
    expect(await runProgram(['run', '--once', '--timeout', '2m'], stack.env)).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  test('`readyz` is 503 without Postgres, with a JSON reason, and `livez` stays 200', async () => {
    await using stack = await createStack({ sandbox: { skus: 60, seed: 1202 } });
    await using gate = await gateTo(stack.databaseUrl);
    gate.open();
    const app = await stack.start({ DATABASE_URL: through(stack.databaseUrl, gate) });
    await eventually(async () => expect((await readyz(app)).status).toBe(200));
    gate.shut();
    await eventually(async () =>
      expect(await readyz(app)).toMatchObject({
        status: 503,
        body: { ok: false, state: 'broken', reason: POSTGRES_AWAY },
      }),
    );
    expect((await fetch(`http://127.0.0.1:${app.httpPort}/livez`)).status).toBe(200);
    expect(await metric(app, 'mirror_stats_available')).toBe(0);
    gate.open();
    await eventually(async () => expect((await readyz(app)).status).toBe(200));
  });

  test.skipIf(!backends().includes('redis'))('`readyz` is 503 while the queues do not answer', async () => {
    const redisUrl = inject('redisUrl') ?? '';
    await using gate = await gateTo(redisUrl);
    gate.open();
    await using stack = await createStack({
      sandbox: { skus: 60, seed: 1203 },
      env: { REDIS_URL: through(redisUrl, gate) },
    });
    const app = await stack.start();
    await stack.caughtUp();
    gate.shut();
    await eventually(async () =>
      expect(await readyz(app)).toMatchObject({
        status: 503,
        body: {
          state: 'degraded',
          reason: expect.stringMatching(/^the queues \(redis\) do not answer; /) as string,
        },
      }),
    );
    gate.open();
    await eventually(async () => expect((await readyz(app)).status).toBe(200));
    await refreshSkus(stack.sql, [...stack.sandbox.world.truth().keys()].slice(0, 3));
    await stack.caughtUp();
  });

  test("BullMQ's tables in Postgres are in catalog_queue and nowhere else", async () => {
    await using stack = await createStack({
      backend: 'postgres',
      database: 'empty',
      sandbox: { skus: 60, seed: 1204 },
    });
    await stack.once();
    const rows = await stack.sql<{ schema: string }[]>`
      select distinct table_schema as schema from information_schema.tables
      where table_schema not in ('pg_catalog', 'information_schema') order by 1`;
    expect(rows.map(({ schema }) => schema)).toEqual(['catalog', 'catalog_internal', 'catalog_queue']);
  });
});

test('Ranges are checked: every value out of range is named, and nothing is touched', async () => {
  await using stack = await createStack({ database: 'empty', sandbox: { skus: 60, seed: 1205 } });
  const wrong = {
    BULK_MAX_SKUS: '101',
    BULK_LIVE_BUDGET: '0',
    PARTNER_RATE_SHARE: '1.01',
    MANIFEST_MAX_SHRINK: '0',
    DELTA_INTERVAL: '0s',
    LIVE_INTERVAL: '-5m',
    PARTNER_BACKOFF: '0',
    PARTNER_RATE_LIMIT: '0',
    HTTP_PORT: '65536',
  };
  const { code, stderr } = await runProgram(['run', '--once'], { ...stack.env, ...wrong });
  expect(code).toBe(78);
  for (const name of Object.keys(wrong)) expect(stderr).toContain(`${name}: expected`);
  expect(stack.sandbox.counts()).toBe(0);
  const schemas = await stack.sql`select from pg_namespace where nspname like 'catalog%'`;
  expect(schemas).toHaveLength(0);
});
