import { readFile, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { clusterPaths, onDisk, readState } from './data-dir.ts';
import { unless } from './errors.ts';
import { clusterProcesses, parsePostmasterFile } from './processes.ts';

/**
 * What a data directory holds for those who only read: no cluster, one that is not running, or one that takes
 * connections at `url`.
 */
export type FoundCluster =
  | { readonly state: 'none' }
  | { readonly state: 'stopped' }
  | { readonly state: 'running'; readonly url: string };

/**
 * Finds the embedded Postgres of another process on this machine. Creates and changes nothing. A `postmaster.pid`
 * that a crash has left behind does not count: the process has to be a Postgres of this directory.
 *
 * @throws EmbeddedError `data-dir` where the directory cannot be read, or holds something else
 */
export async function findEmbeddedPostgres(dataDir: string): Promise<FoundCluster> {
  const asked = resolve(dataDir);
  return await onDisk(asked, async () => {
    const home = await unless(['ENOENT'], realpath(asked));
    const paths = clusterPaths(asked);
    if (home === undefined || (await readState(home, paths)) !== 'cluster') return { state: 'none' };
    const text = await unless(['ENOENT'], readFile(join(home, 'postmaster.pid'), 'utf8'));
    const server = text === undefined ? null : parsePostmasterFile(text);
    if (text === undefined || server === null) return { state: 'stopped' };
    if (!(await clusterProcesses(home)).includes(server.pid)) return { state: 'stopped' };
    const password = (await readFile(paths.passwordFile, 'utf8')).trim();
    // Fourth line: the port (PostgreSQL documentation, "postmaster.pid").
    const port = Number(text.split('\n')[3]);
    return port > 0
      ? { state: 'running', url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres` }
      : { state: 'stopped' };
  });
}
