import type { Sql } from 'postgres';
import { systemClock } from '../lib/clock.ts';
import { isPassing } from './errors.ts';
import { listenForNews } from './source.ts';

/* Turns of following: each reads what is new, and one after the other is tried until it works. */

/** How to follow. */
export interface Pace {
  /** Changes in a batch, at most, 1 to 100,000; 1000 by default. A batch of a first copy has about as many. */
  readonly batch?: number;
  /** Ends following without an error. A batch that is being applied is finished. */
  readonly signal?: AbortSignal;
  /**
   * Longest time between two readings, in milliseconds; 60,000 by default. A notification is what usually brings the
   * next one; where none comes, five seconds do.
   */
  readonly pollMs?: number;
  /**
   * Told of each failure that passes (the server restarts, the network fails) and how long it waits before the next
   * try.
   */
  readonly onRetry?: (error: unknown, inMs: number) => void;
}

/** What `apply` threw for a reason of its own, which only looks as if it might pass: its transaction was well. */
export class OwnFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

export const isOver = (signal: AbortSignal | undefined): boolean => signal?.aborted === true;

/** What `waited` brings; null: aborted before, and nothing is under way that has to be finished. */
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

/** A turn that applies a batch. Until it does, the end waits for nothing of it: no lock, no server that is silent. */
export class Turn {
  readonly #signal: AbortSignal | undefined;
  #isApplying = false;
  #cancel = () => {};

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** `cancel` ends the statement that is under way. Throws where the end has come. */
  begins(cancel: () => void): void {
    this.#cancel = cancel;
    this.#unlessGivenUp();
  }

  /** From here on it is finished, whatever comes. Throws where the end has come. */
  applies(): void {
    this.#unlessGivenUp();
    this.#isApplying = true;
  }

  /** What `work` brings; null: the end came before it had begun to apply anything. */
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

/**
 * One turn after the other: failures that pass are tried again, with growing waits in between, once a turn has
 * succeeded.
 */
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
    /** What `turn` returns; null: aborted before it worked. */
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
    /** `hasFound`: as for News. */
    wait: (hasFound: boolean) => unlessOver(news.wait(hasFound), signal),
    close: () => news.close(),
  };
}
