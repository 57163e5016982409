import type { Writable } from 'node:stream';

/** What prints lines, and knows when they are taken. */
export interface Printer {
  readonly print: (line: string) => void;
  /**
   * Resolves once all that was printed is taken: a pipe takes no more than 64 kB before its reader reads, and the rest
   * is in memory.
   */
  readonly printed: () => Promise<void>;
}

/** Prints on a stream. What becomes of one that fails is its listeners' matter. */
export function createPrinter(stream: Pick<Writable, 'write'>): Printer {
  let last = Promise.resolve();
  return {
    print(line) {
      const { promise, resolve } = Promise.withResolvers<void>();
      stream.write(`${line}\n`, () => resolve());
      last = promise;
    },
    printed: () => last,
  };
}
