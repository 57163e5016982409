import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

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
      await handle.sync();
      await close();
      await mayBeMade(path, replace);
      return size;
    },
    async commit() {
      await rename(hidden, path);
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

/** A name is on the disk when its folder is. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
