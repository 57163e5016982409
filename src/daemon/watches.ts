import type { Runner } from '../queues/runner.ts';
import type { StatementAtWork } from '../store/connection/at-work.ts';
import { readLockHolders } from '../store/status/lock-holders.ts';
import type { OnStop } from './database.ts';
import type { HealthReader } from './health.ts';
import { watchVersion } from './outdated.ts';
import type { Parts } from './parts.ts';
import { createPauseWatch } from './pause-watch.ts';
import { createSampler } from './sampler.ts';
import { watchJobs } from './stalled.ts';

const WATCH_EVERY_MS = 2000;
/** Often enough that no minute goes by without a sample. */
const SAMPLE_EVERY_MS = 10_000;
/** Often enough that it is known when jobs have not ended for as long as makes a daemon dead. */
const ASK_QUEUES_EVERY_MS = 15_000;

/** What is watched, and what tells of it. */
export interface WatchedParts extends Pick<
  Parts,
  'backend' | 'clock' | 'clocks' | 'log' | 'names' | 'sync' | 'telemetry'
> {
  readonly postgresAnswers: () => Promise<void>;
  readonly atWork: () => readonly StatementAtWork[];
  readonly health: HealthReader;
}

/**
 * Keeps an eye on locks, slow statements, clocks, learned names, queues, jobs and the tables' version, and samples of
 * the status. Resolves when only another process will go on.
 */
export function startWatches(parts: WatchedParts, runner: Runner, onStop: OnStop): Promise<void> {
  const { clocks, names, telemetry, sync } = parts;
  every(WATCH_EVERY_MS, parts, onStop, async () => {
    // Where Postgres does not answer, others tell that.
    telemetry.onLocks(await readLockHolders(sync.sql));
  });
  every(WATCH_EVERY_MS, parts, onStop, async () => telemetry.onSlow(parts.atWork()));
  every(WATCH_EVERY_MS, parts, onStop, () => clocks.check());
  every(WATCH_EVERY_MS, parts, onStop, () => names.read());
  every(WATCH_EVERY_MS, parts, onStop, createPauseWatch(sync.sql, parts.log));
  // At once, so that a `run --once` of a second leaves one, too.
  every(SAMPLE_EVERY_MS, parts, onStop, createSampler(sync.sql, parts.health), 0);
  every(ASK_QUEUES_EVERY_MS, parts, onStop, () => parts.health.askQueues());
  return Promise.race([watchJobs(parts, runner, onStop), watchVersion(parts, onStop)]);
}

/**
 * Does work again and again, by the monotonic clock, until the daemon stops. Not at once, unless asked to: what a
 * start needs has just been done, and the first requests are waiting. Errors are for whoever meets them first
 * elsewhere.
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
