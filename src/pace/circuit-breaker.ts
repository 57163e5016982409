import type { Clock } from '../lib/clock.ts';
import { type PaceLimits, backoffFor, SUSPECT_AFTER } from './policy.ts';

/*
 * Replicas share one back-off, because a 403 may mean the account's rate. But if only one of them has a wrong secret
 * (its file is not rotated yet), the others' half-open requests end the back-off, and its next request begins another.
 * So each process also has a circuit breaker of its own: if it is refused again after others were answered, it stops
 * sending, for longer each time. From then on that its credential is suspected, its refusals are no longer the fleet's
 * as long as others send (concernsOneOnly of policy.ts).
 */

export interface CircuitBreaker {
  /**
   * A request of this process was refused; `fleet` = refusals of the whole fleet in a row, this one included, 0 where
   * it is of no concern to the fleet. Returns how many of this process's own it makes in a row.
   */
  refused(fleet: number): number;
  /** A request of this process was let through, or its credential has changed. */
  cleared(): void;
  /** Milliseconds for which this process sends nothing; 0 = as the fleet does. */
  openMs(): number;
  /** Evidence against this process's credential only, as a sentence; null without any. */
  explain(): string | null;
}

/** The circuit breaker of this process, by the monotonic clock. */
export function createCircuitBreaker(clock: Clock, limits: PaceLimits): CircuitBreaker {
  let times = 0;
  let since = 0;
  let fleetPassed = false;
  let openUntil = -Infinity;
  return {
    refused(fleet) {
      times += 1;
      if (times === 1) since = clock.now();
      // Fewer in the fleet's row than in ours: another process was let through in between.
      fleetPassed = fleet < times;
      if (fleetPassed) openUntil = clock.monotonic() + backoffFor(limits, times - 1);
      return times;
    },
    cleared() {
      times = 0;
      fleetPassed = false;
      openUntil = -Infinity;
    },
    openMs: () => Math.max(0, openUntil - clock.monotonic()),
    explain() {
      if (!fleetPassed || times < SUSPECT_AFTER) return null;
      return (
        `requests of this daemon were rejected ${times} times in a row since ${new Date(since).toISOString()} ` +
        'while those of other daemons succeeded: its own credential is suspected, or a block of its address'
      );
    },
  };
}
