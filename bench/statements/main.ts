import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { sizes } from '../frame/options.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';

/*
 * npm run bench:statements [-- --skus 60000 --seconds 45 --most 12 --json FILE] What a daemon has its Postgres do, by
 * statement, as pg_stat_statements counts it: while it loads a catalog at 600 requests a minute, three times the
 * account's real limit, and in the quiet life afterwards, queues in Postgres. Planning is counted apart: a statement
 * of which Postgres keeps the plan needs none.
 */

const { skus, seconds, most, json } = sizes({ skus: 60_000, seconds: 45, most: 12, rounds: 1 });
const PER_MINUTE = 600;
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_planning': 'on',
};

interface Statement {
  readonly calls: number;
  readonly planMs: number;
  readonly executeMs: number;
  readonly text: string;
}

const passed = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await passed(100);
}

/** The statements that were executed in the next `seconds`, or until `ended`, those that took longest first. */
async function counted(sql: Sql, ended: () => Promise<boolean>): Promise<readonly Statement[]> {
  await sql`select public.pg_stat_statements_reset()`;
  const from = performance.now();
  await until(async () => performance.now() - from > seconds * 1000 || (await ended()));
  return await sql<Statement[]>`
    select calls::float8 as calls, total_plan_time as "planMs", total_exec_time as "executeMs",
      left(btrim(regexp_replace(query, '[[:space:]]+', ' ', 'g')), 100) as text
    from public.pg_stat_statements where query not like '%pg_stat_statements%' and query not like '%as loaded'
    order by total_plan_time + total_exec_time desc`;
}

const total = (statements: readonly Statement[], of: 'planMs' | 'executeMs') =>
  statements.reduce((sum, each) => sum + each[of], 0);

function printed(title: string, statements: readonly Statement[]): void {
  const lines = statements.slice(0, most).map(({ calls, planMs, executeMs, text }) => {
    const numbers = [calls, planMs, executeMs].map((n) => n.toFixed(0).padStart(7));
    return `${numbers.join(' ')}  ${text}`;
  });
  process.stdout.write(`\n${title}: calls, ms of planning, ms of execution\n${lines.join('\n')}\n`);
}

function rowsOf(work: string, statements: readonly Statement[], times: number, of: string): Row[] {
  const [plan, execute] = [total(statements, 'planMs'), total(statements, 'executeMs')];
  return [
    { work: `${work}: the database's time ${of}`, ours: (plan + execute) / times, unit: 'ms' },
    { work: `${work}: planning`, ours: (100 * plan) / (plan + execute), unit: '%' },
  ];
}

const bulkCalls = ({ requests }: Sandbox) => requests.filter(({ route }) => route === 'bulk').length;

const rows = await withMirrorDatabase(
  async ({ url, sql }): Promise<Row[]> => {
    await sql`create extension pg_stat_statements schema public`;
    const sandbox = await startSandbox({ skus, liveShare: 0.05, rateLimit: PER_MINUTE, orders: 0 });
    const daemon = spawn(process.execPath, [MAIN, 'run'], {
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: url,
        PARTNER_BASE_URL: sandbox.url,
        PARTNER_API_KEY: sandbox.apiKey,
        PARTNER_SECRET: sandbox.secret,
        PARTNER_RATE_LIMIT: String(PER_MINUTE),
        PARTNER_RATE_SHARE: '1',
        HTTP_PORT: '0',
        LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const gone = once(daemon, 'exit');
    const loaded = async () => {
      const [row] = await sql<[{ loaded: boolean }]>`
        select not exists (select from catalog_internal.due where due_at <= now() and deferrals = 0) as loaded`;
      return row.loaded;
    };
    try {
      await until(() => bulkCalls(sandbox) > 0);
      const before = bulkCalls(sandbox);
      const load = await counted(sql, loaded);
      const calls = Math.max(1, bulkCalls(sandbox) - before);
      await until(loaded);
      const quiet = await counted(sql, () => Promise.resolve(false));
      printed('initial load', load);
      printed('quiet life', quiet);
      return [
        ...rowsOf('initial load', load, calls, 'a bulk call'),
        ...rowsOf('quiet life', quiet, seconds / 60, 'a minute'),
      ];
    } finally {
      daemon.kill();
      await gone;
      await sandbox.close();
    }
  },
  { settings: SETTINGS },
);
report(rows, json);
