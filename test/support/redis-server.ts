import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import { eventually } from './eventually.ts';
import { freePort } from './net.ts';

/** Whether this machine has a Redis server's program, for tests that need one of their own. */
export const hasRedisServer = spawnSync('redis-server', ['--version']).status === 0;

/** A Redis of one test's own, which keeps nothing on disk. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  /** Kills it and starts it again, empty, on the same port. */
  restart(): Promise<void>;
  command(...words: readonly [string, ...string[]]): Promise<unknown>;
}

/** Starts a Redis without persistence. */
export async function startRedisServer(): Promise<RedisServer> {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  // A file of its own: one that another server has written into its folder would be loaded.
  const file = ['--dir', tmpdir(), '--dbfilename', `catalog-mirror-test-${port}.rdb`];
  const options = [
    ...file,
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const boot = (): ChildProcess => spawn('redis-server', options, { stdio: 'ignore', cwd: '/' });
  const kill = async (child: ChildProcess) => {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  async function command(...[name, ...rest]: readonly [string, ...string[]]): Promise<unknown> {
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
    redis.on('error', () => {});
    try {
      await redis.connect();
      return await redis.call(name, ...rest);
    } finally {
      redis.disconnect();
    }
  }
  const answers = () =>
    command('PING').then(
      () => true,
      () => false,
    );
  let server = boot();
  await eventually(answers, { what: 'a Redis of its own' });
  return {
    url,
    command,
    async restart() {
      await kill(server);
      server = boot();
      await eventually(answers, { what: 'a Redis that is back' });
    },
    async [Symbol.asyncDispose]() {
      await kill(server);
    },
  };
}
