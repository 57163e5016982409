import type { Clock } from '../lib/clock.ts';
import type { Sql } from '../store/connection/db.ts';
import { isMigratedPast, newestMigration } from '../store/setup/migrations.ts';
import type { OnStop } from './database.ts';
import type { Parts } from './parts.ts';

const CHECK_EVERY_MS = 60_000;

type WatchedParts = Pick<Parts, 'log'> & { readonly sync: { readonly clock: Clock; readonly sql: Sql } };

/**
 * Resolves, after a line in the log, when a later version has migrated the database, at most a minute afterwards: what
 * that changed is unknown here, as at a start.
 */
export function watchVersion({ log, sync: { clock, sql } }: WatchedParts, onStop: OnStop): Promise<void> {
  const stopping = new AbortController();
  onStop(async () => stopping.abort());
  return new Promise((resolve) => {
    const watch = async () => {
      const newest = await newestMigration();
      for (;;) {
        await clock.sleep(CHECK_EVERY_MS, stopping.signal);
        if (stopping.signal.aborted) return;
        // Where Postgres does not answer, others tell that.
        if (await isMigratedPast(sql, newest).catch(() => false)) break;
      }
      log.fatal({ event: 'app.outdated' });
      resolve();
    };
    void watch();
  });
}
