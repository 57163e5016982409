import type { Clock } from '../../lib/clock.ts';
import { type PaceView, readPace } from '../../pace/ledger.ts';
import { createPacer } from '../../pace/pacer.ts';
import type { Acquired } from '../../pace/permit.ts';
import { decide, initialPace, type PaceLimits, type PaceState, settled } from '../../pace/policy.ts';
import { explainRefusal, refusalOf, type Suspicion } from '../../pace/view.ts';
import type { Permit } from '../../partner/client.ts';
import type { RequestOutcome } from '../../partner/errors.ts';
import type { Sql } from '../../store/connection/db.ts';

/** A refusal recorded in the request ledger, and its back-off. */
export interface Refused {
  readonly suspected: Suspicion;
  readonly explained: string;
  /** Milliseconds until requests resume; 0: the back-off is over, and the next request is half-open. */
  readonly backoffLeftMs: number;
}

type PermitOrWait =
  | { readonly kind: 'granted'; readonly permit: Permit }
  | Extract<Acquired, { kind: 'wait' }>;

export interface PermitSource {
  take(): Promise<PermitOrWait>;
  refused(): Promise<Refused | null>;
}

const PATIENCE_MS = 20_000;

/** Gives permits by the ledger in Postgres, which the daemons share. */
export function ledgerPermits(sql: Sql, clock: Clock, limits: PaceLimits): PermitSource {
  const pacer = createPacer(sql, clock, limits);
  return {
    take: () => pacer.acquire('doctor', PATIENCE_MS),
    refused: async () => refusedBy(limits, await readPace(sql, limits.windowMs)),
  };
}

/** Returns the refusal in the ledger; null while requests are let through. Pure. */
function refusedBy(limits: PaceLimits, { state, now }: Pick<PaceView, 'state' | 'now'>): Refused | null {
  const refusal = state === null ? null : refusalOf(limits, state);
  if (state === null || refusal === null) return null;
  return {
    suspected: refusal.suspected,
    explained: explainRefusal(limits, state) ?? '',
    backoffLeftMs: Math.max(0, (state.backoffUntil ?? 0) - now),
  };
}

/**
 * Gives permits by the same rules, with a ledger of this process only. For a database that has none yet, so that no
 * request can have been logged.
 */
export function localPermits(clock: Clock, limits: PaceLimits): PermitSource {
  let state: PaceState = initialPace(limits, clock.now());
  const sends: number[] = [];
  async function take(): Promise<PermitOrWait> {
    for (;;) {
      const now = clock.now();
      const decision = decide(limits, state, sends, now);
      if (decision.go) {
        state = decision.state;
        sends.push(now);
        const settle = (outcome: RequestOutcome) => {
          state = settled(limits, state, { sentAt: now, outcome, sendsInWindow: sends.length }, clock.now());
          return Promise.resolve();
        };
        return { kind: 'granted', permit: { settle } };
      }
      const forMs = Math.max(1, decision.at - now);
      if (forMs > PATIENCE_MS) return { kind: 'wait', forMs, because: decision.because };
      await clock.sleep(forMs);
    }
  }
  return { take, refused: () => Promise.resolve(refusedBy(limits, { state, now: clock.now() })) };
}
