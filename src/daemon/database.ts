import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { startEmbeddedPostgres } from '../embedded/postgres.ts';
import type { Clock } from '../lib/clock.ts';
import { paceLimits } from '../pace/policy.ts';
import { createQueueBackend, type QueueBackend } from '../queues/backend.ts';
import { noteAccount } from '../store/account.ts';
import { mendSequences } from '../store/changes.ts';
import { connect, type Sql, waitForDatabase } from '../store/db.ts';
import { migrateDatabase } from '../store/migrations.ts';
import { registerInstance } from '../store/instance.ts';
import { storeSettings } from '../store/sync-state.ts';
import { emitLine, type Log } from '../telemetry/log/logger.ts';
import { noticeLines } from '../telemetry/log/lines.ts';
import type { EmbeddedLog } from '../embedded/events.ts';

/** Takes what is to be done at the end, in reverse order. */
export type OnStop = (dispose: () => Promise<unknown>) => void;

const DATABASE_PATIENCE_MS = 60_000;

/** Where the mirror lives: the configured Postgres, or an embedded one of this process. */
export async function openDatabase(
  config: Pick<Config, 'database'>,
  log: Log,
): Promise<{ url: string; close: () => Promise<void> }> {
  const configured = config.database.url?.read();
  if (configured !== undefined) return { url: configured, close: () => Promise.resolve() };
  const embedded = await startEmbeddedPostgres({
    dataDir: join(config.database.dataDir, 'postgres'),
    log: embeddedLines(log),
  });
  return { url: embedded.url, close: () => embedded.stop() };
}

interface DatabaseParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly onStop: OnStop;
  readonly giveUp: AbortSignal | undefined;
}

/** Opens Postgres (embedded or by URL) and waits until it answers. */
export async function openMirror(config: Config, { log, clock, onStop, giveUp }: DatabaseParts) {
  const database = await openDatabase(config, log);
  onStop(() => database.close());
  const sql = connect(database.url, { onNotice: noticeLines(log, clock) });
  onStop(() => sql.end({ timeout: 5 }));
  let told = false;
  const waitedMs = await waitForDatabase(sql, clock, DATABASE_PATIENCE_MS, {
    signal: giveUp,
    onWait(err, ms) {
      told = true;
      log.warn({
        event: 'database.waiting',
        waitedSeconds: Math.round(ms / 1000),
        patienceSeconds: DATABASE_PATIENCE_MS / 1000,
        ...(err === undefined ? {} : { err }),
      });
    },
  });
  if (told) log.info({ event: 'database.answers', waitedSeconds: Math.round(waitedMs / 1000) });
  return { database, sql };
}

/** Creates and prepares the queues' backend; `onStop` closes it. */
export async function openQueues(
  config: Config,
  databaseUrl: string,
  onError: (error: Error) => void,
  onStop: OnStop,
): Promise<QueueBackend> {
  const backend = createQueueBackend({
    redisUrl: config.queues.redisUrl?.read() ?? null,
    databaseUrl,
    prefix: config.queues.prefix,
    onError,
  });
  onStop(() => backend.close());
  await backend.prepare();
  return backend;
}

/**
 * Notes whose catalog is mirrored, and tells where the api_key is another one than before. Throws ConfigError where it is another
 * partner's.
 */
export async function followAccount({ partner }: Config, sql: Sql, log: Log): Promise<void> {
  const how = await noteAccount(sql, { baseUrl: partner.baseUrl, apiKey: partner.apiKey.read() });
  if (how === 'key-replaced') log.warn({ event: 'credential.key-replaced' });
}

/** Migrates the mirror's tables, registers this instance and stores the settings that SQL reads. */
export async function migrateMirror(
  config: Config,
  sql: Sql,
  databaseUrl: string,
  { log, onStop }: Pick<DatabaseParts, 'log' | 'onStop'>,
): Promise<void> {
  await migrateDatabase(databaseUrl);
  await mendSequences(sql);
  onStop(await registerInstance(databaseUrl));
  await followAccount(config, sql, log);
  await storeSettings(sql, config, paceLimits(config));
}

export function embeddedLines(log: Log): EmbeddedLog {
  return (event, detail) => emitLine(log, { event, ...detail });
}
