import type { readPace } from './ledger.ts';
import { type PauseStatus, pauseStatus } from './pause.ts';
import { ceilingAt, initialPace, ownMost, type PaceLimits } from './policy.ts';
import { explainRefusal, type Refusal, refusalOf } from './refusal.ts';

/** The pace as people and programs are shown it. Requests of one rolling window. */
export interface PaceStatus {
  readonly ceilingPerMinute: number;
  readonly backingOffUntil: Date | null;
  readonly usedInWindow: number;
  /** Requests of the account's other users in it, and the most that the mirror may send beside them. */
  readonly othersInWindow: number;
  readonly mostInWindow: number;
  readonly limitInWindow: number;
  /** The current refusals, as a sentence and in parts; null while requests succeed. */
  readonly refusal: string | null;
  readonly refused: Refusal | null;
  /** The pause that somebody asked for; null while requests may go. */
  readonly paused: PauseStatus | null;
}

/** Turns the stored pace into what is shown of it; the arithmetic is the policy's. */
export type PaceReader = (view: Awaited<ReturnType<typeof readPace>>) => PaceStatus;

/** How the pace row reads to people: present ceiling, back-off, and what may be said of a refusal. */
export function paceReader(limits: PaceLimits): PaceReader {
  return ({ state, sends, others, now, pause }) => {
    const pace = state ?? initialPace(limits, now);
    return {
      ceilingPerMinute: (ceilingAt(limits, pace, now) * 60_000) / limits.windowMs,
      backingOffUntil: pace.backoffUntil === null ? null : new Date(pace.backoffUntil),
      usedInWindow: sends.length,
      othersInWindow: others,
      mostInWindow: ownMost(limits, others),
      limitInWindow: limits.account?.limit ?? limits.maxPerWindow,
      refusal: explainRefusal(limits, pace),
      refused: refusalOf(limits, pace),
      paused: pauseStatus(pause, now),
    };
  };
}
