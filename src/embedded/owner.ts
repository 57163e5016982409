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
/** How long a holder whose pid is not (yet) recorded, or is dead, may keep us waiting. */
const UNKNOWN_HOLDER_MS = 3_000;

// A handle without references would be collected, and its lock with it.
const held = new Set<DatabaseSync>();

/**
 * Takes SQLite's exclusive lock on a file. Node.js has no flock but includes SQLite, whose lock is the kernel's: it
 * ends with the process however that ends, and unlike a bare fcntl lock it also excludes within one process.
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

/** Returns whether a process with this pid exists, of any user. */
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
 * Makes this process the only owner of a data directory until `release`, or its death.
 *
 * @throws EmbeddedError `in-use`, naming the owner's pid; `data-dir` if the lock file cannot be opened
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
 * Ends the server when its owner is gone: stdin is a pipe that only the owner holds, so its end of file means the
 * owner's death, however that came. The last line on stdin is the server's pid. It is a shell, which takes a hundredth
 * of the memory of Node.js and needs no file of its own in the published package. Before it signals, it checks that the
 * pid still is the server: by its working directory if there is a /proc, otherwise only by whether it is alive.
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
   * Dismisses it; resolves when it has ended. Call this once the server is down: otherwise the watchdog shuts it down.
   */
  dismiss(): Promise<void>;
}

/**
 * Starts the watchdog of a data directory, before its server, because it must exist for the server's whole life. It has
 * a session of its own, so that a Ctrl-C in the terminal reaches only the owner.
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
      // Not worth a restart: the next start finds an orphan that it would have stopped.
      if (!dismissed) log('embedded.watchdog-lost', { pid: child.pid });
      resolve();
    };
    child.once('exit', end);
    child.once('error', end);
  });
  // Writing to a killed watchdog fails; its end is reported above.
  child.stdin.on('error', () => {});
  child.unref();
  // Typed as a Writable, but it is a socket, which would keep an owner alive that forgot to stop.
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
