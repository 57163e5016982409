import { once } from 'node:events';
import type { Clock } from '../lib/clock.ts';
import { holds, pauseNews } from '../pace/pause.ts';
import type { QueueBackend } from '../queues/backend.ts';
import type { Runner } from '../queues/runner.ts';
import { sampleOf } from '../status/sample.ts';
import type { StatementAtWork } from '../store/connection/at-work.ts';
import { connectAlone, type DatabaseUrl, type Sql } from '../store/connection/db.ts';
import { checkMirror, mirrorReplaced } from '../store/connection/own-mirror.ts';
import { type Pause, readPause } from '../store/sellers/pause.ts';
import { isMigratedPast, newestMigration } from '../store/setup/journal.ts';
import { readLockHolders } from '../store/status/holders.ts';
import { readPresent, writeSample } from '../store/status/samples.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { OnStop } from './database.ts';
import { DEAD_AFTER_MS, type HealthReader } from './health.ts';
import type { Parts } from './parts.ts';

const WATCH_EVERY_MS = 2000;
/** Often enough that every minute gets a sample. */
const SAMPLE_EVERY_MS = 10_000;
/**
 * Often enough to know, once jobs have not ended for so long that a daemon counts as dead, whether the queues
 * answer.
 */
const ASK_QUEUES_EVERY_MS = 15_000;
const COMPARE_SETTINGS_EVERY_MS = 5000;
const ASK_VERSION_EVERY_MS = 60_000;

/** What is watched, and what reports it. */
export interface WatchedParts extends Pick<
  Parts,
  'backend' | 'clock' | 'clocks' | 'log' | 'names' | 'sync' | 'telemetry'
> {
  readonly postgresAnswers: () => Promise<void>;
  readonly atWork: () => readonly StatementAtWork[];
  readonly health: HealthReader;
  /** Compares the settings that SQL uses with this daemon's (stored-settings.ts). */
  readonly settings: () => Promise<void>;
}

/**
 * Watches locks, slow statements, clocks, learned names, stored settings, queues, jobs and the tables' version, and
 * takes samples of the status. Resolves when only another process can continue: with an error if that needs another
 * configuration, otherwise with null.
 */
export function startWatches(parts: WatchedParts, runner: Runner, onStop: OnStop): Promise<Error | null> {
  const { clocks, names, telemetry, sync } = parts;
  every(WATCH_EVERY_MS, parts, onStop, async () => {
    // If Postgres does not answer, other parts report that.
    telemetry.onLocks(await readLockHolders(sync.sql));
  });
  every(WATCH_EVERY_MS, parts, onStop, async () => telemetry.onSlow(parts.atWork()));
  every(WATCH_EVERY_MS, parts, onStop, () => clocks.check());
  every(WATCH_EVERY_MS, parts, onStop, () => names.read());
  every(WATCH_EVERY_MS, parts, onStop, createPauseWatch(sync.sql, parts.log));
  every(COMPARE_SETTINGS_EVERY_MS, parts, onStop, parts.settings);
  // At once, so that a `run --once` of a second leaves a sample, too.
  every(SAMPLE_EVERY_MS, parts, onStop, createSampler(sync.sql, parts.health), 0);
  every(ASK_QUEUES_EVERY_MS, parts, onStop, () => parts.health.askQueues());
  const needsAnother = Promise.race([watchJobs(parts, runner, onStop), watchVersion(parts, onStop)]);
  return Promise.race([watchMirror(parts, onStop), needsAnother.then(() => null)]);
}

/**
 * Repeats `work`, by the monotonic clock, until the daemon stops. By default not at once, because a start has just
 * done what it needs, and the first requests are waiting. Errors are dropped: other parts that meet them report
 * them.
 */
export function every(
  ms: number,
  { clock }: Pick<Parts, 'clock'>,
  onStop: OnStop,
  work: () => Promise<void>,
  firstAfterMs: number = ms,
): void {
  const stopping = new AbortController();
  const repeating = async () => {
    await clock.sleep(firstAfterMs, stopping.signal);
    while (!stopping.signal.aborted) {
      await work().catch(() => {});
      await clock.sleep(ms, stopping.signal);
    }
  };
  void repeating();
  onStop(async () => stopping.abort());
}

/**
 * Returns a function that stores the present minute's sample of the status if no daemon has done so yet, so that
 * several daemons together take one a minute. Call it several times a minute: all but one of the calls read a single
 * row, and notice a back-off that ends before the next sample.
 */
export function createSampler(sql: Sql, health: Pick<HealthReader, 'read'>): () => Promise<void> {
  let wasRefused = false;
  return async () => {
    const { sampled, refused } = await readPresent(sql);
    wasRefused ||= refused;
    if (sampled) return;
    const { status, health: judged, now } = await health.read();
    if (status === null) return;
    const sample = sampleOf(status, judged.state, now);
    await writeSample(sql, { ...sample, backingOff: sample.backingOff || wasRefused });
    wasRefused = refused;
  };
}

/**
 * Returns a function that logs once if somebody has paused or resumed requests. The pause itself is enforced by
 * permits.
 */
function createPauseWatch(sql: Sql, log: Log): () => Promise<void> {
  let before: Pause | null = null;
  const iso = (ms: number) => new Date(ms).toISOString();
  return async () => {
    const { pause, now } = await readPause(sql);
    const news = pauseNews(before, pause, now);
    before = holds(pause, now) ? pause : null;
    if (news === null) return;
    const { since, until, by, resumedBy } = news.pause;
    if (news.what === 'paused')
      log.info({
        event: 'requests.paused',
        by,
        pausedSince: iso(since),
        pausedUntil: until === null ? null : iso(until),
      });
    else
      log.info({
        event: 'requests.resumed',
        by: resumedBy,
        pausedSince: iso(since),
        lastedSeconds: Math.round((now - since) / 1000),
      });
  };
}

/**
 * Resolves, after a line in the log, when a later version has migrated the database, at most a minute afterwards: as
 * at a start, what that changed is unknown here.
 */
export function watchVersion(
  {
    log,
    sync: { clock, sql },
  }: Pick<Parts, 'log'> & { readonly sync: { readonly clock: Clock; readonly sql: Sql } },
  onStop: OnStop,
): Promise<void> {
  const stopping = new AbortController();
  onStop(async () => stopping.abort());
  return new Promise((resolve) => {
    const watch = async () => {
      const newest = await newestMigration();
      for (;;) {
        await clock.sleep(ASK_VERSION_EVERY_MS, stopping.signal);
        if (stopping.signal.aborted) return;
        // If Postgres does not answer, other parts report that.
        if (await isMigratedPast(sql, newest).catch(() => false)) break;
      }
      log.fatal({ event: 'app.outdated' });
      resolve();
    };
    void watch();
  });
}

/**
 * Resolves, after a line in the log, with the error that refuses this daemon once the mirror has become another
 * account's while the daemon was away: as soon as any part has met that, or at most a minute afterwards.
 */
async function watchMirror(
  { log, clock, sync: { sql } }: Pick<Parts, 'log' | 'clock'> & { readonly sync: { readonly sql: Sql } },
  onStop: OnStop,
): Promise<Error> {
  every(ASK_VERSION_EVERY_MS, { clock }, onStop, () => checkMirror(sql));
  const replaced = mirrorReplaced(sql);
  if (!replaced.aborted) await once(replaced, 'abort');
  log.fatal({ event: 'app.other-account' });
  return replaced.reason as Error;
}

const CHECK_EVERY_MS = 15_000;
/** How many consecutive checks, a minute from the first to the last, must find it stalled. */
const CHECKS = 5;
const PING_WITHIN_MS = 5000;

type JobsParts = Pick<Parts, 'log'> & {
  readonly backend: Pick<QueueBackend, 'ping'>;
  readonly sync: { readonly clock: Clock };
  /** Statements of this daemon that Postgres is working on, however long. */
  readonly atWork: () => readonly unknown[];
  /** Rejects if Postgres does not answer on a new connection. */
  readonly postgresAnswers: () => Promise<void>;
};

/**
 * Resolves, after a line in the log, when no job has ended for five minutes although the queues answer, and Postgres
 * answers on a new connection. This must last for another minute, which gives a process that was stopped time to
 * continue. It does not resolve while Postgres is working on a statement of this daemon, because another process
 * would start that from the beginning.
 */
export function watchJobs(
  { log, backend, sync: { clock }, atWork, postgresAnswers }: JobsParts,
  runner: Pick<Runner, 'lastJobAt'>,
  onStop: OnStop,
): Promise<void> {
  const startedAt = clock.monotonic();
  const stopping = new AbortController();
  onStop(async () => stopping.abort());
  const idleMs = () => clock.monotonic() - (runner.lastJobAt() ?? startedAt);
  const storesAnswer = () =>
    Promise.all([backend.ping(PING_WITHIN_MS), postgresAnswers()]).then(
      () => true,
      () => false,
    );
  const isStalled = async () => idleMs() >= DEAD_AFTER_MS && atWork().length === 0 && (await storesAnswer());
  return new Promise((resolve) => {
    const watch = async () => {
      for (let seen = 0; seen < CHECKS;) {
        await clock.sleep(CHECK_EVERY_MS, stopping.signal);
        if (stopping.signal.aborted) return;
        seen = (await isStalled()) ? seen + 1 : 0;
      }
      log.fatal({ event: 'app.stalled', lastJobSecondsAgo: Math.round(idleMs() / 1000) });
      resolve();
    };
    void watch();
  });
}

export async function askPostgres(databaseUrl: DatabaseUrl): Promise<void> {
  const client = await connectAlone(databaseUrl, { application_name: 'catalog-mirror check' });
  await client.end();
}
