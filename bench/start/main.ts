import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import { median } from '../frame/measure.ts';
import { sizes } from '../frame/options.ts';
import { REDIS_URL, redisAnswers } from '../frame/redis.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';

/*
 * npm run bench:start [-- --skus 2000 --rounds 7 --json FILE] From the start of the process to its first request at
 * the partner, on a database that has a baseline; with the queues in Postgres and, where REDIS_URL or a local Redis
 * answers, in Redis. Beside it the time Node.js takes to start and end.
 */

const { skus, rounds, json } = sizes({ skus: 2000, rounds: 7 });
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Compiled, as the image and the package have it. */
const MAIN = join(ROOT, 'dist/main.js');
const REACH_MS = 1500;

execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });

type Env = Readonly<Record<string, string>>;

/** Starts the program; resolves with the milliseconds until `first` has happened, once the program has ended. */
async function startUntil(first: Promise<unknown>, env: Env): Promise<number> {
  const startedAt = performance.now();
  const program = spawn(process.execPath, [MAIN, 'run'], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: 'ignore',
  });
  const ended = once(program, 'exit');
  const ms = await Promise.race([
    first.then(() => performance.now() - startedAt),
    ended.then(() => {
      throw new Error('the daemon ended before its first request');
    }),
  ]);
  program.kill('SIGTERM');
  await ended;
  return ms;
}

async function bareNode(): Promise<number> {
  const startedAt = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - startedAt;
}

/** Resolves with the next request that the sandbox gets, seen within some milliseconds. */
async function nextRequest(sandbox: Sandbox): Promise<void> {
  const before = sandbox.requests.length;
  while (sandbox.requests.length === before)
    await new Promise((resolve) => {
      setTimeout(resolve, 2);
    });
}

await using sandbox = await startSandbox({ skus, rateLimit: 1_000_000 });
await withMirrorDatabase(async ({ url, sql }) => {
  const env: Env = {
    DATABASE_URL: url,
    PARTNER_BASE_URL: sandbox.url,
    PARTNER_API_KEY: sandbox.apiKey,
    PARTNER_SECRET: sandbox.secret,
    PARTNER_RATE_LIMIT: '100000',
    HTTP_PORT: '0',
    QUEUE_PREFIX: `bench-start-${process.pid}`,
  };
  const fill = spawn(process.execPath, [MAIN, 'run', '--once', '--timeout', '5m'], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: 'ignore',
  });
  const [code] = await once(fill, 'exit');
  if (code !== 0) throw new Error(`the fill ended with ${String(code)}`);
  const backends: Readonly<Record<string, Env>> = {
    Postgres: env,
    ...((await redisAnswers()) ? { Redis: { ...env, REDIS_URL } } : {}),
  };
  const times = new Map(Object.keys(backends).map((name): [string, number[]] => [name, []]));
  const bare: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const nodeMs = await bareNode();
    if (round > 0) bare.push(nodeMs);
    for (const [name, of] of Object.entries(backends)) {
      await sql`update catalog_internal.tasks set next_at = now()`;
      const ms = await startUntil(nextRequest(sandbox), of);
      if (round > 0) times.get(name)?.push(ms);
    }
  }
  const rows = [...times].flatMap(([name, ms]): Row[] => [
    {
      work: `to the first request, queues in ${name}`,
      ours: median(ms),
      unit: 'ms',
      reach: { is: '≤', limit: REACH_MS },
    },
    {
      work: `the same, times Node.js starting and ending`,
      ours: median(ms),
      unit: 'ms',
      against: { what: 'node -e 0', value: median(bare) },
    },
  ]);
  report(rows, json);
});
