import { onTestFinished } from 'vitest';
import { followOn, type Lifetime } from '../../src/cli/follow/following.ts';
import type { Follow } from '../../src/cli/follow/wanted.ts';
import { parseFilters } from '../../src/follow/filter.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { movePrices } from './changes.ts';
import { OK } from './session.ts';

const WANTED: Follow = {
  do: 'follow',
  name: 'shop',
  from: 'now',
  reset: false,
  filter: parseFilters([], []),
  once: false,
  webhook: null,
  attempts: 10,
  batch: 500,
};

async function opened(database: TestDatabase): Promise<{ readonly url: string; readonly sql: Sql }> {
  const sql = connect(database.url, { max: 2 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return { url: database.url, sql };
}

/** Creates a mirror with some changes, and a backup of it. `known`: somebody followed as shop before the backup. */
export async function withBackup({ known }: { readonly known: boolean }) {
  const database = await createDatabase('migrated');
  const before = connect(database.url, { max: 2 });
  await movePrices(before, 3);
  if (known) await following(() => database.url, { once: true }).ended;
  await before.end({ timeout: 2 });
  const backup = await opened(await createDatabase({ copyOf: database.url }));
  return { source: await opened(database), backup };
}

/** Follows like a process, until it ends by itself or is stopped. */
export function following(
  url: () => string | Promise<string>,
  more: Partial<Follow> = {},
  taking: () => Promise<void> = () => Promise.resolve(),
  life: Partial<Pick<Lifetime, 'clock' | 'storeLost' | 'storeBack'>> = {},
) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const seen: number[] = [];
  const begun = Promise.withResolvers<void>();
  const ended = followOn({
    wanted: { ...WANTED, ...more },
    sink: {
      limits: { changes: 1000, bytes: 100_000 },
      async deliver({ lines }) {
        await taking();
        seen.push(...lines.map((line) => (JSON.parse(line) as { position: number }).position));
        return OK;
      },
      async close() {},
    },
    filter: WANTED.filter,
    attempts: WANTED.attempts,
    once: more.once ?? false,
    clock: systemClock,
    random: () => 0,
    stopped: stop.signal,
    patience: stop.signal,
    tell() {},
    url: async () => await url(),
    started: () => begun.resolve(),
    storeLost() {},
    storeBack() {},
    ...life,
  });
  // A test that fails before it awaits this must not fail twice.
  ended.catch(() => {});
  return { seen, stop, begun: begun.promise, ended };
}

/** Returns a clock whose sleeps take no time until there were `most` of them, and how long each should have been. */
export function sleeps(most: number) {
  const asked: number[] = [];
  const enough = Promise.withResolvers<void>();
  const clock = {
    ...systemClock,
    async sleep(ms: number) {
      asked.push(ms);
      if (asked.length < most) return;
      enough.resolve();
      await new Promise(() => {});
    },
  };
  return { asked, clock, enough: enough.promise };
}

/**
 * Wraps a clock that does not wait, so that the minute until the next poll does not pass before the session is
 * lost.
 */
export const retries = (clock: Clock): Clock => ({
  ...clock,
  sleep: (ms, signal) => (ms < 60_000 ? clock : systemClock).sleep(ms, signal),
});

export const cutOff = (sql: Sql) => sql`
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and application_name like 'catalog-mirror follow%'`;
