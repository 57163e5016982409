/** Long enough for a busy machine; only a failure takes this long. */
export const PATIENCE_MS = 60_000;
/** Time between the first two checks; it grows, because hundreds of waiting tests are a load of their own. */
const EVERY_MS = 20;
const SELDOM_MS = 100;
const SLOWER = 1.1;

export interface Waiting {
  /** What is waited for, if the check itself does not show it. */
  readonly what?: string;
  readonly within?: number;
  /** Constant time between checks, for those that are expensive or have effects. */
  readonly every?: number;
}

/** Thrown by a check that can no longer succeed, to stop waiting. */
export class Hopeless extends Error {}

/**
 * The one way to wait: repeats `check` until it neither throws nor returns `false`, and resolves with its result.
 */
export async function eventually<T>(check: () => T | Promise<T>, waiting: Waiting = {}): Promise<T> {
  const { what = String(check), within = PATIENCE_MS, every } = waiting;
  let next = every ?? EVERY_MS;
  const over = performance.now() + within;
  for (;;) {
    let reason: unknown;
    try {
      const result = await check();
      if (result !== false) return result;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      reason = error;
    }
    if (performance.now() > over) {
      const last = reason instanceof Error ? `: ${reason.message}` : '';
      throw new Error(`not within ${within} ms: ${what}${last}`, { cause: reason });
    }
    await pause(next);
    next = every ?? Math.min(SELDOM_MS, next * SLOWER);
  }
}

/** Only for waits that are random, or long on purpose; to wait for something, use a condition. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
