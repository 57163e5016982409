import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { through } from '../support/net.ts';
import { startProgram } from '../support/process.ts';
import { proxyTo, type Watcher } from '../support/proxy.ts';
import { createStack } from '../support/stack.ts';
import { expectWhole, untilWhole } from './harness.ts';

/** BullMQ's connections for queues and workers name its schema at startup. */
const OF_A_QUEUE = 'search_path=';

/** Cuts the first `times` connections of queues and workers at Postgres's first answer. */
function cutAtStart(times: number): { readonly watcher: () => Watcher; hits(): number } {
  let hits = 0;
  const watcher = (): Watcher => {
    let ofQueue: boolean | null = null;
    return (piece, direction) => {
      if (direction === 'to-server') ofQueue ??= piece.includes(OF_A_QUEUE);
      if (direction === 'to-server' || ofQueue !== true || hits >= times) return 'pass';
      hits += 1;
      return 'cut';
    };
  };
  return { watcher, hits: () => hits };
}

describe('queues in Postgres', () => {
  // In a process of its own: after such a start BullMQ could leave no time for anything else, not even a test's
  // timeout.
  test('reconnect if their connections are lost during startup; the daemon works and can be stopped', async () => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 100 } });
    await using proxy = await proxyTo(stack.databaseUrl);
    const start = cutAtStart(12);
    proxy.watch(start.watcher);
    await using daemon = startProgram(['run'], {
      ...stack.env,
      DATABASE_URL: through(stack.databaseUrl, proxy),
    });
    await untilWhole(stack.sql, stack.sandbox.world);
    expect(start.hits()).toBe(12);
    await expectWhole(stack.sql, stack.sandbox.world);
    expect((await daemon.get('/livez')).status).toBe(200);
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('are retried a few times a second while writes are rejected; that is reported, and work resumes afterwards', async () => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 100 } });
    await using daemon = startProgram(['run'], stack.env);
    await untilWhole(stack.sql, stack.sandbox.world);
    const [{ name }] = await stack.sql<[{ name: string }]>`select current_database() as name`;
    const makeReadOnly = async (readOnly: boolean) => {
      await stack.sql.unsafe(
        `alter database ${name} set default_transaction_read_only = ${String(readOnly)}`,
      );
      await stack.sql`
        select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name} and pid <> pg_backend_pid()`;
    };
    await makeReadOnly(true);
    const refusals = () =>
      daemon
        .logged('queues.error')
        .filter(({ err }) => (err as { code?: string } | undefined)?.code === '25006')
        .map(({ time }) => Date.parse(String(time)));
    await eventually(() => refusals().length >= 30, { what: 'thirty refusals' });
    // Five workers, each of which tries once a second.
    const times = refusals();
    expect((times[29] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(2500);
    expect(await daemon.until('store.paused')).toMatchObject({ kind: 'read-only' });
    expect((await daemon.get('/readyz')).body).toContain('Postgres rejects writes (read-only)');
    await makeReadOnly(false);
    await daemon.until('store.resumed');
    await stack.everythingDue();
    await untilWhole(stack.sql, stack.sandbox.world);
    await eventually(async () => !(await daemon.get('/readyz')).body.includes('rejects writes'), {
      what: 'readiness',
    });
  });
});
