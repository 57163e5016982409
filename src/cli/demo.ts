import { type Config, ConfigError, loadConfig, processSources } from '../config/config.ts';
import { type App, startApp } from '../daemon/app.ts';
import { openDatabase, openMirror, WAITS } from '../daemon/database.ts';
import { ListenError } from '../daemon/http-server.ts';
import { EmbeddedError } from '../embedded/reports.ts';
import { systemClock } from '../lib/clock.ts';
import { count } from '../lib/format.ts';
import { type Sandbox, startSandbox } from '../sandbox/index.ts';
import { connect } from '../store/connection/db.ts';
import { refreshSkus } from '../store/sellers/refresh.ts';
import { OtherPartner, refuseOtherAccount } from '../store/setup/account.ts';
import { changesOf, dropMirror, recentChanges, sampleRows } from '../store/status/demo.ts';
import { createLogger, type Log } from '../telemetry/log/logger.ts';
import { type Arguments, type Command, EXIT, numberOption, problemsIn, UsageError } from './command.ts';
import { accessLines, demoEnvironment, keptLines, ownsDatabase } from './demo-environment.ts';
import { type Board, createBoard, type DemoView, isLoading } from './demo-panel.ts';
import { dataDirOf } from './mirror.ts';
import { stopSignal } from './process.ts';
import { readStatusOf } from './status.ts';
import { tableOf } from './terminal.ts';

const MARKET_EVERY_MS = 2000;
const SNAPSHOT_EVERY_MS = 15_000;
const DRAW_EVERY_MS = 1000;
/** Used until there is a baseline, which takes a second or two. */
const SOON_MS = 200;
const SAMPLE_ROWS = 8;
const CHANGES_SHOWN = 4;
/** Differs from that of `sandbox`, whose mirror may be in DATABASE_URL: a demo's mirror is recognized by its key. */
const CREDENTIAL = { apiKey: 'demo-key', secret: 'demo-secret' };
/** The SKUs of the queries in the documents, which are refreshed first. */
const EXAMPLES = ['DD1391-100', 'FV5029-141'];

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
  problemsOf: problemsIn(sandboxOptions),
  endsUnread: () => true,
  async run(args) {
    const { env } = processSources;
    const options = sandboxOptions(args);
    const board = createBoard(process.stdout, env);
    const signal = stopSignal(systemClock);
    const stopped = new AbortController();
    void signal.promise.then(() => stopped.abort());
    try {
      board.print(
        `catalog-mirror demo: a sandbox market of ${count(options.skus)} SKUs, mirrored into ` +
          (ownsDatabase(env) ? 'DATABASE_URL' : 'an embedded Postgres'),
      );
      board.busy('starting');
      const sandbox = await startSandbox({ ...options, ...CREDENTIAL });
      try {
        await withDemoDatabase(sandbox, board, stopped.signal, (config) =>
          watch(config, { board, stopped: stopped.signal, once: args.values['once'] === true }),
        );
      } finally {
        await sandbox.close();
      }
      return EXIT.ok;
    } finally {
      board.close();
      signal.dispose();
    }
  },
};

function sandboxOptions({ values }: Arguments) {
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

/**
 * Runs `work` with a configuration for the sandbox, in the demo's own database, which starts empty, or in DATABASE_URL.
 */
async function withDemoDatabase(
  sandbox: Sandbox,
  board: Board,
  stopped: AbortSignal,
  work: (config: Config) => Promise<void>,
): Promise<void> {
  const env = demoEnvironment(processSources.env, sandbox);
  const config = loadConfig(env, processSources.readFile);
  if (config.database.url !== null) {
    const isOurs = await refuseOthers(config, board, stopped).catch(namingDatabase);
    return isOurs ? await work(config).catch(namingDatabase) : undefined;
  }
  const dataDir = dataDirOf(config, 'demo');
  const database = await openDatabase(
    { database: { ...config.database, url: null } },
    logTo(board, config),
    dataDir,
  ).catch((error: unknown) => {
    // A Ctrl-C in the terminal also reaches initdb.
    if (stopped.aborted) return null;
    throw error instanceof EmbeddedError && error.kind === 'in-use' ? new AnotherDemo(error) : error;
  });
  if (database === null) return;
  try {
    const sql = connect(database.url, { max: 1 });
    await dropMirror(sql);
    await sql.end({ timeout: 5 });
    await work(
      loadConfig(
        { ...env, DATABASE_URL: database.url(), DATABASE_URL_FILE: undefined },
        processSources.readFile,
      ),
    );
  } finally {
    await database.close();
  }
}

/**
 * Waits until DATABASE_URL answers, and refuses it if its mirror is not a demo's. The key decides, because a partner
 * behind a tunnel on this host has the same address as a demo. Returns false if it was stopped before that.
 *
 * @throws OtherPartner
 */
async function refuseOthers(config: Config, board: Board, stopped: AbortSignal): Promise<boolean> {
  const disposal: (() => Promise<unknown>)[] = [];
  try {
    const { sql } = await openMirror(config, {
      log: logTo(board, config),
      clock: systemClock,
      onStop: (dispose) => disposal.unshift(dispose),
      giveUp: stopped,
      waits: WAITS,
    });
    const { baseUrl, apiKey } = config.partner;
    await refuseOtherAccount(sql, { baseUrl, apiKey: apiKey.read() });
    return true;
  } catch (error) {
    if (stopped.aborted) return false;
    throw error;
  } finally {
    for (const dispose of disposal) await dispose();
  }
}

/** Reports the database as wrong, because nobody has configured the demo's partner. */
const namingDatabase = (error: unknown): never => {
  if (!(error instanceof OtherPartner)) throw error;
  throw new ConfigError([
    {
      variable: 'DATABASE_URL',
      expected: "a database of the demo's own",
      got: `the mirror of ${error.mirrored ?? 'another account'}`,
      but: 'it is as it was; unset it, and the demo has an embedded Postgres',
    },
  ]);
};

/** A second demo was started, but each needs its market, its ports and its database for itself. */
class AnotherDemo extends Error {
  override readonly name = 'AnotherDemo';
  readonly kind = 'in-use';
  readonly hint =
    'look at that one with `catalog-mirror status`, stop it, or start this one with another DATA_DIR';

  constructor(cause: EmbeddedError) {
    super('another demo runs here', { cause });
  }
}

const logTo = (board: Board, { log, secrets }: Config): Log =>
  createLogger({
    level: log.level,
    mirrorName: log.mirrorName,
    secrets,
    destination: { write: (line) => board.log(line) },
  });

interface Watching {
  readonly board: Board;
  readonly stopped: AbortSignal;
  readonly once: boolean;
}

/**
 * Runs the daemon until it is stopped or, with `once`, until the initial load and a delta are applied. Shows what
 * happens.
 */
async function watch(config: Config, { board, stopped, once }: Watching): Promise<void> {
  const { env } = processSources;
  const startedAt = systemClock.monotonic();
  const app = await startDemo(config, logTo(board, config), stopped).catch((error: unknown) => {
    if (stopped.aborted) return null;
    throw error;
  });
  if (app === null) return;
  try {
    if (!once) for (const line of ['', ...accessLines(app, env), '']) board.print(line);
    const follower = createFollower(app, config, board, startedAt);
    await follower.until((view) => !isLoading(view), stopped);
    if (once && !stopped.aborted) {
      await showSample(app, board);
      await follower.until((view) => hasDelta(view), stopped);
      await showChanges(app, board);
    } else await follower.until(() => false, stopped);
  } finally {
    board.close();
    await app.stop();
  }
  if (!once) for (const line of ['', ...keptLines(dataDirOf(config, 'demo'), env)]) board.print(line);
}

/**
 * Starts the daemon. Its page always has the same port, so that it can be bookmarked. If another program has that port
 * and nobody has asked for it, any free one is used.
 */
async function startDemo(config: Config, log: Log, stopped: AbortSignal): Promise<App> {
  const start = (http: Config['http']) => startApp({ ...config, http }, log, systemClock, stopped);
  return await start(config.http).catch((error: unknown) => {
    const isTaken =
      error instanceof ListenError &&
      error.code === 'EADDRINUSE' &&
      (processSources.env['HTTP_PORT'] ?? '') === '';
    if (!isTaken) throw error;
    return start({ ...config.http, port: 0 });
  });
}

/** Returns whether a delta moved the mirror past the manifest's snapshot, and what it reported is refreshed. */
const hasDelta = ({ status: { stats, sync } }: DemoView): boolean =>
  sync.snapshotMovedAt !== null && stats.due.length === 0;

/** Reads the mirror repeatedly, and shows it. */
function createFollower(app: App, config: Config, board: Board, startedAt: number) {
  let isFilled = false;
  let hasAsked = false;

  async function readView(): Promise<DemoView> {
    const [{ status, health, now }, changes] = await Promise.all([
      readStatusOf(app.sql, config, 'seldom'),
      recentChanges(app.sql, CHANGES_SHOWN),
    ]);
    return { status, health, now, changes };
  }

  return {
    async until(done: (view: DemoView) => boolean, stopped: AbortSignal): Promise<void> {
      while (!stopped.aborted) {
        const view = await readView();
        const hasBaseline = view.status.stats.manifestAppliedAt !== null;
        if (hasBaseline && !hasAsked) await refreshSkus(app.sql, EXAMPLES);
        hasAsked = hasBaseline;
        // From then on, each market move adds a few new SKUs, which is not an initial load that anybody waits for.
        isFilled ||= !isLoading(view);
        board.show(view, isFilled, (systemClock.monotonic() - startedAt) / 1000);
        if (done(view)) return;
        await systemClock.sleep(hasBaseline ? DRAW_EVERY_MS : SOON_MS, stopped);
      }
    },
  };
}

function showRows(title: string, rows: readonly object[], board: Board): void {
  for (const line of ['', title, ...tableOf(rows, null).map((row) => `  ${row}`), '']) board.print(line);
}

async function showSample({ sql }: App, board: Board): Promise<void> {
  showRows('catalog.current_prices', await sampleRows(sql, SAMPLE_ROWS), board);
}

async function showChanges(app: App, board: Board): Promise<void> {
  showRows('catalog.price_history', await changesOf(app.sql, SAMPLE_ROWS), board);
  await showSample(app, board);
}
