import postgres from 'postgres';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { Calls, loadBacklog, OVER_MS, recordsOf } from './calls.ts';
import { processCpuMs } from './cpu.ts';

/*
 * Two mirrors on one server, in turns: beside one a snapshot is held, which keeps nothing of the other's database.
 * Processor time is that of each one's session: autovacuum, which tries again and again where a snapshot is held, is
 * not a call's.
 */

const WINDOWS = 6;
const MEASURED = 40;
const FULL = 4;
/** A whole account's. A full pass is made once a minute at most (src/store/ledger/due-floors.ts). */
const CALLS_A_MINUTE = 200;
const SIDES = ['held', 'free'] as const;
type Side = (typeof SIDES)[number];
type Both = Readonly<Record<Side, { readonly calls: Calls; readonly pid: number }>>;
type Costs = Record<Side, number>;

const say = (text: string) => process.stdout.write(`${text}\n`);

/** Processor milliseconds for each of `times`, of both sides in turns. */
async function costs(both: Both, times: number, work: (of: Calls) => Promise<void>) {
  const spent: Costs = { held: 0, free: 0 };
  for (let turn = 0; turn < 4; turn += 1)
    for (const side of SIDES) {
      const { calls, pid } = both[side];
      const before = processCpuMs(pid);
      for (let i = 0; i < times / 4; i += 1) await work(calls);
      spent[side] += (processCpuMs(pid) - before) / times;
    }
  return spent;
}

interface Measured {
  readonly call: Costs;
  readonly full: Costs;
  /** Of a call with its part of a full pass. */
  readonly all: Costs;
}

async function measure(both: Both): Promise<Measured> {
  await new Promise((resolve) => {
    setTimeout(resolve, OVER_MS);
  });
  const full = await costs(both, FULL, (of) => of.fullPass());
  for (const side of SIDES) await both[side].calls.one();
  const call = await costs(both, MEASURED, (of) => of.one());
  const all = (side: Side) => call[side] + full[side] / CALLS_A_MINUTE;
  const measured = { call, full, all: { held: all('held'), free: all('free') } };
  const pair = ({ held, free }: Costs) => `${held.toFixed(1)} against ${free.toFixed(1)} ms`;
  say(
    `after ${both.held.calls.made} calls: a call ${pair(call)}, a full pass ${pair(full)}; together ${(measured.all.held / measured.all.free).toFixed(2)} times`,
  );
  return measured;
}

async function statements(sql: Sql): Promise<void> {
  const rows = await sql<{ text: string; held: number; free: number }[]>`
    select left(regexp_replace(query, '\\s+', ' ', 'g'), 100) as text,
      coalesce(sum(shared_blks_hit + shared_blks_read) filter (where datname <> 'free'), 0)::float8 as held,
      coalesce(sum(shared_blks_hit + shared_blks_read) filter (where datname = 'free'), 0)::float8 as free
    from public.pg_stat_statements s join pg_database d on d.oid = s.dbid
    where query !~ 'pg_stat_statements' group by 1 order by 2 desc limit 10`;
  say('\nbuffers a call, held and free:');
  const each = (buffers: number) => (buffers / MEASURED).toFixed(0).padStart(7);
  for (const { text, held, free } of rows) say(`${each(held)} ${each(free)}  ${text}`);
}

/** What a call costs after so many while a snapshot is held, against what it costs after as many without. */
export async function measureCalls(calls: number, skus: number, json?: string): Promise<void> {
  await withMirrorDatabase(
    async ({ url, sql }) => {
      await sql`create extension pg_stat_statements schema public`;
      await sql`create database free`;
      const freeUrl = Object.assign(new URL(url), { pathname: '/free' }).href;
      await migrateDatabase(freeUrl);
      const free = connect(freeUrl, { max: 1 });
      for (const side of [sql, free]) await loadBacklog(side, skus);
      const records = await recordsOf(sql);
      const side = async (of: Sql) => {
        const [{ pid }] = await of<[{ pid: number }]>`select pg_backend_pid() as pid`;
        return { calls: new Calls(of, records), pid };
      };
      const both = { held: await side(sql), free: await side(free) };
      for (let i = 0; i < 10; i += 1) for (const side of SIDES) await both[side].calls.one();
      await measure(both);
      // Not the mirror's own kind of session, which Postgres ends when it idles in a transaction.
      const holder = postgres(url, { max: 1 });
      const ended = await holder.begin('isolation level repeatable read', async (tx) => {
        await tx`select count(*) from pg_class`;
        let measured: Measured | undefined;
        for (let window = 1; window <= WINDOWS; window += 1) {
          while (both.held.calls.made < (calls * window) / WINDOWS)
            for (const side of SIDES) await both[side].calls.many();
          await sql`select public.pg_stat_statements_reset()`;
          measured = await measure(both);
        }
        return measured;
      });
      await statements(sql);
      await Promise.all([holder.end(), free.end()]);
      if (ended === undefined) throw new Error('nothing was measured');
      const row = (work: string, { held, free: without }: Costs): Row => ({
        work,
        ours: held,
        unit: 'ms',
        against: { what: 'without', value: without },
      });
      report(
        [
          {
            ...row(
              `a call after ${calls} beside a held snapshot, with its part of a full pass a minute`,
              ended.all,
            ),
            reach: { is: '≤', limit: 2 },
          },
          row('of it the call', ended.call),
          row('a full pass', ended.full),
        ],
        json,
      );
    },
    {
      settings: {
        shared_preload_libraries: 'pg_stat_statements',
        shared_buffers: '2GB',
        max_wal_size: '16GB',
        synchronous_commit: 'off',
      },
    },
  );
}
