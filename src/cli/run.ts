import { type Config, envFileOf, loadConfig, processSources } from '../config/config.ts';
import { lateWarnings } from '../config/environment.ts';
import { type App, startApp } from '../daemon/app.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { parseDuration } from '../lib/duration.ts';
import { plural } from '../lib/format.ts';
import { databaseNow, type StillDue, stillDue } from '../store/catalog/sync-state.ts';
import { isThrough, requestTask } from '../store/ledger/tasks.ts';
import { libraryLines } from '../telemetry/log/lines.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';
import { judgeEncryption } from './doctor/connection.ts';
import { explainedStart } from './explained.ts';
import { openLog } from './log.ts';
import { captureLibraryOutput, endOnCrash, stopSignal } from './process.ts';

export const run: Command = {
  summary: 'run the daemon; with --once, sync until nothing is pending and exit',
  usage: 'run\nrun --once [--timeout 30m]',
  examples: [
    ['catalog-mirror run', 'run the daemon until SIGTERM or SIGINT'],
    [
      'catalog-mirror run --once --timeout 30m',
      'for cron: catch up and exit, or report what is still pending',
    ],
  ],
  exits: ['ok', 'failed', 'unfinished', 'timeout', 'usage'],
  options: { once: { type: 'boolean' }, timeout: { type: 'string' } },
  optionHelp: {
    once: 'exit 0 once a baseline is applied, the delta is caught up and no SKU is due',
    timeout: 'with --once: give up after this time, report what is still pending and exit 75',
  },
  positionals: false,
  problemsOf: problemsIn(timeoutOf),
  async run(args) {
    const timeoutMs = timeoutOf(args);
    const config = loadConfig(processSources.env, processSources.readFile);
    const log = openLog(config);
    endOnCrash((error) => log.fatal({ event: 'app.crashed', err: error }));
    captureLibraryOutput(libraryLines(log, systemClock));
    const late = lateWarnings(processSources.env, envFileOf).map(({ text, remedy }) => `${text}; ${remedy}`);
    for (const warning of [...config.warnings, ...late, ...unprotected(config)])
      log.warn({ event: 'config.warning', warning });
    const once = args.values['once'] === true ? { timeoutMs } : null;
    return await runDaemon(config, log, systemClock, once).catch(async (error: unknown) => {
      const url = config.database.url?.read();
      throw url === undefined ? error : await explainedStart(error, url);
    });
  },
};

/**
 * Returns doctor's warnings about connections to other hosts whose password can be read on the way, or by whoever
 * answers in their place.
 */
function unprotected(config: Config): string[] {
  const urls = { DATABASE_URL: config.database.url?.read(), REDIS_URL: config.queues.redisUrl?.read() };
  return Object.entries(urls).flatMap(([variable, url]) => {
    const found = url === undefined ? null : judgeEncryption(variable, variable, url);
    return found?.level === 'WARN' ? [`${variable}: ${found.text}; ${found.remedy ?? ''}`] : [];
  });
}

function timeoutOf({ values, given }: Arguments): number | null {
  const text = values['timeout'];
  if (text === undefined) return null;
  const ms = parseDuration(String(text));
  const problems = [
    ...(ms === null || ms <= 0 ? ['--timeout: expected a duration such as 90s, 30m or 2h'] : []),
    ...(given.has('once') ? [] : ['--timeout: needs --once']),
  ];
  if (problems.length > 0) throw new UsageError(problems);
  return ms;
}

/** Runs until a signal or, given `once`, until the mirror is caught up or the time is over. Returns the exit code. */
async function runDaemon(
  config: Config,
  log: Log,
  clock: Clock,
  once: { readonly timeoutMs: number | null } | null,
): Promise<number> {
  const signal = stopSignal(clock);
  const stopped = new AbortController();
  void (async () => {
    log.info({ event: 'app.stopping', signal: await signal.promise });
    stopped.abort();
  })();
  let code: number = once === null ? EXIT.ok : EXIT.failed;
  const app = await startApp(config, log, clock, stopped.signal).catch((error: unknown) => {
    if (stopped.signal.aborted) return null;
    throw error;
  });
  try {
    if (app === null) return code;
    const stalled = app.stalled.then((refusal) => {
      if (refusal === null) return EXIT.failed;
      code = EXIT.usage;
      throw refusal;
    });
    if (once === null) code = await Promise.race([signal.promise.then(() => EXIT.ok), stalled]);
    else {
      const limit = clock.monotonic() + (once.timeoutMs ?? Infinity);
      code = await Promise.race([
        untilCaughtUp(app, log, clock, once.timeoutMs),
        signal.promise.then(() => EXIT.unfinished),
        stalled,
      ]);
      const withinMs = Math.min(MAINTAIN_WITHIN_MS, limit - clock.monotonic());
      // The requested work is done, so being stopped now is not a failure.
      if (code === EXIT.ok)
        await Promise.race([untilMaintained(app, clock, withinMs), signal.promise, stalled]);
    }
  } finally {
    await app?.stop();
    signal.dispose();
    log.info({ event: 'app.stopped', code });
  }
  return code;
}

/** Maintenance continues at once if there is more to do; the next run of this command does the rest. */
const MAINTAIN_WITHIN_MS = 20_000;

/**
 * Waits until maintenance has done what may be done after this sync. Otherwise a run of a few seconds would end before
 * maintenance begins, or while it rests because no answer has yet shown that Postgres's clock is right. If there were
 * only such runs, nothing would ever be dropped.
 */
export async function untilMaintained(
  { sql, wake }: Pick<App, 'sql' | 'wake'>,
  clock: Clock,
  withinMs: number,
): Promise<void> {
  const since = await databaseNow(sql);
  await requestTask(sql, 'maintenance');
  await wake('maintenance');
  const until = clock.monotonic() + withinMs;
  while (clock.monotonic() < until && !(await isThrough(sql, 'maintenance', since)))
    await clock.sleep(POLL_EVERY_MS);
}

const POLL_EVERY_MS = 200;
const LOG_EVERY_MS = 30_000;

/** Waits until nothing is due; every thirty seconds logs what still is. */
export async function untilCaughtUp(
  app: Pick<App, 'sql' | 'wake'>,
  log: Log,
  clock: Clock,
  timeoutMs: number | null,
): Promise<number> {
  let since = await databaseNow(app.sql);
  await requestTask(app.sql, 'delta');
  await app.wake('delta');
  const startedAt = clock.monotonic();
  let loggedAt = startedAt;
  for (;;) {
    // If Postgres's clock is set back meanwhile, later readings may never get past the first one.
    const at = await databaseNow(app.sql);
    if (at < since) since = at;
    const left = await stillDue(app.sql, since);
    const now = clock.monotonic();
    if (left.baseline && left.deltaCaughtUp && left.due.length === 0) {
      log.info({ event: 'once.caught-up', durationSeconds: Math.round((now - startedAt) / 1000) });
      return EXIT.ok;
    }
    if (timeoutMs !== null && now - startedAt >= timeoutMs) {
      log.error({ event: 'once.timeout', ...logged(left) }, `timed out; still pending: ${inWords(left)}`);
      process.stderr.write(`timed out; still pending: ${inWords(left)}\n`);
      return EXIT.timeout;
    }
    if (now - loggedAt >= LOG_EVERY_MS) {
      loggedAt = now;
      log.info({ event: 'once.waiting', ...logged(left) });
    }
    await clock.sleep(POLL_EVERY_MS);
  }
}

function logged(left: StillDue) {
  return {
    baseline: left.baseline,
    deltaCaughtUp: left.deltaCaughtUp,
    due: Object.fromEntries(left.due.map((d) => [d.reason, d.count])),
  };
}

function inWords({ baseline, deltaCaughtUp, due }: StillDue): string {
  const parts = [
    ...(baseline ? [] : ['a baseline']),
    ...(deltaCaughtUp ? [] : ['a delta poll']),
    ...due.map(({ reason, count }) => `${count} ${plural(count, 'SKU')} (${reason})`),
  ];
  return parts.join(', ');
}
