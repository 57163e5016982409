import { failpoint } from '../lib/failpoint.ts';
import type { Clock } from '../lib/clock.ts';
import {
  decide,
  guardMs,
  initialPace,
  type PaceDecision,
  type PaceLimits,
  type PaceWait,
  refuses,
  settled,
} from '../partner/pacer.ts';
import type { Permit } from '../partner/permit.ts';
import type { Sql } from '../store/db.ts';
import { unsend, withPace } from '../store/pace.ts';

export interface SentPermit extends Permit {
  /** Nothing was sent after all: the slot goes back. */
  cancel(): Promise<void>;
}

export type Acquired =
  | { readonly kind: 'granted'; readonly permit: SentPermit }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: PaceWait | 'stopping' };

export interface Pacer {
  /**
   * Leave to send one request now. Waits up to `maxWaitMs` for its turn; a longer wait comes back as a value, so that
   * the caller can give its worker free meanwhile. `lane` goes into the log of sends.
   */
  acquire(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired>;
}

export interface PacerEvents {
  /** A refusal silenced the fleet until `silentUntil` (epoch ms). */
  silenced?(event: { outcome: string; silentUntil: number; episodes: number; occupancy: number }): void;
  /** A probe succeeded: requests go again, slower. */
  resumed?(event: { ceiling: number }): void;
}

/** The fleet's pacer over the ledger in Postgres: decisions by partner/pacer.ts, the database's clock, one queue a process. */
export function createPacer(sql: Sql, clock: Clock, limits: PaceLimits, events: PacerEvents = {}): Pacer {
  const spanMs = limits.windowMs + guardMs(limits);

  async function settle(sentAt: number, outcome: string): Promise<void> {
    const { result } = await withPace(sql, spanMs, ({ state, sends, now }) => {
      const before = state ?? initialPace(limits, now);
      const after = settled(limits, before, { sentAt, outcome, sendsInWindow: sends.length }, now);
      return { state: after, result: { before, after, sends: sends.length } };
    });
    const { before, after, sends } = result;
    failpoint('pace.silenced');
    if (after === before) return;
    if (after.silentUntil === null) events.resumed?.({ ceiling: after.ceiling });
    else if (after.episodes > before.episodes) {
      events.silenced?.({
        outcome,
        silentUntil: after.silentUntil,
        episodes: after.episodes,
        occupancy: sends,
      });
    }
  }

  async function tryOnce(
    lane: string,
  ): Promise<{ decision: PaceDecision; now: number; sendId: string | null }> {
    type Tried = { decision: PaceDecision; now: number };
    const { result, sendId } = await withPace<Tried>(sql, spanMs, ({ state, sends, others, now }) => {
      const decision = decide(limits, state ?? initialPace(limits, now), sends, now, others);
      return decision.go
        ? { state: decision.state, send: lane, result: { decision, now } }
        : { result: { decision, now } };
    });
    return { ...result, sendId };
  }

  async function turn(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired> {
    const end = clock.monotonic() + maxWaitMs;
    for (;;) {
      if (signal?.aborted) return { kind: 'wait', forMs: 0, because: 'stopping' };
      const { decision, now, sendId } = await tryOnce(lane);
      if (decision.go) {
        failpoint('pace.logged');
        return {
          kind: 'granted',
          permit: {
            // Most answers say nothing about the pace: only a refusal or the end of a probe is worth a transaction.
            settle: async (outcome) => {
              if (refuses(outcome) || decision.state.probeSentAt === now) await settle(now, outcome);
            },
            cancel: async () => {
              if (sendId !== null) await unsend(sql, sendId);
              // A cancelled probe must not keep the others waiting for its answer.
              if (decision.state.probeSentAt === now) await settle(now, 'aborted');
            },
          },
        };
      }
      const forMs = Math.max(1, decision.at - now);
      if (clock.monotonic() + forMs > end) return { kind: 'wait', forMs, because: decision.because };
      await clock.sleep(forMs, signal);
    }
  }

  // One waits, the others stand behind it: otherwise all would wake for the same slot.
  let last: Promise<unknown> = Promise.resolve();
  return {
    acquire(lane, maxWaitMs, signal) {
      const mine = last.then(() => turn(lane, maxWaitMs, signal));
      last = mine.catch(() => {});
      return mine;
    },
  };
}
