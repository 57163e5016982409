import type { readPace } from './ledger.ts';
import { type PauseStatus, pauseStatus } from './pause.ts';
import {
  ceilingAt,
  initialPace,
  ownMost,
  type PaceLimits,
  guardMs,
  type PaceState,
  SUSPECT_AFTER,
} from './policy.ts';

/** The pace as people and programs see it. Requests are those of one rolling window. */
export interface PaceStatus {
  readonly ceilingPerMinute: number;
  readonly backingOffUntil: Date | null;
  readonly usedInWindow: number;
  /** Requests of the account's other users, and the most that the mirror may send beside them. */
  readonly othersInWindow: number;
  readonly mostInWindow: number;
  readonly limitInWindow: number;
  /** The current refusals, as a sentence and in parts; null while requests succeed. */
  readonly refusal: string | null;
  readonly refused: Refusal | null;
  /** The requested pause; null while requests may go. */
  readonly paused: PauseStatus | null;
}

/** Turns the stored pace into its public form; the arithmetic is the policy's. */
export type PaceReader = (view: Awaited<ReturnType<typeof readPace>>) => PaceStatus;

/** Creates the reader of the pace row: present ceiling, back-off, and what may be said about a refusal. */
export function paceReader(limits: PaceLimits): PaceReader {
  return ({ state, sends, others, now, pause }) => {
    const pace = state ?? initialPace(limits, now);
    const mostInWindow = ownMost(limits, others);
    return {
      ceilingPerMinute: (Math.min(ceilingAt(limits, pace, now), mostInWindow) * 60_000) / limits.windowMs,
      backingOffUntil: pace.backoffUntil === null ? null : new Date(pace.backoffUntil),
      usedInWindow: sends.length,
      othersInWindow: others,
      mostInWindow,
      limitInWindow: limits.account?.limit ?? limits.maxPerWindow,
      refusal: explainRefusal(limits, pace),
      refused: refusalOf(limits, pace),
      paused: pauseStatus(pause, now),
    };
  };
}

/*
 * The likely cause of a refusal. A 403 for too fast and for a wrong secret are byte-identical (partner rule 5.7),
 * so only evidence distinguishes them: how much of the share our own requests filled, and half-open requests
 * refused again after quiet windows. What was answered, how often and since when is known; what it means is
 * suspected at most.
 */

/** The likely cause of a refusal, by the evidence so far. */
export type Suspicion =
  /** Own requests filled at least half of the share when it came. */
  | 'rate'
  /** Own requests were few: other users of the account fill the limit, or the credential is wrong. */
  | 'other-traffic-or-credential'
  /** Refused again and again although the windows contained nothing but half-open requests. */
  | 'credential'
  /** Not a suspicion: the partner says so explicitly. */
  | 'account';

export interface Refusal {
  /** Kind of the last refusal (partner/errors.ts). */
  readonly outcome: string;
  /** Consecutive refusals, with no success in between. */
  readonly times: number;
  readonly since: Date;
  /** Own requests in the window when the first refusal came, and how many are allowed in it. */
  readonly ownRequests: number;
  readonly ownMost: number;
  readonly suspected: Suspicion;
}

/** Returns the refusals that the account is under; null if its last request was let through. */
export function refusalOf(limits: PaceLimits, state: PaceState): Refusal | null {
  if (state.refusal === null) return null;
  const since = state.refusedSince ?? state.refusedAt ?? 0;
  return {
    outcome: state.refusal,
    times: state.refusals,
    since: new Date(since),
    ownRequests: state.occupancy ?? 0,
    ownMost: limits.maxPerWindow,
    suspected: suspicion(limits, state, since),
  };
}

function suspicion(limits: PaceLimits, state: PaceState, since: number): Suspicion {
  if (state.refusal === 'account-not-configured') return 'account';
  // A window after the first refusal, nothing but half-open requests is left in it. Before that, consecutive
  // refusals prove nothing.
  const quiet = (state.refusedAt ?? since) - since >= limits.windowMs + guardMs(limits);
  if (state.refusals >= SUSPECT_AFTER && quiet) return 'credential';
  return (state.occupancy ?? 0) / limits.maxPerWindow < 0.5 ? 'other-traffic-or-credential' : 'rate';
}

const ANSWERED: Readonly<Record<string, string>> = {
  'throttled-or-forbidden': 'a 403',
  unauthorised: 'a 401 (the Authorization header did not arrive)',
  'authorizer-fault': "the authorizer's 500 (an unknown api_key, or an error of its own)",
};

/** Returns the refusals as one line for people: first what is known, then what is suspected. */
export function explainRefusal(limits: PaceLimits, state: PaceState): string | null {
  const refusal = refusalOf(limits, state);
  if (refusal === null) return null;
  if (refusal.suspected === 'account') return 'supplier account not configured';
  const { outcome, times, since, ownRequests, ownMost } = refusal;
  const often = times === 1 ? '' : `, ${times} times in a row`;
  const known = `throttled or refused; ${ANSWERED[outcome] ?? outcome} since ${since.toISOString()}${often}`;
  switch (refusal.suspected) {
    case 'rate':
      return `${known}; own requests were ${ownRequests} of ${ownMost}: the rate limit is suspected`;
    case 'other-traffic-or-credential':
      return `${known}; own requests were few (${ownRequests} of ${ownMost}): other traffic is heavy or the credential is wrong`;
    case 'credential':
      return `${known}, in windows without other own requests: the credential is suspected, or other traffic constantly fills the limit`;
  }
}
