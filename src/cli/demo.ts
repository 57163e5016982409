import { join } from 'node:path';
import { type App, startApp } from '../daemon/app.ts';
import { openDatabase } from '../daemon/database.ts';
import { type Config, loadConfig, processSources } from '../config/config.ts';
import { systemClock } from '../lib/clock.ts';
import { harmless } from '../status/style.ts';
import { type Sandbox, startSandbox } from '../sandbox/index.ts';
import { isFilling } from '../status/health.ts';
import { connect, type Sql } from '../store/db.ts';
import { changesOf, dropMirror, sampleOf } from '../store/demo.ts';
import { createLogger } from '../telemetry/log/logger.ts';
import { type Command, type CommandArgs, EXIT, numberOption, UsageError } from './command.ts';
import { stopSignal } from './process.ts';

/** Short intervals, so that the market visibly moves. The environment takes precedence. */
const DEMO_SETTINGS: Readonly<Record<string, string>> = {
  PARTNER_RATE_SHARE: '0.95',
  DELTA_INTERVAL: '5s',
  LIVE_INTERVAL: '2m',
  DEFERRED_INTERVAL: '10s',
  CATALOG_CHECK_INTERVAL: '5m',
  HTTP_PORT: '0',
  LOG_LEVEL: 'warn',
};
const MARKET_EVERY_MS = 2000;
const SNAPSHOT_EVERY_MS = 15_000;
const POLL_EVERY_MS = 1000;
const SAMPLE_ROWS = 8;

export const demo: Command = {
  summary: 'run the daemon against a built-in sandbox and an embedded Postgres; needs no credentials',
  usage: 'demo [--skus 5000] [--live-share 0.05] [--seed 1]\ndemo --once',
  examples: [
    ['catalog-mirror demo', 'load the catalog and follow its price changes until Ctrl-C'],
    ['catalog-mirror demo --once', 'exit after the initial load and one delta'],
    ['catalog-mirror demo --skus 20000 --seed 7', 'a different, larger catalog'],
  ],
  exits: ['ok', 'failed', 'usage'],
  options: {
    once: { type: 'boolean' },
    skus: { type: 'string' },
    'live-share': { type: 'string' },
    seed: { type: 'string' },
  },
  optionHelp: {
    once: 'exit after the initial load and one applied delta',
    skus: 'SKUs in the catalog (5000)',
    'live-share': 'share of SKUs that are live-priced (0.05)',
    seed: 'seed of the catalog and the market (1)',
  },
  positionals: false,
  async run(args) {
    const sandbox = await startSandbox(sandboxOptions(args.values));
    try {
      return await withDemoDatabase(sandbox, args, (config) => watch(config, sandbox, args));
    } finally {
      await sandbox.close();
    }
  },
};

function sandboxOptions(values: CommandArgs['values']) {
  const problems: string[] = [];
  const options = {
    skus: numberOption(values, 'skus', 5000, { min: 100, max: 1_000_000 }, problems),
    liveShare: numberOption(values, 'live-share', 0.05, { min: 0, max: 1, whole: false }, problems),
    seed: numberOption(values, 'seed', 1, { min: 0, max: 2 ** 31 }, problems),
    marketIntervalMs: MARKET_EVERY_MS,
    snapshotIntervalMs: SNAPSHOT_EVERY_MS,
  };
  if (problems.length > 0) throw new UsageError(problems);
  return options;
}

/** Configuration against the sandbox, in a database of the demo's own that starts empty, or in DATABASE_URL as it is. */
async function withDemoDatabase<T>(
  sandbox: Sandbox,
  { print }: CommandArgs,
  work: (config: Config) => Promise<T>,
): Promise<T> {
  const env = {
    ...DEMO_SETTINGS,
    ...processSources.env,
    PARTNER_BASE_URL: sandbox.url,
    PARTNER_API_KEY: sandbox.apiKey,
    PARTNER_SECRET: sandbox.secret,
    PARTNER_API_KEY_FILE: undefined,
    PARTNER_SECRET_FILE: undefined,
  };
  const config = loadConfig(env, processSources.readFile);
  if (config.database.url !== null) return await work(config);
  print('starting an embedded Postgres');
  const log = createLogger({ ...config.log, secrets: config.secrets });
  const dataDir = join(config.database.dataDir, 'demo');
  const database = await openDatabase({ database: { ...config.database, url: null, dataDir } }, log);
  try {
    const sql = connect(database.url, { max: 1 });
    await dropMirror(sql);
    await sql.end({ timeout: 5 });
    return await work(
      loadConfig(
        { ...env, DATABASE_URL: database.url(), DATABASE_URL_FILE: undefined },
        processSources.readFile,
      ),
    );
  } finally {
    await database.close();
  }
}

async function watch(config: Config, sandbox: Sandbox, { values, print }: CommandArgs): Promise<number> {
  const log = createLogger({ ...config.log, secrets: config.secrets });
  const signal = stopSignal();
  const app = await startApp(config, log, systemClock);
  const stopped = new AbortController();
  void signal.promise.then(() => stopped.abort());
  try {
    print(
      `sandbox partner API on ${sandbox.url}, ${config.queues.redisUrl === null ? 'queues in Postgres' : 'queues in Redis'}`,
    );
    const filled = await follow(app.sql, print, stopped.signal, untilFilled);
    if (!filled) return EXIT.ok;
    showRows('catalog.current_prices', await sampleOf(app.sql, SAMPLE_ROWS), print);
    printAccess(app, print);
    if (values['once'] === true) {
      print('waiting for a delta');
      await follow(app.sql, print, stopped.signal, untilDelta);
      showRows('catalog.price_history', await changesOf(app.sql, SAMPLE_ROWS), print);
      showRows('catalog.current_prices', await sampleOf(app.sql, SAMPLE_ROWS), print);
      return EXIT.ok;
    }
    print('following price changes; press Ctrl-C to stop');
    await follow(app.sql, print, stopped.signal, () => false);
    return EXIT.ok;
  } finally {
    await app.stop();
    signal.dispose();
  }
}

interface View {
  readonly skus: number;
  readonly pending: number;
  readonly due: number;
  readonly baseline: boolean;
  readonly moved: boolean;
  readonly ceiling: number;
  readonly changes: number;
  readonly snapshot: string | null;
}

const untilFilled = (view: View) => view.baseline && !isFilling(view.pending, view.skus);
const untilDelta = (view: View) => view.moved && view.due === 0;

/** Prints a line whenever something worth one has happened, until `done` holds; false when stopped before. */
async function follow(
  sql: Sql,
  print: (line: string) => void,
  stopped: AbortSignal,
  done: (view: View) => boolean,
): Promise<boolean> {
  const startedAt = systemClock.monotonic();
  let last = '';
  while (!stopped.aborted) {
    const view = await readView(sql);
    const line = describe(view);
    if (line !== last)
      print(
        `${Math.round((systemClock.monotonic() - startedAt) / 1000)
          .toString()
          .padStart(4)}s  ${line}`,
      );
    last = line;
    if (done(view)) return true;
    await systemClock.sleep(POLL_EVERY_MS, stopped);
  }
  return false;
}

async function readView(sql: Sql): Promise<View> {
  const [view] = await sql<[View]>`
    select s.skus::int, s.pending_skus::int as pending, s.due_skus::int as due, s.manifest_applied_at is not null as baseline,
      i.snapshot_moved_at is not null as moved,
      coalesce(s.requests_per_minute, 0)::float8 as ceiling, s.snapshot_id as snapshot,
      (select count(*)::int from catalog.price_history) as changes
    from catalog.sync_status s, catalog_internal.sync i`;
  return view;
}

function describe({ baseline, skus, pending, due, changes, snapshot }: View): string {
  if (!baseline) return 'fetching the manifest';
  const priced = skus - pending;
  if (isFilling(pending, skus))
    return `${priced.toLocaleString('en-US')} of ${skus.toLocaleString('en-US')} SKUs priced (${Math.floor((100 * priced) / skus)} %)`;
  return `snapshot ${snapshot ?? ''}: ${skus.toLocaleString('en-US')} SKUs, ${due} due, ${changes} price changes recorded`;
}

type Cell = string | number | boolean | Date | null;

/** Prints rows as psql would, under their columns' names. */
function showRows(title: string, rows: readonly object[], print: (line: string) => void): void {
  const text = (value: Cell) =>
    value === null ? '' : value instanceof Date ? value.toISOString() : harmless(String(value));
  const head = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => (Object.values(row) as Cell[]).map(text));
  const widths = head.map((name, i) => Math.max(name.length, ...cells.map((row) => (row[i] ?? '').length)));
  print('');
  print(title);
  for (const row of [head, ...cells])
    print(`  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd());
  print('');
}

/** How to name the database to psql, in a shell: a configured URL has a password that is not the demo's to print. */
function psqlTarget(app: App): string {
  const { DATABASE_URL: url, DATABASE_URL_FILE: file } = processSources.env;
  if (url !== undefined && url !== '') return '"$DATABASE_URL"';
  return file !== undefined && file !== '' ? '"$(cat "$DATABASE_URL_FILE")"' : `'${app.databaseUrl}'`;
}

function printAccess(app: App, print: (line: string) => void): void {
  const target = psqlTarget(app);
  print('inspect the mirror:');
  print(`  psql ${target} -c 'select * from catalog.sync_status'`);
  print(
    `  psql ${target} -c 'select sku, size, price, name from catalog.current_prices where not stale limit 20'`,
  );
  print(`  curl http://127.0.0.1:${app.httpPort}/metrics`);
  print(`  status page: http://127.0.0.1:${app.httpPort}/`);
  print('');
}
