import type { Clock } from '../../lib/clock.ts';
import { MINUTE_MS } from '../../lib/duration.ts';

/*
 * Log de-duplication. A lasting error recurs with every retry and in several jobs. It is logged at once when it is new
 * or its fingerprint changes, then after 1, 5 and 15 minutes, then hourly, and once more when it is over. If it returns
 * within half an hour, it is the same one, and is then over only after staying away for five minutes.
 */

const GAPS_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS];
const SAME_WITHIN_MS = 30 * MINUTE_MS;
const SETTLED_MS = 5 * MINUTE_MS;
/** Most fingerprints of one condition that are remembered and logged at once. If each one is new, they mean nothing. */
const MAX_FINGERPRINTS = 100;

/** How often a condition has occurred, and since when. Its line is at its own level if `say`, else at debug. */
interface Again {
  readonly say: boolean;
  readonly times: number;
  /** ISO 8601. */
  readonly since: string;
}

/** How often a condition occurred, and for how long from the first occurrence to its end. */
interface Over {
  readonly say: boolean;
  readonly times: number;
  readonly lastedSeconds: number;
}

export interface LogThrottle {
  /** The condition `key` has occurred. A new `fingerprint` is logged at once. */
  again(key: string, fingerprint: string): Again;
  /**
   * The condition is absent: call this at every success. Returns null if there is nothing to log; `say` is false for an
   * end that may prove to be temporary.
   */
  over(key: string): Over | null;
}

interface Condition {
  readonly firstAt: number;
  readonly since: string;
  readonly fingerprints: Set<string>;
  times: number;
  /** How often the condition recurred after it had ended. */
  relapses: number;
  lastAt: number;
  endedAt: number | null;
  endSaid: boolean;
  saidAt: number;
  gaps: number;
}

/** Decides when a lasting condition is logged again: at once, after 1, 5 and 15 minutes, then hourly. */
export function createLogThrottle(clock: Clock): LogThrottle {
  const present = new Map<string, Condition>();

  function begin(key: string, fingerprint: string, now: number): Again {
    const since = new Date(clock.now()).toISOString();
    present.set(key, {
      firstAt: now,
      since,
      fingerprints: new Set([fingerprint]),
      times: 1,
      relapses: 0,
      lastAt: now,
      endedAt: null,
      endSaid: false,
      saidAt: now,
      gaps: 0,
    });
    return { say: true, times: 1, since };
  }

  return {
    again(key, fingerprint) {
      const now = clock.monotonic();
      const condition = present.get(key);
      if (condition === undefined || (condition.endedAt !== null && now - condition.endedAt > SAME_WITHIN_MS))
        return begin(key, fingerprint, now);
      condition.times += 1;
      condition.lastAt = now;
      if (condition.endedAt !== null) condition.relapses += 1;
      condition.endedAt = null;
      const gap = GAPS_MS[Math.min(condition.gaps, GAPS_MS.length - 1)] ?? 0;
      const late = now - condition.saidAt >= gap;
      const { fingerprints } = condition;
      const isNew = !fingerprints.has(fingerprint) && fingerprints.size < MAX_FINGERPRINTS;
      const say = late || isNew;
      if (isNew) fingerprints.add(fingerprint);
      if (late) condition.gaps += 1;
      if (say) {
        condition.saidAt = now;
        condition.endSaid = false;
      }
      return { say, times: condition.times, since: condition.since };
    },
    over(key) {
      const now = clock.monotonic();
      const condition = present.get(key);
      if (condition === undefined) return null;
      const ending = condition.endedAt === null;
      condition.endedAt ??= now;
      // If its return was not logged, its end is not logged again.
      const say = !condition.endSaid && (condition.relapses === 0 || now - condition.endedAt >= SETTLED_MS);
      if (say) condition.endSaid = true;
      if (!say && !ending) return null;
      const lastedSeconds = Math.round((condition.endedAt - condition.firstAt) / 1000);
      return { say, times: condition.times, lastedSeconds };
    },
  };
}

/** Counts that are too frequent for a line each: summed, logged at once and then once in `everyMs`. */
export interface Sums<C extends Readonly<Record<string, number>>> {
  /** Adds counts. Returns the sums if it is time to log them. */
  add(counts: C): C | null;
  /** Call this regularly. Returns the sums not yet logged, once `everyMs` is over. */
  due(): C | null;
}

/** Adds up counts, and returns the sums at once and then once in `everyMs`. */
export function createSums<C extends Readonly<Record<string, number>>>(
  clock: Pick<Clock, 'monotonic'>,
  everyMs: number,
): Sums<C> {
  let sum: C | null = null;
  let saidAt = -Infinity;
  function due(): C | null {
    if (sum === null || clock.monotonic() - saidAt < everyMs) return null;
    const said = sum;
    sum = null;
    saidAt = clock.monotonic();
    return said;
  }
  return {
    add(counts) {
      const before: Readonly<Record<string, number>> = sum ?? {};
      sum = Object.fromEntries(
        Object.entries(counts).map(([name, n]) => [name, n + (before[name] ?? 0)]),
      ) as C;
      return due();
    },
    due,
  };
}

/** Returns a function that is true on its first call and then once in `everyMs`. */
export function createInterval(clock: Pick<Clock, 'monotonic'>, everyMs: number): () => boolean {
  let lastAt = -Infinity;
  return () => {
    const now = clock.monotonic();
    if (now - lastAt < everyMs) return false;
    lastAt = now;
    return true;
  };
}
