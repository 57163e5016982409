import { setTimeout as timer } from 'node:timers/promises';

/** Time and sleep, passed in wherever code needs them, so that tests and simulations run on a clock of their own. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds: for comparing with timestamps of others. */
  now(): number;
  /** Milliseconds that only ever grow: for measuring how long something took or how long to wait. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or as soon as `signal` aborts (without throwing: look at the signal). */
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
