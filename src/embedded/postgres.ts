import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Clock, systemClock } from '../lib/clock.ts';
import { findPlatformPackage, prepareBinaries } from './binaries.ts';
import { chooseAccount } from './command.ts';
import {
  absolute,
  clusterPaths,
  type ClusterPaths,
  makeFolders,
  onDisk,
  ownerOf,
  placeDataDir,
  readState,
} from './data-dir.ts';
import { ensureCluster } from './initdb.ts';
import { acquireOwnerLock, type OwnerLock, startWatchdog, type Watchdog } from './owner.ts';
import { clearOrphans, clusterProcesses, parsePostmasterFile } from './processes.ts';
import { type EmbeddedLog, unless } from './reports.ts';
import { type Server, startServer } from './server.ts';

export interface EmbeddedPostgres {
  /**
   * `postgres://postgres:<password>@127.0.0.1:<port>/postgres`, the same after each start unless the port was taken.
   */
  readonly url: string;
  readonly pid: number;
  /** Absolute path of the data directory, as requested. */
  readonly dataDir: string;
  /** Shuts the server down and releases the data directory. Further calls return the same promise. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface EmbeddedOptions {
  /** Where the cluster is; a folder of its own. Its password, lock and startup log are beside it. */
  dataDir: string;
  /** Server settings that override the defaults, e.g. `{ fsync: 'off' }` in tests. */
  settings?: Record<string, string>;
  log?: EmbeddedLog;
  clock?: Clock;
  /** How long the server may take until it accepts connections, crash recovery included; 120 s by default. */
  startTimeoutMs?: number;
  /** The preferred port; any free one if it is taken or not given. */
  port?: number;
}

/**
 * The usual port of a mirror's own server, so that an address that somebody has noted stays valid. Not 5432, which is
 * for a Postgres of the machine.
 */
export const USUAL_PORT = 54_329;

/** Where root puts what the service user cannot reach in its own place. */
const SYSTEM_FOLDER = '/var/lib/catalog-mirror';
const START_TIMEOUT_MS = 120_000;

/**
 * Starts the Postgres of a data directory, creating the cluster on first use, and waits until it takes connections.
 *
 * The server belongs to this process: a second owner is refused, a server that an earlier owner left behind is stopped
 * first, and a watchdog shuts this one down if this process dies without `stop`. It installs no signal handlers and
 * does not keep the process alive: the caller stops it when its own work is done.
 *
 * @throws EmbeddedError, with a `hint` for the operator; after a failure nothing is left running or locked
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const clock = options.clock ?? systemClock;
  const packageFolder = findPlatformPackage();
  const asked = absolute(options.dataDir);
  // In places such as /proc, where nothing can be created, the system reports ENOENT.
  const paths = await onDisk(asked, async () => {
    await makeFolders(dirname(asked));
    // One cluster has one lock, whatever links its folder was named by.
    return clusterPaths(join(await realpath(dirname(asked)), basename(asked)));
  }, ['ENOENT']);
  const lock = await onDisk(asked, () => acquireOwnerLock(paths, clock));
  try {
    return await onDisk(asked, () => start({ ...options, clock }, packageFolder, paths, lock));
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function start(
  options: EmbeddedOptions & { clock: Clock },
  packageFolder: string,
  paths: ClusterPaths,
  lock: OwnerLock,
): Promise<EmbeddedPostgres> {
  const { clock, log = () => {}, settings = {} } = options;
  const account = chooseAccount({
    euid: process.geteuid?.() ?? 0,
    passwd: await readFile('/etc/passwd', 'utf8').catch(() => ''),
    clusterOwner: await ownerOf(paths.dataDir),
  });
  const copyFolder = account === null ? dirname(paths.dataDir) : SYSTEM_FOLDER;
  const binaries = await prepareBinaries({ packageFolder, account, copyFolder, log });
  const home = await placeDataDir(paths, account, SYSTEM_FOLDER, log);
  await clearOrphans(home, clock, log);
  const { password, created } = await ensureCluster({
    home,
    paths,
    binaries,
    account,
    sync: settings['fsync'] !== 'off',
  });
  const watchdog = startWatchdog(home, log);
  let server: Server;
  try {
    server = await startServer(
      {
        home,
        startupLog: paths.startupLog,
        binaries,
        account,
        settings,
        startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
        port: options.port,
      },
      { watchdog, clock, log },
    );
  } catch (error) {
    await watchdog.dismiss();
    throw error;
  }
  log('embedded.started', {
    pid: server.pid,
    port: server.port,
    home,
    uid: account?.uid,
    created,
    watchdog: watchdog.pid,
  });
  return own({ server, watchdog, lock, password, dataDir: paths.dataDir });
}

function own(parts: {
  server: Server;
  watchdog: Watchdog;
  lock: OwnerLock;
  password: string;
  dataDir: string;
}): EmbeddedPostgres {
  const { server, watchdog, lock } = parts;
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      await server.stop();
      await watchdog.dismiss();
      await lock.release();
    })();
    return stopping;
  };
  return {
    url: `postgres://postgres:${parts.password}@127.0.0.1:${server.port}/postgres`,
    pid: server.pid,
    dataDir: parts.dataDir,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * The state of a data directory for those who only read: no cluster, one that is not running, or one that takes
 * connections at `url`.
 */
export type FoundCluster =
  | { readonly state: 'none' }
  | { readonly state: 'stopped' }
  | { readonly state: 'running'; readonly url: string };

/**
 * Finds the embedded Postgres of another process on this machine. Creates and changes nothing. A `postmaster.pid` left
 * behind by a crash does not count: the process has to be a Postgres of this directory.
 *
 * @throws EmbeddedError `data-dir` if the directory cannot be read, or contains something else
 */
export async function findEmbeddedPostgres(dataDir: string): Promise<FoundCluster> {
  const asked = absolute(dataDir);
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
