import type { Clock } from '../lib/clock.ts';
import { type PaceLimits, backoffFor, SUSPECT_AFTER } from './policy.ts';

/*
 * Replicas share one back-off, because a 403 may mean the account's rate. But if only one of them has a wrong
 * secret (its file is not rotated yet), the others' half-open requests end the back-off, and its next request
 * begins another. So each process also has a circuit breaker of its own: if it is refused again after others were
 * answered, it stops sending, for longer each time. Once its credential is suspected, its refusals no longer affect
 * the fleet as long as others send (concernsOneOnly of policy.ts).
 */

export interface CircuitBreaker {
  /**
   * Records that a request of this process was refused. `fleet` counts the consecutive refusals of the whole fleet,
   * including this one; 0 if it does not concern the fleet. Returns the consecutive refusals of this process.
   */
  refused(fleet: number): number;
  /** Records that a request of this process was let through, or that its credential has changed. */
  cleared(): void;
  /** Milliseconds for which this process sends nothing; 0 while it sends as the fleet does. */
  openMs(): number;
  /** Evidence against only this process's credential, as a sentence; null if there is none. */
  explain(): string | null;
}

/** Creates the circuit breaker of this process, on the monotonic clock. */
export function createCircuitBreaker(clock: Clock, limits: PaceLimits): CircuitBreaker {
  let times = 0;
  let since = 0;
  let fleetPassed = false;
  let openUntil = -Infinity;
  return {
    refused(fleet) {
      times += 1;
      if (times === 1) since = clock.now();
      // The fleet counts fewer than this process: another process was let through in between.
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
