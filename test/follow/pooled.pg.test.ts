import { describe, expect, onTestFinished, test } from 'vitest';
import { isPooled, refuseMoving } from '../../src/cli/follow/pooled.ts';
import { connect, connectAlone } from '../../src/store/connection/db.ts';
import { followerSession, takeName } from '../../src/store/history/followers.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { hasPgBouncer, pgBouncer } from '../support/pgbouncer.ts';
import { movePrices } from './changes.ts';
import { following, sleeps } from './restoring.ts';
import { holding, options } from './session.ts';

/* `catalog-mirror follow` through a pooler. */

const store = useStore();
const OPTIONS = { ignore_startup_parameters: 'options' };

async function pooled(settings: Readonly<Record<string, string | number>>): Promise<string> {
  const pooler = await pgBouncer(store.url, { ...OPTIONS, ...settings });
  onTestFinished(() => pooler[Symbol.asyncDispose]());
  return pooler.url;
}

async function named(url: string, application_name: string) {
  const client = await connectAlone(url, { application_name });
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

describe.skipIf(!hasPgBouncer())('behind PgBouncer', () => {
  test("a dead process's name is free although its session is kept, whether idle or used by somebody else", async () => {
    const url = await pooled({ pool_mode: 'session' });
    const name = followerSession('shop');
    const one = await named(url, name);
    const held = await holding(one);
    expect(await takeName(one, held, options())).toHaveProperty('position');
    // The name is held.
    const direct = await named(store.url, name);
    expect(await takeName(direct, await holding(direct), options())).toEqual({ heldBy: 'a test' });
    one.connection.stream.destroy();
    const other = await eventually(async () => {
      const client = await named(url, 'catalog-mirror');
      const { sessions } = await holding(client, held);
      expect(sessions.at(-1)).toEqual(held.sessions.at(-1));
      return client;
    });
    expect(await takeName(direct, await holding(direct), options())).toHaveProperty('position');
    // Pretends that this session is the one of the process that died.
    const last = await holding(direct);
    await store.sql`
      update catalog_internal.followers set pid = ${last.sessions.at(-1)?.pid ?? 0}, backend_start = ${last.sessions.at(-1)?.began ?? ''}::text::timestamptz`;
    expect(await takeName(direct, await holding(direct), options())).toHaveProperty('position');
    await other.end();
  });

  test.each(['transaction', 'statement'])('nobody can follow under a name in %s mode', async (mode) => {
    const url = await pooled({ pool_mode: mode });
    await expect(refuseMoving(url)).rejects.toMatchObject({
      name: 'PoolerError',
      message: expect.stringContaining(`${mode} mode`) as string,
    });
  });

  test('a follower works in session mode, even with the only session that there is', async () => {
    const url = await pooled({ pool_mode: 'session', default_pool_size: 1, query_wait_timeout: 1 });
    await refuseMoving(url, 300);
    for (const [to, is] of [
      [url, true],
      [store.url, false],
    ] as const) {
      const sql = connect(to, { max: 1 });
      expect(await isPooled(sql)).toBe(is);
      await sql.end({ timeout: 1 });
    }
  });
});

test('a follower without notifications polls more often once a poll has found changes', async () => {
  // As if a pooler dropped the notifications.
  await store.sql`
    create or replace function catalog_internal.notify_changes() returns void language sql as 'select'`;
  const { asked, clock, enough } = sleeps(3);
  const sleep = async (ms: number) => {
    if (asked.length === 0) await movePrices(store.sql, 1);
    await clock.sleep(ms);
  };
  const { stop, seen } = following(() => store.url, { name: null, from: 'now' }, undefined, {
    clock: { ...clock, sleep },
  });
  await enough;
  stop.abort();
  expect({ asked, seen: seen.length }).toEqual({ asked: [60_000, 5000, 5000], seen: 1 });
});
