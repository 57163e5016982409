import { failpoint } from '../lib/failpoint.ts';
import type { Clock } from '../lib/clock.ts';
import {
  decide,
  guardMs,
  initialPace,
  letsThrough,
  type PaceDecision,
  type PaceLimits,
  type PaceWait,
  refuses,
  settled,
  spacingMs,
} from './policy.ts';
import { explainRefusal, refusalOf } from './refusal.ts';
import type { Permit } from '../partner/client.ts';
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts';
import type { Sql } from '../store/db.ts';
import { unsend, withPace } from './ledger.ts';

/** Who asks for leave to send. */
export const REQUEST_LANES = ['reprice', 'delta', 'manifest'] as const;
export const WAITS: readonly PaceWait[] = ['spacing', 'window', 'silence', 'probe'];

/** After so long a task that a process with an open circuit breaker gave back may be taken by any. */
const BREAKER_WAIT_MS = 1000;

export interface SentPermit extends Permit {
  /** Nothing was sent after all: the slot goes back. */
  cancel(): Promise<void>;
}

export type Acquired =
  | {
      readonly kind: 'granted';
      readonly permit: SentPermit;
      /** Whether it had to be waited for: what the caller knew when it asked may be out of date. */
      readonly waited: boolean;
    }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: PaceWait | 'stopping' };

export interface Pacer {
  /**
   * Leave to send one request now. Waits up to `maxWaitMs` for its permit; a longer wait comes back as a value, so that
   * the caller can give its worker free meanwhile. `lane` goes into the log of sends.
   */
  acquire(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired>;
}

export interface PacerEvents {
  /** A refusal made the fleet back off until `backoffUntil` (epoch ms). */
  backedOff?(event: {
    outcome: string;
    backoffUntil: number;
    episodes: number;
    occupancy: number;
    /** What it may mean, as in the status: the text changes with every refusal, this does not. */
    suspected: string;
    explained: string | null;
  }): void;
  /** A half-open request succeeded: requests go again, slower. */
  resumed?(event: { ceiling: number }): void;
  /** An `acquire` ended after `ms`: it got a permit (null), or it was put off. */
  waited?(event: { lane: string; ms: number; putOff: PaceWait | null }): void;
  /**
   * Somebody was refused since this process last sent, and it would send now: the time to read a credential file
   * again.
   */
  afterRefusal?(): void;
}

interface Tried {
  readonly decision: PaceDecision;
  /** The database's time, epoch milliseconds. */
  readonly now: number;
  /** Until then (monotonic) a request that is sent now keeps the next one waiting. */
  readonly spacedUntil: number;
}

/** Asks the ledger once; a send that it lets go is logged when this returns. */
async function tryOnce(
  sql: Sql,
  clock: Clock,
  limits: PaceLimits,
  lane: string,
): Promise<Tried & { sendId: string | null }> {
  const spanMs = limits.windowMs + guardMs(limits);
  const { result, sendId } = await withPace<Tried>(sql, spanMs, ({ state, sends, others, now }) => {
    const before = state ?? initialPace(limits, now);
    const decision = decide(limits, before, sends, now, others);
    const spacedUntil = clock.monotonic() + spacingMs(limits, before, now, others);
    const result = { decision, now, spacedUntil };
    return decision.go ? { state: decision.state, send: lane, result } : { result };
  });
  return { ...result, sendId };
}

/** The fleet's pacer over the ledger in Postgres: decisions by pace/policy.ts, the database's clock, one queue a process. */
export function createPacer(
  sql: Sql,
  clock: Clock,
  limits: PaceLimits,
  events: PacerEvents = {},
  breaker: CircuitBreaker = createCircuitBreaker(clock, limits),
): Pacer {
  const spanMs = limits.windowMs + guardMs(limits);
  /** When the ceiling was last set, as far as this process has seen: each end of a back-off sets it. */
  let knownRaise = 0;
  /** Until then this process's last send keeps the next one waiting (monotonic): the ledger need not be asked. */
  let spacedUntil = -Infinity;

  async function settle(sentAt: number, outcome: string): Promise<void> {
    const { result } = await withPace(sql, spanMs, ({ state, sends, now }) => {
      const before = state ?? initialPace(limits, now);
      const after = settled(limits, before, { sentAt, outcome, sendsInWindow: sends.length }, now);
      return { state: after, result: { before, after, sends: sends.length } };
    });
    const { before, after, sends } = result;
    failpoint('pace.silenced');
    if (after === before) return;
    if (after.episodes > before.episodes) breaker.refused(after.episodes);
    if (after.backoffUntil === null) events.resumed?.({ ceiling: after.ceiling });
    else if (after.episodes > before.episodes) {
      events.backedOff?.({
        outcome,
        backoffUntil: after.backoffUntil,
        episodes: after.episodes,
        occupancy: sends,
        suspected:
          breaker.explain() === null ? (refusalOf(limits, after)?.suspected ?? 'nothing') : 'own-credential',
        explained: breaker.explain() ?? explainRefusal(limits, after),
      });
    }
  }

  function permitOf({ decision, now }: Tried, sendId: string | null): SentPermit {
    const probing = decision.go && decision.state.halfOpenSentAt === now;
    return {
      // Most answers say nothing about the pace: only a refusal or the end of a half-open request is worth a transaction.
      settle: async (outcome) => {
        if (letsThrough(outcome)) breaker.cleared();
        if (refuses(outcome) || probing) await settle(now, outcome);
      },
      cancel: async () => {
        spacedUntil = -Infinity;
        if (sendId !== null) await unsend(sql, sendId);
        // A cancelled half-open request must not keep the others waiting for its answer.
        if (probing) await settle(now, 'aborted');
      },
    };
  }

  async function acquireNext(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired> {
    const end = clock.monotonic() + maxWaitMs;
    for (let waited = false; ; waited = true) {
      if (signal?.aborted) return { kind: 'wait', forMs: 0, because: 'stopping' };
      if (breaker.openMs() > 0) events.afterRefusal?.();
      // A short wait, whatever is left: a shared task that this process cannot run is for another one.
      if (breaker.openMs() > 0) return { kind: 'wait', forMs: BREAKER_WAIT_MS, because: 'silence' };
      const spaced = spacedUntil - clock.monotonic();
      if (spaced > 0 && clock.monotonic() + spaced <= end) {
        await clock.sleep(spaced, signal);
        continue;
      }
      const { sendId, ...tried } = await tryOnce(sql, clock, limits, lane);
      const { decision, now } = tried;
      if (decision.go) {
        failpoint('pace.logged');
        const { backoffUntil, raisedAt } = decision.state;
        if (backoffUntil !== null || raisedAt !== knownRaise) events.afterRefusal?.();
        knownRaise = raisedAt;
        // What follows a half-open request is not a matter of spacing.
        spacedUntil = backoffUntil === null ? tried.spacedUntil : -Infinity;
        return { kind: 'granted', permit: permitOf(tried, sendId), waited };
      }
      const forMs = Math.max(1, decision.at - now);
      if (clock.monotonic() + forMs > end) return { kind: 'wait', forMs, because: decision.because };
      await clock.sleep(forMs, signal);
    }
  }

  return { acquire: oneByOne(acquireNext, clock, events) };
}

/** One waits, the others stand behind it: otherwise all would wake for the same slot. Tells how long each waited. */
function oneByOne(acquireNext: Pacer['acquire'], clock: Clock, events: PacerEvents): Pacer['acquire'] {
  let last: Promise<unknown> = Promise.resolve();
  let asking = 0;
  return async (lane, ...patience) => {
    const askedAt = clock.monotonic();
    const behind = asking > 0;
    asking += 1;
    const mine = last.then(() => acquireNext(lane, ...patience)).finally(() => (asking -= 1));
    last = mine.catch(() => {});
    const acquired = await mine;
    const putOff = acquired.kind === 'wait' ? acquired.because : null;
    const ms = clock.monotonic() - askedAt;
    if (putOff !== 'stopping') events.waited?.({ lane, ms, putOff });
    if (acquired.kind === 'wait') return acquired;
    const permit = { ...acquired.permit, waitedMs: ms };
    return { ...acquired, permit, waited: acquired.waited || behind };
  };
}
