import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { errorCode } from '../lib/errors.ts';
import type { Batch } from './batch.ts';
import type { Result, Sink } from './delivery.ts';

/** Lines that are written at once. */
const LIMITS = { changes: 1000, bytes: 256 * 1024 };

/** Writes lines to stdout, whether that is a file or a stream. */
export const outputTo = (stdout: Writable & { readonly fd: number }): Sink =>
  fstatSync(stdout.fd).isFile() ? createFileOutput(fileOf(stdout.fd)) : createOutput(stdout);

/**
 * Writes lines to a stream. A batch counts as delivered when the stream has accepted it; while its reader is slow,
 * that waits, and nothing is read ahead. If the reader closes the stream, it wants no more.
 */
function createOutput(stream: Writable): Sink {
  return {
    limits: LIMITS,
    async deliver({ lines }: Batch, signal) {
      if (stream.destroyed || stream.writableEnded) return CLOSED;
      const { promise, resolve } = Promise.withResolvers<'delivered' | 'unwanted' | 'given-up'>();
      const giveUp = () => resolve('given-up');
      signal.addEventListener('abort', giveUp, { once: true });
      stream.write(`${lines.join('\n')}\n`, (error) =>
        resolve(error === null || error === undefined ? 'delivered' : 'unwanted'),
      );
      const end = await promise;
      signal.removeEventListener('abort', giveUp);
      if (end === 'delivered') return DELIVERED;
      return end === 'unwanted' ? CLOSED : { ...CLOSED, outcome: 'failed', said: 'the reader takes nothing' };
    },
    async close() {},
  };
}

const DELIVERED = { outcome: 'delivered', status: null, said: null, retryAfterMs: null } as const;
const CLOSED = {
  outcome: 'unwanted',
  status: null,
  said: 'the reader has closed the output',
  retryAfterMs: null,
} as const;

/** A file that lines are written to. */
export interface OutputFile {
  /** Writes as many bytes as there is room for, from the beginning; returns how many. Throws if there is no room. */
  write(bytes: Uint8Array): number;
  size(): number;
  truncate(size: number): void;
  /** Returns whether its last line has no newline, as far as that can be read. */
  isCutOff(): boolean;
}

const fileOf = (fd: number): OutputFile => ({
  write: (bytes) => writeSync(fd, bytes),
  size: () => fstatSync(fd).size,
  truncate: (size) => ftruncateSync(fd, size),
  isCutOff: () => isCutOff(fd),
});

function isCutOff(fd: number): boolean {
  const { size } = fstatSync(fd);
  if (size === 0) return false;
  try {
    // Opened again, because a shell opens a file for appending write-only.
    const reading = openSync(`/proc/self/fd/${fd}`, 'r');
    try {
      const last = Buffer.alloc(1);
      return readSync(reading, last, 0, 1, size - 1) === 1 && last.toString() !== '\n';
    } finally {
      closeSync(reading);
    }
  } catch {
    return false;
  }
}

/**
 * Writes lines to a file. A batch counts as delivered when all of its bytes are written; a stream of Node.js does
 * not report what a disk had no room for. A partly written batch is continued when it comes again, and removed at
 * the end.
 */
export function createFileOutput(file: OutputFile): Sink {
  let isBegun = false;
  let part: { readonly text: string; readonly bytes: Buffer; readonly from: number; taken: number } | null =
    null;
  return {
    limits: LIMITS,
    async deliver({ lines }: Batch): Promise<Result> {
      const text = `${lines.join('\n')}\n`;
      try {
        // After a lost session the batch may be cut differently; then the part that was written becomes a line of
        // its own, as does what a killed process has left.
        if (part?.text !== text) {
          const isWithin = part === null ? !isBegun && file.isCutOff() : endsWithin(part);
          part = { text, bytes: Buffer.from(isWithin ? `\n${text}` : text), from: file.size(), taken: 0 };
        }
        const { bytes } = part;
        while (part.taken < bytes.length) {
          const taken = file.write(bytes.subarray(part.taken));
          if (taken === 0) return { ...CLOSED, outcome: 'failed', said: 'the file takes nothing' };
          part.taken += taken;
        }
      } catch (error) {
        return { ...CLOSED, outcome: 'failed', said: failureOf(error) };
      }
      part = null;
      isBegun = true;
      return DELIVERED;
    },
    async close() {
      if (part === null || part.taken === 0) return;
      // Whoever continues writes the batch from its beginning.
      if (file.size() === part.from + part.taken) file.truncate(part.from);
    },
  };
}

const NEWLINE = 10;

/** Returns whether the file ends within a line after `taken` bytes of a batch; for 0 bytes, whether it did before. */
const endsWithin = ({ bytes, taken }: { readonly bytes: Buffer; readonly taken: number }): boolean =>
  taken === 0 ? bytes[0] === NEWLINE : bytes[taken - 1] !== NEWLINE;

/** Returns the error's code, such as ENOSPC. */
const failureOf = (error: unknown): string => errorCode(error) ?? 'it cannot be written';
