import { join } from 'node:path';
import type { MirrorConfig } from '../config/config.ts';
import { locateEmbeddedPostgres } from '../embedded/data-dir.ts';
import { startEmbeddedPostgres } from '../embedded/postgres.ts';
import { systemClock } from '../lib/clock.ts';
import { connect, type Sql, waitForDatabase } from '../store/db.ts';
import { sqlState } from '../store/sql-errors.ts';
import { migrateDatabase } from '../store/migrations.ts';

const PATIENCE_MS = 10_000;
/** SQLSTATEs: no such table, no such schema. */
const NO_TABLES = new Set(['42P01', '3F000']);

/**
 * The mirror's database for a command beside the daemon: the configured one, the embedded one of a running daemon, or
 * else the embedded one started for as long as the command takes. `giveUp` ends the wait for it.
 */
export async function withMirror<T>(
  config: MirrorConfig,
  work: (sql: Sql) => Promise<T>,
  giveUp?: AbortSignal,
): Promise<T> {
  const dataDir = join(config.database.dataDir, 'postgres');
  const found = config.database.url?.read() ?? (await locateEmbeddedPostgres(dataDir));
  if (found !== null) return await withConnection(found, work, giveUp);
  await using embedded = await startEmbeddedPostgres({ dataDir });
  await migrateDatabase(embedded.url);
  return await withConnection(embedded.url, work, giveUp);
}

async function withConnection<T>(
  url: string,
  work: (sql: Sql) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const sql = connect(url, { max: 4 });
  try {
    await waitForDatabase(sql, systemClock, PATIENCE_MS, { signal });
    return await work(sql);
  } catch (error) {
    if (!NO_TABLES.has(sqlState(error) ?? '')) throw error;
    throw new Error('the mirror has no tables yet: start the daemon, or run `catalog-mirror migrate`', {
      cause: error,
    });
  } finally {
    await sql.end({ timeout: 1 });
  }
}
