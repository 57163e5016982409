/** Long enough for a machine with much else to do; nothing waits for it unless it fails. */
export const PATIENCE_MS = 60_000;
/**
 * Time between two checks at first; what takes long is checked ever more rarely, as hundreds of waiting tests are a
 * load of their own.
 */
const EVERY_MS = 20;
const SELDOM_MS = 100;
const SLOWER = 1.1;

export interface Waiting {
  /** What is waited for, where the check alone does not tell. */
  readonly what?: string;
  readonly within?: number;
  /** Time between any two checks: for those that cost much, or do something. */
  readonly every?: number;
}

/** Thrown by a check that cannot come true any more: nobody waits further. */
export class Hopeless extends Error {}

/** The one way to wait: repeats `check` until it neither throws nor says `false`, and resolves with what it gave. */
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

/** For what is random, or to be long on purpose; what is waited for has a condition. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
