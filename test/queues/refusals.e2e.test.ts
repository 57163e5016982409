import { describe, expect, test } from 'vitest';
import { createQueueBackend, type QueueBackend, redisCode } from '../../src/queues/backend.ts';
import { eventually } from '../support/eventually.ts';
import { hasRedisServer, type RedisServer, startRedisServer } from '../support/redis-server.ts';

/* A Redis that answers, but refuses what BullMQ or its driver request at the start of each connection. */

const PREFIX = 'test';

interface Opened extends AsyncDisposable {
  readonly backend: QueueBackend;
  readonly refused: (string | null)[];
}

function open(url: string): Opened {
  const refused: (string | null)[] = [];
  const backend = createQueueBackend({
    redisUrl: () => url,
    databaseUrl: '',
    connections: 1,
    answerWithinMs: 5000,
    prefix: PREFIX,
    onError: (error) => refused.push(redisCode(error)),
  });
  return { backend, refused, [Symbol.asyncDispose]: () => backend.close() };
}

/** Opens a queue and its worker. `taken` lists the jobs so far. */
async function work(backend: QueueBackend) {
  const taken: string[] = [];
  const queue = await backend.openQueue('delta');
  const worker = await backend.openWorker('delta', async ({ name }) => void taken.push(name), 1);
  void worker.run().catch(() => {});
  return { taken, add: (name: string) => queue.add(name, {}, {}) };
}

async function asUser(redis: RedisServer, ...rules: string[]): Promise<string> {
  await redis.command('ACL', 'SETUSER', 'mirror', 'reset', 'on', '>secret', ...rules);
  return redis.url.replace('redis://', 'redis://mirror:secret@');
}

const pingFails = async ({ backend }: Opened, withinMs = 300): Promise<string | null> =>
  await backend.ping(withinMs).then(
    () => null,
    (error: unknown) => backend.describe(error),
  );

const withRedisServer = hasRedisServer ? describe.concurrent : describe.skip;

withRedisServer('a Redis that refuses', () => {
  test('INFO, like an ACL without @dangerous, still delivers jobs', async () => {
    await using redis = await startRedisServer();
    await using opened = open(await asUser(redis, `~${PREFIX}:*`, '+@all', '-@dangerous'));
    const { taken, add } = await work(opened.backend);
    await add('one');
    await eventually(() => taken.length === 1, { what: 'a job that is taken' });
  });

  test('the database gets nothing written into another one, and is reported while it lasts', async () => {
    await using redis = await startRedisServer();
    await using opened = open(`${redis.url}/99`);
    const { add } = await work(opened.backend);
    void add('one').catch(() => {});
    await eventually(() => opened.refused.length > 4, { what: 'several connections' });
    const said = 'the queues (redis) accept no jobs: it refuses a command (ERR); the log says which';
    expect([await pingFails(opened), await pingFails(opened)]).toEqual([said, said]);
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  test('the password is reported while it lasts, and works by itself afterwards', async () => {
    await using redis = await startRedisServer();
    await using opened = open(redis.url.replace('redis://', 'redis://mirror:secret@'));
    const { taken, add } = await work(opened.backend);
    await eventually(() => opened.refused.length > 4, { what: 'several connections' });
    const said = 'the queues (redis) accept no jobs: it rejects user or password (WRONGPASS)';
    expect([await pingFails(opened), await pingFails(opened)]).toEqual([said, said]);
    await asUser(redis, '~*', '+@all');
    await eventually(async () => (await pingFails(opened)) === null, { what: 'a Redis that answers' });
    await add('one');
    await eventually(() => taken.length === 1, { what: 'a job that is taken' });
    // A Redis that stops answering later is no longer reported as refusing.
    await redis.command('CLIENT', 'PAUSE', '60000', 'ALL');
    expect(await pingFails(opened)).toBe('the queues (redis) do not answer');
  });
});
