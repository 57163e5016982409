import type { Sql } from 'postgres';
import { systemClock } from '../lib/clock.ts';
import { isPassing } from './errors.ts';
import { listenForNews } from './source.ts';

/* Iterations of following. Each reads what is new and is retried until it works; they run one after the other. */

/** How to follow. */
export interface Pace {
  /** Maximum of changes in a batch, 1 to 100,000; 1000 by default. A batch of a first copy contains about as many. */
  readonly batch?: number;
  /** Ends following without an error. A batch that is being applied is finished. */
  readonly signal?: AbortSignal;
  /**
   * Longest time between two reads, in milliseconds; 60,000 by default. Usually a notification triggers the next
   * read earlier; if none come, it takes at most five seconds.
   */
  readonly pollMs?: number;
  /** Called for each transient failure (the server restarts, the network fails), with the time until the next try. */
  readonly onRetry?: (error: unknown, inMs: number) => void;
}

/** An error of `apply` itself that only looks transient: its transaction still worked. */
export class OwnFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

export const isOver = (signal: AbortSignal | undefined): boolean => signal?.aborted === true;

/** For work that need not be finished: returns the result of `waited`, or null if `signal` aborts first. */
export async function unlessOver<T>(waited: Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  const over = Promise.withResolvers<null>();
  const end = () => over.resolve(null);
  signal?.addEventListener('abort', end, { once: true });
  if (isOver(signal)) end();
  try {
    return await Promise.race([waited, over.promise]);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

class GivenUp extends Error {
  override readonly name = 'GivenUp';
  readonly code = 'GIVEN_UP';
}

/** An iteration that applies a batch. Until it does, following ends without waiting for its locks or its server. */
export class Turn {
  readonly #signal: AbortSignal | undefined;
  #isApplying = false;
  #cancel = () => {};

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** `cancel` cancels the statement under way. Throws if following has ended. */
  begins(cancel: () => void): void {
    this.#cancel = cancel;
    this.#unlessGivenUp();
  }

  /** From here on it is finished, whatever happens. Throws if following has ended. */
  applies(): void {
    this.#unlessGivenUp();
    this.#isApplying = true;
  }

  /** Returns the result of `work`; null if following ended before it began to apply anything. */
  async unlessOver<T>(work: Promise<T>): Promise<T | null> {
    const over = Promise.withResolvers<null>();
    const end = () => {
      if (this.#isApplying) return;
      this.#cancel();
      over.resolve(null);
    };
    this.#signal?.addEventListener('abort', end, { once: true });
    if (isOver(this.#signal)) end();
    try {
      return await Promise.race([work, over.promise]);
    } finally {
      this.#signal?.removeEventListener('abort', end);
    }
  }

  #unlessGivenUp(): void {
    if (isOver(this.#signal)) throw new GivenUp();
  }
}

export const POLL_MS = 60_000;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 10_000;

/** Runs one iteration after the other. Once one has succeeded, transient failures are retried, with growing waits. */
export function takeTurns(
  sql: Sql,
  { pollMs = POLL_MS, signal, onRetry }: Pace,
  sleep: (ms: number, signal?: AbortSignal) => Promise<void> = (ms, ends) => systemClock.sleep(ms, ends),
  random: () => number = Math.random,
) {
  const news = listenForNews(sql, { pollMs, sleep, signal });
  let hasWorked = false;
  let failures = 0;
  return {
    /** Returns the result of `turn`; null if aborted before it succeeded. */
    async next<T>(turn: () => Promise<T>): Promise<T | null> {
      while (!isOver(signal)) {
        try {
          const result = await turn();
          hasWorked = true;
          failures = 0;
          return result;
        } catch (error) {
          if (error instanceof OwnFailure) throw error.error;
          if (!hasWorked || !isPassing(error)) throw error;
          if (isOver(signal)) return null;
          const inMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** failures) * (0.5 + random() / 2);
          failures += 1;
          onRetry?.(error, inMs);
          await sleep(inMs, signal);
        }
      }
      return null;
    },
    /** `hasFound` as in News. */
    wait: (hasFound: boolean) => unlessOver(news.wait(hasFound), signal),
    close: () => news.close(),
  };
}
