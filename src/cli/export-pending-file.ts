import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../lib/errors.ts';

/** The file cannot be written; the cause is the system's. What was there before is as it was. */
export class NotWritten extends Error {
  override readonly name = 'NotWritten';
  readonly kind = 'not-written';
  readonly hint: string;

  constructor(path: string, hint: string, cause?: unknown) {
    super(`${path} was not written`, { cause });
    this.hint = hint;
  }
}

/** NotWritten of a file that was begun: the system takes no more of it, or not under this name. */
export const notWritten = (path: string, cause: unknown): NotWritten =>
  new NotWritten(path, 'make room, or write elsewhere', cause);

/** A file that is under its name once it is whole, and until then beside it under another. */
export interface PendingFile {
  readonly path: string;
  readonly handle: FileHandle;
  /**
   * Has what was written on the disk; rejects with NotWritten where its name was taken meanwhile. Returns the bytes.
   */
  finish(): Promise<number>;
  /** Gives the file its name. */
  commit(): Promise<void>;
  /** Removes what was written, where it was not committed. */
  dispose(): Promise<void>;
}

/**
 * Begins a file. With `replace` it takes the place of one that is there when it is committed.
 *
 * @throws NotWritten where there is one already, or something that is no file, or no file can be made there
 */
export async function createPendingFile(path: string, replace: boolean): Promise<PendingFile> {
  // Processes of several containers have one number, and may write to one volume.
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
    async finish() {
      const { size } = await handle.stat();
      // Where what is written waits for its blocks, as on NFS, a full disk is told here.
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
  // Of a link: what it leads to, such as the terminal behind /dev/stdout.
  const found = await stat(path).catch(() => null);
  if (found === null) return;
  if (!found.isFile()) throw new NotWritten(path, 'it is no regular file: use another name');
  if (!replace) throw new NotWritten(path, 'it exists: use another name, or --replace');
}

/** Of folders that may not be read, or whose file system writes none by request: the file is there all the same. */
const UNSYNCED = new Set(['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP']);

/** A name is on the disk when its folder is. */
async function syncFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!UNSYNCED.has(errorCode(error) ?? '')) throw error;
  }
}
