import { readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { clusterPaths } from './data-dir.ts';

/**
 * URL of the embedded Postgres that another process runs in `dataDir`, or null when none does: how `status` and `refresh`
 * find the mirror of a daemon on the same machine.
 */
export async function locateEmbeddedPostgres(dataDir: string): Promise<string | null> {
  const asked = resolve(dataDir);
  try {
    const pidFile = await readFile(join(await realpath(asked), 'postmaster.pid'), 'utf8');
    const password = (await readFile(clusterPaths(asked).passwordFile, 'utf8')).trim();
    // Fourth line: the port (PostgreSQL documentation, "postmaster.pid").
    const port = Number(pidFile.split('\n')[3]);
    return Number.isInteger(port) && port > 0
      ? `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
      : null;
  } catch {
    return null;
  }
}
