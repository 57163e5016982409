import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';
import { eventually } from './eventually.ts';
import { freePort } from './net.ts';

/** Whether this machine has the program of a Redis server, for tests that need their own. */
export const hasRedisServer = spawnSync('redis-server', ['--version']).status === 0;

/** A Redis for one test, which stores nothing on disk. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  /** Kills it and restarts it, empty, on the same port. */
  restart(): Promise<void>;
  command(...words: readonly [string, ...string[]]): Promise<unknown>;
}

/** How many ports are tried, in case another process has taken the free one. */
const PORTS = 5;

/** Starts a Redis without persistence. */
export async function startRedisServer(): Promise<RedisServer> {
  for (let tried = 0; tried < PORTS; tried += 1) {
    const server = await startOn(await freePort());
    if (server !== null) return server;
  }
  throw new Error(`no Redis could be started on any of ${PORTS} ports`);
}

interface Booted {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
}

const hasEnded = ({ child: { exitCode, signalCode } }: Booted) => exitCode !== null || signalCode !== null;

/** Returns null if it ended before it answered, for example because the port is taken. */
async function startOn(port: number): Promise<RedisServer | null> {
  const url = `redis://127.0.0.1:${port}`;
  // Its own file, because it would load one that another server has written into the folder.
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
  const boot = (): Booted => {
    const child = spawn('redis-server', options, { stdio: 'ignore', cwd: '/' });
    return { child, ended: once(child, 'exit') };
  };
  const kill = async ({ child, ended }: Booted) => {
    child.kill('SIGKILL');
    await ended;
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
  /** Another test's server, or something that never answers, may be on the port. */
  const answers = ({ child, ended }: Booted) => {
    const isIt = command('INFO', 'server').then(
      (said) => String(said).includes(`process_id:${child.pid}\r`),
      () => false,
    );
    return Promise.race([isIt, ended.then(() => false)]);
  };
  let server = boot();
  const isUp = await eventually(async () => (hasEnded(server) ? null : await answers(server)), {
    what: 'a Redis of its own',
  });
  if (isUp === null) return null;
  return {
    url,
    command,
    async restart() {
      await kill(server);
      server = boot();
      await eventually(
        () => {
          // Another process that looks for a free port may occupy it for a moment.
          if (hasEnded(server)) server = boot();
          return answers(server);
        },
        { what: 'a Redis that is back' },
      );
    },
    async [Symbol.asyncDispose]() {
      await kill(server);
    },
  };
}
