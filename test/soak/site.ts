import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CHILD_ENV } from '../../src/embedded/command.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { type Proxy, proxyTo } from '../support/proxy.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { Daemon, type Env } from './daemon.ts';
import { tableSizes, type Sample } from './growth.ts';

/** Requests per minute of the account, also as counted by the partner. */
const RATE = 1200;

/** An hour's activity in minutes: everything comes due some fifty times as often as by default. */
const SETTINGS: Env = {
  PARTNER_RATE_LIMIT: String(RATE),
  PARTNER_TIMEOUT: '5s',
  PARTNER_BACKOFF: '3s',
  DELTA_INTERVAL: '2s',
  CATALOG_CHECK_INTERVAL: '20s',
  MANIFEST_INTERVAL: '4m',
  LIVE_INTERVAL: '20s',
  SWEEP_INTERVAL: '2m',
  SWEEP_MIN_AGE: '10s',
  METADATA_INTERVAL: '5m',
  DEFERRED_INTERVAL: '2s',
  ERROR_INTERVAL: '2s',
  HTTP_PORT: '0',
};

const FAKETIME = [
  process.env['LIBFAKETIME'] ?? '',
  `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`,
];

export interface Clocks {
  set(of: 'database' | 'daemons', hours: number): void;
  env(of: 'database' | 'daemons'): Env;
}

export interface Disk {
  fill(): Promise<void>;
  free(): Promise<void>;
}

/** A Postgres, a partner, two daemons and the connections between them. */
export interface Site extends AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly daemons: readonly Daemon[];
  /** A connection that avoids all disruptions except a crash of the server. */
  readonly sql: Sql;
  /** The daemons' connection to Postgres. */
  readonly database: Proxy;
  readonly clocks: Clocks | null;
  readonly disk: Disk | null;
  terminateSessions(): Promise<void>;
  crashPostgres(): Promise<void>;
  /** Deletes what the queues hold: all of it for a share of 1, otherwise half. */
  emptyQueues(share: number): Promise<void>;
  /** Returns what must not grow, apart from the daemons themselves. */
  sample(): Promise<Sample>;
}

/**
 * Returns clocks that can be moved without moving the machine's; null without libfaketime. Monotonic clocks stay
 * correct.
 */
function movableClocks(folder: string): Clocks | null {
  const library = FAKETIME.find((path) => path !== '' && existsSync(path));
  if (library === undefined) return null;
  const file = (of: string) => join(folder, `clock-${of}`);
  const set: Clocks['set'] = (of, hours) =>
    writeFileSync(file(of), hours === 0 ? '+0' : `${hours > 0 ? '+' : ''}${hours}h`);
  set('database', 0);
  set('daemons', 0);
  const env: Clocks['env'] = (of) => ({
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file(of),
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  });
  return { set, env };
}

const DISK_MB = 1500;

/** Mounts a small disk for Postgres alone; null if this process may not mount one. */
async function smallDisk(folder: string): Promise<Disk | null> {
  await mkdir(folder);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=0711`, 'tmpfs', folder]);
  if (mounted.status !== 0) return null;
  const filler = join(folder, 'filler');
  return {
    async fill() {
      const { bavail, bsize } = await statfs(folder);
      spawnSync('fallocate', ['-l', String(bavail * bsize), filler]);
    },
    free: () => rm(filler, { force: true }),
  };
}

export async function openSite(queues: 'redis' | 'postgres', seed: number): Promise<Site> {
  const folder = await mkdtemp(join(tmpdir(), 'catalog-mirror-soak-'));
  await chmod(folder, 0o711);
  const clocks = movableClocks(folder);
  if (clocks !== null) Object.assign(CHILD_ENV, clocks.env('database'));
  const disk = await smallDisk(join(folder, 'disk'));
  const dataDir = join(folder, 'disk', 'postgres');
  const boot = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ dataDir, settings: { ...FAST_SETTINGS } });
  let server = await boot();
  await migrateDatabase(server.url);
  const [database, straight] = [await proxyTo(server.url), await proxyTo(server.url)];
  const throughPort = (port: number) => {
    const url = new URL(server.url);
    url.port = String(port);
    return url.href;
  };
  const sql = connect(throughPort(straight.port), { max: 4 });
  const redis: RedisServer | null = queues === 'redis' ? await startRedisServer() : null;
  const sandbox = await startSandbox({
    skus: 2000,
    liveShare: 0.1,
    seed,
    rateLimit: RATE,
    rateWindowMs: 60_000,
    orders: 0,
    listings: 0,
    foreignOrders: 0,
  });
  const env: Env = {
    ...SETTINGS,
    ...clocks?.env('daemons'),
    DATABASE_URL: throughPort(database.port),
    PARTNER_BASE_URL: sandbox.url,
    PARTNER_API_KEY: sandbox.apiKey,
    PARTNER_SECRET: sandbox.secret,
    ...(redis === null ? {} : { REDIS_URL: redis.url }),
  };
  const daemons = [new Daemon('first', env), new Daemon('second', env)];
  return {
    sandbox,
    daemons,
    sql,
    database,
    clocks,
    disk,
    async terminateSessions() {
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where application_name like 'catalog-mirror%' and pid <> pg_backend_pid() and client_port is not null`.catch(
        () => {},
      );
    },
    async crashPostgres() {
      process.kill(server.pid, 'SIGQUIT');
      await server.stop();
      server = await boot();
      for (const proxy of [database, straight]) proxy.aim(server.url);
    },
    async emptyQueues(share) {
      if (redis !== null) {
        if (share === 1) await redis.command('FLUSHALL');
        else await halveRedis(redis);
      } else if (share === 1) await sql`truncate catalog_queue.job cascade`;
      else await sql`delete from catalog_queue.job where hashtext(id::text) % 2 = 0`;
    },
    async sample() {
      const sizes = await tableSizes(sql).catch(() => ({}));
      const info = redis === null ? '' : String(await redis.command('INFO', 'memory'));
      const used = Number(/used_memory:(\d+)/.exec(info)?.[1] ?? 0);
      return redis === null ? sizes : { ...sizes, redis: used };
    },
    async [Symbol.asyncDispose]() {
      await disk?.free();
      await Promise.all(daemons.map((daemon) => daemon.end('SIGKILL')));
      await sql.end({ timeout: 5 });
      await Promise.all([
        sandbox.close(),
        redis?.[Symbol.asyncDispose](),
        database[Symbol.asyncDispose](),
        straight[Symbol.asyncDispose](),
      ]);
      await server.stop();
      if (disk !== null) spawnSync('umount', [join(folder, 'disk')]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Deletes every second key. */
async function halveRedis(redis: RedisServer): Promise<void> {
  const keys = (await redis.command('KEYS', '*')) as string[];
  const half = keys.toSorted().filter((_, at) => at % 2 === 0);
  const [first, ...rest] = half;
  if (first !== undefined) await redis.command('DEL', first, ...rest);
}
