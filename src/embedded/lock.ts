import { readFile, rm, writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import { EmbeddedError } from './reports.ts';

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
