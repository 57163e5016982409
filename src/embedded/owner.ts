import { spawn } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import { CHILD_ENV } from './command.ts';
import { EmbeddedError, type EmbeddedLog } from './reports.ts';

export interface OwnerLock {
  release(): Promise<void>;
}

const SQLITE_BUSY = 5;
const RETRY_MS = 50;
/** How long a holder whose pid is not (yet) on record, or is dead, may keep us waiting. */
const UNKNOWN_HOLDER_MS = 3_000;

// A handle that nothing refers to would be collected, and its lock with it.
const held = new Set<DatabaseSync>();

/**
 * Takes SQLite's exclusive lock on a file. Node has no flock, and SQLite comes with it: its lock is the kernel's, so it
 * goes with the process however that ends, and unlike a bare fcntl lock it excludes within one process as well.
 */
function tryLock(lockFile: string): DatabaseSync | null {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(lockFile, { timeout: 0 });
    database.exec('begin exclusive');
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return null;
    throw new EmbeddedError(
      'data-dir',
      `Cannot lock ${lockFile}`,
      'start as the user who owns this folder, or choose another DATA_DIR',
      error,
    );
  }
}

/** True where a process with this pid exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

async function readOwner(ownerFile: string): Promise<number | null> {
  const text = await readFile(ownerFile, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return pid > 0 ? pid : null;
}

/**
 * Makes this process the one owner of a data directory until `release`, or its death.
 *
 * @throws EmbeddedError `in-use`, naming the owner's pid; `data-dir` where the lock file cannot be opened
 */
export async function acquireOwnerLock(
  files: { lockFile: string; ownerFile: string },
  clock: Clock,
): Promise<OwnerLock> {
  const start = clock.monotonic();
  for (;;) {
    const database = tryLock(files.lockFile);
    if (database) {
      held.add(database);
      await rm(files.ownerFile, { force: true });
      await writeFile(files.ownerFile, `${process.pid}\n`, { flag: 'wx' });
      return {
        async release() {
          if (!held.delete(database)) return;
          await rm(files.ownerFile, { force: true });
          database.close();
        },
      };
    }
    const owner = await readOwner(files.ownerFile);
    const live = owner !== null && isAlive(owner);
    if (live || clock.monotonic() - start > UNKNOWN_HOLDER_MS) {
      throw new EmbeddedError(
        'in-use',
        `The data directory is in use by process ${live ? owner : '(unknown)'}`,
        'stop that process, or choose another DATA_DIR',
      );
    }
    await clock.sleep(RETRY_MS);
  }
}

/**
 * Ends the server when its owner is gone: stdin is a pipe that only the owner holds, so that its end of file is the
 * owner's death, however that came. The last line on stdin is the server's pid. A shell, because it is a hundredth of
 * a Node in memory and needs no file of its own in the published package. Before it signals it looks whether that pid
 * still is the server: by its working directory where there is a /proc, by its being alive elsewhere.
 */
const SCRIPT = `
dir=$1
trap '' HUP INT TERM
pid=
while IFS= read -r line; do pid=$line; done
[ -n "$pid" ] || exit 0
running() {
  if [ -d /proc/self ]; then [ "$(readlink "/proc/$pid/cwd")" = "$dir" ]; else kill -0 "$pid"; fi
}
running || exit 0
kill -INT "$pid"
waited=0
while running && [ "$waited" -lt 90 ]; do
  sleep 1
  waited=$((waited + 1))
  if [ "$waited" -eq 60 ]; then kill -QUIT "$pid"; fi
done
`;

export interface Watchdog {
  readonly pid: number | undefined;
  /** Tells the watchdog which server it guards from now on. */
  guard(serverPid: number): void;
  /**
   * Lets it go; resolves when it has ended. Call this once the server is down: otherwise the watchdog shuts it down.
   */
  dismiss(): Promise<void>;
}

/**
 * Starts the watchdog of a data directory, before its server: it must be there for the server's whole life. It has a
 * session of its own, so that a Ctrl-C in the terminal reaches the owner alone.
 *
 * @param home the data directory's real path, which is the server's working directory
 */
export function startWatchdog(home: string, log: EmbeddedLog): Watchdog {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'catalog-mirror-watchdog', home], {
    detached: true,
    cwd: '/',
    env: CHILD_ENV,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  let dismissed = false;
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      // Not worth a restart: an orphan it would have stopped is found at the next start.
      if (!dismissed) log('embedded.watchdog-lost', { pid: child.pid });
      resolve();
    };
    child.once('exit', end);
    child.once('error', end);
  });
  // Writing to a watchdog that was killed fails; its end is reported above.
  child.stdin.on('error', () => {});
  child.unref();
  // The typings know a Writable; it is a socket, which would keep an owner alive that forgot to stop.
  if ('unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref();
  return {
    pid: child.pid,
    guard(serverPid) {
      child.stdin.write(`${serverPid}\n`);
    },
    async dismiss() {
      dismissed = true;
      child.ref();
      child.stdin.end();
      await ended;
    },
  };
}
