import { writeSync } from 'node:fs';
import { errorCode } from '../../lib/errors.ts';

/** Lines that could not be written, and the code of the last one's error. */
interface Loss {
  readonly lines: number;
  readonly code: string;
}

/** Where lines go. `write` never throws: a log that cannot be written must not end what is logged. */
export interface Destination {
  readonly write: (line: string) => void;
  /** `tell` is called behind the first line that is written after others were lost. */
  readonly onLoss: (tell: (loss: Loss) => void) => void;
}

/** How bytes are written, and how a moment passes in which nothing else happens. */
export interface Writing {
  /** Returns how many were taken; throws as `fs.writeSync` does. */
  readonly write: (fd: number, bytes: Uint8Array) => number;
  readonly pause: (ms: number) => void;
}

/** Longest wait for the reader of a pipe, once until it reads again; nothing else of the process runs meanwhile. */
const READER_WITHIN_MS = 200;
const READER_POLL_MS = 10;

const SYSTEM: Writing = {
  write: writeSync,
  pause: (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
};

/** Writes lines to a file descriptor, synchronously so that the last line before a crash is there. */
export function openDestination(fd: number, { write, pause }: Writing = SYSTEM): Destination {
  let rest: Uint8Array = new Uint8Array(0);
  let lost = 0;
  let lastCode = '';
  let tellLoss: (loss: Loss) => void = () => {};

  /** The code of the error that stopped it; null: all is written. What is left stays in `rest`. */
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

  /** Whether the line is written, or begun: what is left of it then goes before the next. */
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
      // The rest of a line that is begun has yet to be written.
      if (lost === 0 || rest.length > 0) return;
      const before = lost;
      lost = 0;
      tellLoss({ lines: before, code: lastCode });
      // Where it was lost itself, it is said again.
      if (lost > 0) lost = before;
    },
  };
}
