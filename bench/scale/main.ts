import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { median } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { REDIS_URL, redisAnswers } from '../frame/redis.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';

/*
 * npm run bench:scale [-- --skus 20000 --rounds 2 --json FILE] Fills of a catalog by daemons as processes of their
 * own (`run --once`), 5 % live, at 600 requests a minute: one, two and four replicas on one account; and one, two and
 * four accounts, a mirror each, on one Postgres server, queues in Redis where one answers. Times are from the first
 * bulk call to the last. The sandbox counts requests: a window with more than the limit fails the run.
 */

const { skus, rounds, json } = sizes({ skus: 20_000, rounds: 2 });
const PER_MINUTE = 600;
const LIVE_SHARE = 0.05;
const LIVE_BUDGET = 5;
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

interface Account {
  readonly sandbox: Sandbox;
  readonly env: NodeJS.ProcessEnv;
}

async function openAccount(url: string, sql: Sql, redis: boolean): Promise<Account> {
  const sandbox = await startSandbox({
    skus,
    liveShare: LIVE_SHARE,
    liveBudget: LIVE_BUDGET,
    rateLimit: PER_MINUTE,
  });
  const name = `mirror_${randomBytes(6).toString('hex')}`;
  await sql.unsafe(`create database ${name}`);
  const database = new URL(url);
  database.pathname = name;
  return {
    sandbox,
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: database.href,
      ...(redis ? { REDIS_URL } : {}),
      QUEUE_PREFIX: name,
      PARTNER_BASE_URL: sandbox.url,
      PARTNER_API_KEY: sandbox.apiKey,
      PARTNER_SECRET: sandbox.secret,
      PARTNER_RATE_LIMIT: String(PER_MINUTE),
      PARTNER_RATE_SHARE: '1',
      // A SKU deferred at the end of a fill is not to count five minutes.
      DEFERRED_INTERVAL: '1s',
      HTTP_PORT: '0',
      LOG_LEVEL: 'error',
    },
  };
}

/** Runs `replicas` daemons on each account until nothing is due. */
async function fill(accounts: readonly Account[], replicas: number): Promise<void> {
  const children = accounts.flatMap(({ env }) =>
    Array.from({ length: replicas }, () =>
      spawn(process.execPath, [MAIN, 'run', '--once', '--timeout', '10m'], {
        env,
        stdio: ['ignore', 'inherit', 'inherit'],
      }),
    ),
  );
  await Promise.all(children.map(ended));
}

async function ended(child: ChildProcess): Promise<void> {
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`a daemon ended with ${code}`);
}

/** From the first bulk call to the last: processes start and end before and after. */
function secondsOfBulk({ requests }: Sandbox): number {
  const times = requests.filter(({ route }) => route === 'bulk').map(({ at }) => at);
  return (Math.max(...times) - Math.min(...times)) / 1000;
}

async function measure(
  url: string,
  sql: Sql,
  redis: boolean,
  accounts: number,
  replicas: number,
): Promise<number> {
  const opened = await Promise.all(Array.from({ length: accounts }, () => openAccount(url, sql, redis)));
  try {
    await fill(opened, replicas);
    const most = Math.max(...opened.map(({ sandbox }) => sandbox.maxRequestsInWindow()));
    if (most > PER_MINUTE) throw new Error(`${most} requests in one window`);
    return Math.max(...opened.map(({ sandbox }) => secondsOfBulk(sandbox)));
  } finally {
    await Promise.all(opened.map(({ sandbox }) => sandbox.close()));
  }
}

const plural = (n: number, what: string) => `${n} ${what}${n > 1 ? 's' : ''}`;
const redis = await redisAnswers();
const SETUPS = [
  { accounts: 1, replicas: 1 },
  { accounts: 1, replicas: 2 },
  { accounts: 1, replicas: 4 },
  { accounts: 2, replicas: 1 },
  { accounts: 4, replicas: 1 },
];
const rows = await withMirrorDatabase(
  async ({ url, sql }): Promise<Row[]> => {
    const times = SETUPS.map((): number[] => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [i, { accounts, replicas }] of SETUPS.entries())
        times[i]?.push(await measure(url, sql, redis, accounts, replicas));
    }
    const [alone = Number.NaN] = times.map(median);
    return SETUPS.map(({ accounts, replicas }, i) => ({
      work: `fill of ${skus.toLocaleString('en-US')} SKUs, ${plural(accounts, 'account')}, ${plural(replicas, 'replica')} each`,
      ours: median(times[i] ?? []),
      unit: 's',
      ...(i === 0 ? {} : { against: { what: 'one account, one replica', value: alone } }),
    }));
  },
  { settings: { max_connections: '400' } },
);
report(rows, json);
