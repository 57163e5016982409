import type { Clock } from '../lib/clock.ts';
import type { QueueBackend } from '../queues/backend.ts';
import type { Runner } from '../queues/runner.ts';
import { connectAlone, type DatabaseUrl } from '../store/connection/db.ts';
import type { OnStop } from './database.ts';
import { DEAD_AFTER_MS } from './health.ts';
import type { Parts } from './parts.ts';

const CHECK_EVERY_MS = 15_000;
/** Consecutive checks, a minute from the first to the last, that must find it stalled. */
const CHECKS = 5;
const PING_WITHIN_MS = 5000;

type WatchedParts = Pick<Parts, 'log'> & {
  readonly backend: Pick<QueueBackend, 'ping'>;
  readonly sync: { readonly clock: Clock };
  /** Statements of this daemon that Postgres is at work on, however long. */
  readonly atWork: () => readonly unknown[];
  /** Rejects where it does not, on a connection that is made for the question. */
  readonly postgresAnswers: () => Promise<void>;
};

/**
 * Resolves, after a line in the log, when no job has ended for five minutes although queues and Postgres answer,
 * Postgres on a connection that is made for the question. It has to be so for another minute, in which a process that
 * was stopped gets the time to go on. What Postgres is at work on is waited for: it would begin anew.
 */
export function watchJobs(
  { log, backend, sync: { clock }, atWork, postgresAnswers }: WatchedParts,
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

/** Asks Postgres on a connection that is made for it. */
export async function askPostgres(databaseUrl: DatabaseUrl): Promise<void> {
  const client = await connectAlone(databaseUrl, { application_name: 'catalog-mirror check' });
  await client.end();
}
