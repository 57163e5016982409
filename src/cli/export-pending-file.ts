import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../lib/errors.ts';

/** The file cannot be written; the cause is the system's error. An existing file is unchanged. */
export class NotWritten extends Error {
  override readonly name = 'NotWritten';
  readonly kind = 'not-written';
  readonly hint: string;

  constructor(path: string, hint: string, cause?: unknown) {
    super(`${path} was not written`, { cause });
    this.hint = hint;
  }
}

/** Returns NotWritten for a file that was begun: the system takes no more of it, or not under this name. */
const notWritten = (path: string, cause: unknown): NotWritten =>
  new NotWritten(path, 'make room, or write elsewhere', cause);

/** A file that gets its name only when it is complete. Until then it is beside it under another name. */
export interface PendingFile {
  readonly path: string;
  readonly handle: FileHandle;
  /** Appends to the file. @throws NotWritten */
  appendFile(bytes: Uint8Array): Promise<void>;
  /**
   * Flushes the file to the disk; rejects with NotWritten if its name was taken meanwhile. Returns its size in bytes.
   */
  finish(): Promise<number>;
  /** Gives the file its name. */
  commit(): Promise<void>;
  /** Removes what was written, unless it was committed. */
  dispose(): Promise<void>;
}

/**
 * Begins a file. With `replace`, committing it replaces an existing file.
 *
 * @throws NotWritten if a file exists without `replace`, if it is not a regular file, or if none can be created there
 */
export async function createPendingFile(path: string, replace: boolean): Promise<PendingFile> {
  // Processes of several containers may have the same number and write to one volume.
  const hidden = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.part`);
  await mayBeMade(path, replace);
  const handle = await open(hidden, 'wx').catch((error: unknown) => {
    throw new NotWritten(path, 'check that its folder exists and may be written', error);
  });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await handle.close();
    isOpen = false;
  };
  return {
    path,
    handle,
    async appendFile(bytes) {
      await handle.appendFile(bytes).catch((error: unknown) => {
        throw notWritten(path, error);
      });
    },
    async finish() {
      const { size } = await handle.stat();
      // On file systems that delay writes, such as NFS, a full disk is reported here.
      await handle
        .sync()
        .then(close)
        .catch((error: unknown) => {
          throw notWritten(path, error);
        });
      await mayBeMade(path, replace);
      return size;
    },
    async commit() {
      await rename(hidden, path).catch((error: unknown) => {
        throw notWritten(path, error);
      });
      await syncFolder(dirname(path));
    },
    async dispose() {
      await close().catch(() => {});
      await rm(hidden, { force: true });
    },
  };
}

async function mayBeMade(path: string, replace: boolean): Promise<void> {
  // Follows links, for example to the terminal behind /dev/stdout.
  const found = await stat(path).catch(() => null);
  if (found === null) return;
  if (!found.isFile()) throw new NotWritten(path, 'it is no regular file: use another name');
  if (!replace) throw new NotWritten(path, 'it exists: use another name, or --replace');
}

/** Errors of folders that may not be read, or that the file system does not sync on request. The file exists anyway. */
const UNSYNCED = new Set(['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP']);

/** Syncs a folder, because a name is on the disk only when its folder is. */
async function syncFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!UNSYNCED.has(errorCode(error) ?? '')) throw error;
  }
}
