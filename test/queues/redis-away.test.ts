import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createQueueBackend } from '../../src/queues/backend.ts';
import { eventually } from '../support/eventually.ts';

/**
 * A Redis that is down until told to come back. Then it answers OK to everything, and counts SET commands. Nobody
 * else can take its port meanwhile.
 */
async function openRedis() {
  let sets = 0;
  let isBack = false;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    if (!isBack) {
      socket.destroy();
      return;
    }
    socket.on('data', (data) => {
      const commands = data.toString().match(/\*\d+\r\n\$\d+\r\n[A-Za-z]+\r\n/g) ?? [];
      for (const command of commands) {
        if (/set\r\n$/i.test(command)) sets += 1;
        socket.write(/info\r\n$/i.test(command) ? '$11\r\nloading:0\r\n\r\n' : '+OK\r\n');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return {
    port: (server.address() as AddressInfo).port,
    sets: () => sets,
    comeBack: () => {
      isBack = true;
    },
  };
}

test('however often an absent Redis is pinged, only one ping waits for it', async () => {
  const redis = await openRedis();
  const backend = createQueueBackend({
    redisUrl: () => `redis://127.0.0.1:${redis.port}`,
    databaseUrl: '',
    connections: 1,
    answerWithinMs: 5000,
    prefix: 'test',
    onError: () => {},
  });
  onTestFinished(() => backend.close());
  for (let n = 0; n < 200; n += 1) await expect(backend.ping(1)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  redis.comeBack();
  await eventually(() => backend.ping(1000));
  expect(redis.sets()).toBeLessThanOrEqual(3);
  await backend.ping(1000);
  await backend.ping(1000);
  expect(redis.sets()).toBeGreaterThanOrEqual(3);
});
