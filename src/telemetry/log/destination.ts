import { writeSync } from 'node:fs';
import { errorCode } from '../../lib/errors.ts';

/** Lines that could not be written, and the code of the last error. */
interface Loss {
  readonly lines: number;
  readonly code: string;
}

/** Where lines go. `write` never throws, because a log that cannot be written must not end the program. */
export interface Destination {
  readonly write: (line: string) => void;
  /** `tell` is called after the first line that is written after others were lost. */
  readonly onLoss: (tell: (loss: Loss) => void) => void;
}

/** How bytes are written, and how time passes while nothing else runs. */
export interface Writing {
  /** Returns how many bytes were taken; throws like `fs.writeSync`. */
  readonly write: (fd: number, bytes: Uint8Array) => number;
  readonly pause: (ms: number) => void;
}

/** Longest wait for the reader of a pipe, once until it reads again. Nothing else in the process runs meanwhile. */
const READER_WITHIN_MS = 200;
const READER_POLL_MS = 10;

const SYSTEM: Writing = {
  write: writeSync,
  pause: (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
};

/** Writes lines to a file descriptor, synchronously, so that the last line before a crash is not lost. */
export function openDestination(fd: number, { write, pause }: Writing = SYSTEM): Destination {
  let rest: Uint8Array = new Uint8Array(0);
  let lost = 0;
  let lastCode = '';
  let tellLoss: (loss: Loss) => void = () => {};

  /** Returns the code of the error that stopped it, or null if everything is written. What is left stays in `rest`. */
  function writeRest(): string | null {
    let patienceMs = lost === 0 ? READER_WITHIN_MS : 0;
    while (rest.length > 0) {
      try {
        rest = rest.subarray(write(fd, rest));
      } catch (error) {
        const code = errorCode(error) ?? 'unknown';
        if (code !== 'EAGAIN' || patienceMs <= 0) return code;
        pause(READER_POLL_MS);
        patienceMs -= READER_POLL_MS;
      }
    }
    return null;
  }

  /** Returns whether the line is written, or begun. The rest of a begun line is written before the next one. */
  function writeLine(line: string): boolean {
    let failure = writeRest();
    if (failure === null) {
      const bytes = Buffer.from(line);
      rest = bytes;
      failure = writeRest();
      if (failure === null || rest.length < bytes.length) return true;
      rest = new Uint8Array(0);
    }
    lastCode = failure;
    return false;
  }

  return {
    onLoss(tell) {
      tellLoss = tell;
    },
    write(line) {
      if (!writeLine(line)) {
        lost += 1;
        return;
      }
      // The rest of a begun line has yet to be written.
      if (lost === 0 || rest.length > 0) return;
      const before = lost;
      lost = 0;
      tellLoss({ lines: before, code: lastCode });
      // If that report was lost itself, it is repeated later.
      if (lost > 0) lost = before;
    },
  };
}
