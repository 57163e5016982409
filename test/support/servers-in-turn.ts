import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { roomForFiles } from './room.ts';

/** Runs a server in a folder while `work` runs. */
export async function serving<T>(
  folder: string,
  work: (sql: Sql, url: string) => Promise<T>,
  hotStandby = 'off',
): Promise<T> {
  await using server = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    settings: { ...FAST_SETTINGS, wal_level: 'replica', hot_standby: hotStandby },
  });
  const sql = connect(server.url, { max: 1 });
  try {
    return await work(sql, server.url);
  } finally {
    await sql.end({ timeout: 2 });
  }
}

export async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(roomForFiles(), 'catalog-mirror-servers-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  return folder;
}
