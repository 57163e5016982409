import { setTimeout as timer } from 'node:timers/promises';
import { errorCode } from './errors.ts';

/** Time and sleep, passed in wherever code needs them, so that tests and simulations run on a clock of their own. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds: for comparing with timestamps of others. */
  now(): number;
  /** Milliseconds that only ever grow: for measuring durations and waits. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or as soon as `signal` aborts (without throwing: check the signal). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    if (signal?.aborted || ms <= 0) return;
    try {
      await timer(ms, undefined, { signal });
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  },
};

const LATE = 'ETIMEDOUT';

/**
 * Returns the promise's result, or rejects with code ETIMEDOUT after `timeoutMs` without stopping the work behind the
 * promise. Meant for clients that may wait forever, such as the Redis client while its server is down.
 */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let alarm: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const late = Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: LATE });
    alarm = setTimeout(() => reject(late), timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(alarm);
  }
}

/** Returns whether an error is the timeout of `within`. */
export const isOutOfTime = (error: unknown): boolean => errorCode(error) === LATE;
