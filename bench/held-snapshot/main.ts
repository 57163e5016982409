import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { NODE_FLAGS } from '../../src/launch.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { optionsOf } from '../frame/options.ts';
import { REDIS_URL, redisAnswers } from '../frame/redis.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { measureCalls } from './by-calls.ts';
import { postmasterOf, serverCpuMs } from './cpu.ts';

/*
 * npm run bench:held-snapshot [-- --calls 12000 --skus 300000 | --minutes 6 --redis] [--json FILE] What a transaction
 * costs that others hold open (pg_dump, a report, a replication slot): nothing that is updated meanwhile can be
 * vacuumed, and every statement that passes over it reads it again. A daemon with seven times the default's requests;
 * a snapshot is held for so many minutes; processor time of the whole server in the last minute of it, against the
 * minute before it. Beside it the tables that grew, and the statements that cost most. Linux only, as processor time
 * is read from /proc. With --calls no daemon and no time: what costs is the number of versions, so that many calls of
 * 100 SKUs are made as fast as may be (12,000 are an hour of a whole account's 200 a minute), and then some are
 * measured, against those of a mirror without a snapshot.
 */

const values = optionsOf({
  minutes: { type: 'string', default: '6' },
  calls: { type: 'string' },
  skus: { type: 'string', default: '300000' },
  redis: { type: 'boolean' },
  json: { type: 'string' },
});
const MINUTE_MS = 60_000;
const heldMs = Number(values.minutes) * MINUTE_MS;
const REACH = 2;
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

const pause = (ms: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

interface Table {
  readonly name: string;
  readonly bytes: number;
  readonly dead: number;
}

async function tables(sql: Sql): Promise<Map<string, Table>> {
  await sql`select pg_stat_force_next_flush()`;
  const rows = await sql<Table[]>`
    select format('%s.%s', schemaname, relname) as name, pg_total_relation_size(relid)::float8 as bytes, n_dead_tup::int as dead
    from pg_stat_user_tables`;
  return new Map(rows.map((row) => [row.name, row]));
}

interface Statement {
  readonly calls: number;
  readonly ms: number;
  readonly buffers: number;
  readonly text: string;
}

/** The most expensive statements since the last reset. */
async function statements(sql: Sql): Promise<Statement[]> {
  return await sql<Statement[]>`
    select calls::int, total_exec_time as ms, (shared_blks_hit + shared_blks_read)::float8 as buffers,
      left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as text
    from public.pg_stat_statements where query !~ 'pg_stat_statements' order by total_exec_time desc limit 12`;
}

/** Processor milliseconds of the server in a second, over a time. */
async function costOver(postmaster: number, ms: number): Promise<number> {
  const [before, from] = [serverCpuMs(postmaster), performance.now()];
  await pause(ms);
  return ((serverCpuMs(postmaster) - before) / (performance.now() - from)) * 1000;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function sayStatements(sql: Sql, when: string): Promise<void> {
  say(`\n${when}: calls, ms, buffers a call`);
  for (const { calls, ms, buffers, text } of await statements(sql))
    say(
      `${String(calls).padStart(7)} ${ms.toFixed(0).padStart(8)} ${(buffers / calls).toFixed(0).padStart(7)}  ${text}`,
    );
  await sql`select public.pg_stat_statements_reset()`;
}

async function measureDaemon(): Promise<void> {
  if (values.redis === true && !(await redisAnswers())) throw new Error(`no Redis answers at ${REDIS_URL}`);
  await using sandbox = await startSandbox({
    skus: 3000,
    liveShare: 0.1,
    rateLimit: 1_000_000,
    marketIntervalMs: 1000,
    snapshotIntervalMs: 5000,
  });
  await withMirrorDatabase(
    async ({ url, sql }) => {
      await sql`create extension pg_stat_statements schema public`;
      const postmaster = await postmasterOf(sql);
      const daemon = spawn(process.execPath, [...NODE_FLAGS, MAIN, 'run'], {
        stdio: 'ignore',
        env: {
          PATH: process.env['PATH'],
          DATABASE_URL: url,
          PARTNER_BASE_URL: sandbox.url,
          PARTNER_API_KEY: sandbox.apiKey,
          PARTNER_SECRET: sandbox.secret,
          PARTNER_RATE_LIMIT: '1400',
          DELTA_INTERVAL: '2s',
          LIVE_INTERVAL: '20s',
          SWEEP_MIN_AGE: '10s',
          HTTP_PORT: '0',
          ...(values.redis === true ? { REDIS_URL, QUEUE_PREFIX: `bench-held-${process.pid}` } : {}),
        },
      });
      const ended = once(daemon, 'exit');
      await pause(MINUTE_MS);
      await sql`select public.pg_stat_statements_reset()`;
      const before = await costOver(postmaster, MINUTE_MS);
      const small = await tables(sql);
      await sayStatements(sql, 'before');
      // Not the mirror's own kind of session, which Postgres ends when it idles in a transaction.
      const holder = postgres(url, { max: 1 });
      const costs: number[] = [];
      await holder.begin('isolation level repeatable read', async (tx) => {
        await tx`select count(*) from pg_class`;
        for (let ms = 0; ms < heldMs; ms += MINUTE_MS) {
          costs.push(await costOver(postmaster, MINUTE_MS));
          say(
            `held for ${costs.length} min: ${costs.at(-1)?.toFixed(0)} ms/s, ${sandbox.counts('bulk')} calls`,
          );
        }
        await sayStatements(sql, 'while it was held');
      });
      const large = await tables(sql);
      const after = await costOver(postmaster, MINUTE_MS);
      daemon.kill('SIGTERM');
      await Promise.all([ended, holder.end({ timeout: 5 })]);
      const row = (work: string, ours: number): Row => ({
        work,
        ours,
        unit: 'ms/s',
        against: { what: 'before', value: before },
      });
      const grown = [...large.values()].toSorted((a, b) => b.dead - a.dead).slice(0, 6);
      report(
        [
          {
            ...row(`server's processor time in the last minute of ${values.minutes}`, costs.at(-1) ?? 0),
            reach: { is: '≤', limit: REACH },
          },
          row('a minute after', after),
          ...grown.map(({ name, bytes, dead }): Row => ({
            work: `${name}, ${dead} dead rows`,
            ours: bytes / 2 ** 20,
            unit: 'MB',
            against: { what: 'before', value: (small.get(name)?.bytes ?? 1) / 2 ** 20 },
          })),
        ],
        values.json,
      );
    },
    { max: 2, settings: { shared_preload_libraries: 'pg_stat_statements', autovacuum_naptime: '5s' } },
  );
}

if (values.calls === undefined) await measureDaemon();
else await measureCalls(Number(values.calls), Number(values.skus), values.json);
