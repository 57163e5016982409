import type { Config } from '../config/config.ts';
import { AUTH_CLASS, NO_ANSWER, type RequestOutcome } from '../partner/errors.ts';

/*
 * Decides when the next request with the api_key may be sent (partner rule 8.rate: a limit of requests in any
 * rolling window, above it only a 403; back off 60 seconds, then resume at a lower rate). Pure: takes the state and
 * the log of sends, and returns a decision or the next state. All times are epoch milliseconds of one clock, the
 * database's.
 *
 * SQL contains the same rules: sendsPerWindow is in `sends_per_window`, guardMs there and in `others_part` and
 * `take_request`, ceilingAt in `present_ceiling`, HEADROOM_PART and RESUME_FLOOR in `promise_capacity`,
 * HALF_OPEN_LOST_MS and SUSPECT_AFTER in `take_request`. test/store/thresholds.pg.test.ts compares them, except for
 * the last two.
 */

export interface PaceLimits {
  /** Maximum of own requests in any rolling window (the account's limit times the mirror's share). */
  readonly maxPerWindow: number;
  readonly windowMs: number;
  readonly backoffMs: number;
  /** The whole account if other users take part (`catalog.take_request`): its limit, and the mirror's minimum. */
  readonly account?: { readonly limit: number; readonly floor: number };
}

export interface PaceState {
  /** Requests per window that were allowed at `raisedAt`; it grows from there. */
  readonly ceiling: number;
  readonly raisedAt: number;
  /** Set by a refusal until a half-open request has succeeded. */
  readonly backoffUntil: number | null;
  readonly halfOpenSentAt: number | null;
  /** Consecutive refusals without a success in between. */
  readonly refusals: number;
  readonly refusal: string | null;
  /** When the first of these refusals came. */
  readonly refusedSince: number | null;
  /** When the last refusal came, even if requests have been let through since. */
  readonly refusedAt: number | null;
  /** Own requests in the window when the refusal came: the evidence for or against having been too fast. */
  readonly occupancy: number | null;
  readonly resumeAt: number | null;
}

/** `paused` means that somebody requested it (pace/pause.ts). */
export type PaceWait = 'spacing' | 'window' | 'silence' | 'probe' | 'paused';
export type PaceDecision =
  | { readonly go: true; readonly state: PaceState }
  | { readonly go: false; readonly at: number; readonly because: PaceWait };

/** A half-open request whose result is never reported (its process died) is given up after this long. */
const HALF_OPEN_LOST_MS = 120_000;
/** Consecutive refusals from which on the back-off grows: by then the credential is likelier than the rate. */
export const SUSPECT_AFTER = 3;
const LONGEST_BACKOFF = 10;
const RESUME_FLOOR = 20;

/**
 * Returns the time added to the window. A request counts at the server when it arrives, not when it was sent, and
 * two requests may take different times to arrive.
 */
export function guardMs(limits: PaceLimits): number {
  return Math.min(500, limits.windowMs / 20);
}

/**
 * Longest time between a request's decision, when it is logged, and its sending, while it claims its SKUs. If it
 * takes longer, it is decided again. If earlier requests arrive late, a window of a minute at the server contains
 * more of the later ones. Up to this delay, the guard and the one call that sendsPerWindow leaves out compensate
 * for that.
 */
export const LAPSES_AFTER_MS = 1000;

/** Returns the most sends allowed in window + guard. A share of 120 a minute gives 118. */
export function sendsPerWindow(limits: PaceLimits): number {
  const { maxPerWindow, windowMs } = limits;
  return Math.max(1, Math.floor((maxPerWindow * windowMs) / (windowMs + guardMs(limits))) - 1);
}

/** Returns the same per minute: calls at the mirror's full pace. */
export function sendsPerMinute(limits: PaceLimits): number {
  return (sendsPerWindow(limits) * 60_000) / limits.windowMs;
}

/** Part of the limit that stays free for later requests of other users, while there are any. */
const HEADROOM_PART = 0.05;

/**
 * Returns the most own sends in window + guard beside `others` requests of the account's other users. The mirror
 * yields to them, down to its floor, and gets its share back when they pause.
 */
export function ownMost(limits: PaceLimits, others: number): number {
  const share = sendsPerWindow(limits);
  if (limits.account === undefined || others === 0) return share;
  const { limit, floor } = limits.account;
  const left = sendsPerWindow({ ...limits, maxPerWindow: limit }) - others - Math.ceil(limit * HEADROOM_PART);
  return Math.min(share, Math.max(1, Math.floor(floor), left));
}

/** Returns the state of an account of which nothing is known yet: half the share, growing. */
export function initialPace(limits: PaceLimits, now: number): PaceState {
  return {
    ceiling: Math.max(1, sendsPerWindow(limits) / 2),
    raisedAt: now,
    backoffUntil: null,
    halfOpenSentAt: null,
    refusals: 0,
    refusal: null,
    refusedSince: null,
    refusedAt: null,
    occupancy: null,
    resumeAt: null,
  };
}

/** Returns the requests per window at `now`: 5 a minute more each minute at a share of 120, else in proportion. */
export function ceilingAt(limits: PaceLimits, state: PaceState, now: number): number {
  const raise = Math.max(5, limits.maxPerWindow / 24);
  const windows = Math.max(0, now - state.raisedAt) / limits.windowMs;
  return Math.min(sendsPerWindow(limits), Math.max(1, state.ceiling) + raise * windows);
}

/**
 * Decides whether one more request may be sent at `now`. `sends` are the times of own requests in the last window +
 * guard, ascending; `others` counts the requests of the account's other users in it. Returns the state to store if
 * it may, or the earliest time worth asking again.
 */
export function decide(
  limits: PaceLimits,
  state: PaceState,
  sends: readonly number[],
  now: number,
  others = 0,
): PaceDecision {
  const span = limits.windowMs + guardMs(limits);
  const recent = sends.filter((at) => at > now - span);
  // Times written by a clock that was ahead are corrected while requests wait for them (store/clock.ts), so no wait
  // is longer than a correct clock would make it.
  const wait = (at: number, because: 'spacing' | 'window' | 'silence') => {
    const longestMs = because === 'silence' ? backoffFor(limits, Infinity) : span;
    return { go: false, at: Math.min(at, now + longestMs), because } as const;
  };
  if (state.backoffUntil !== null) {
    if (now < state.backoffUntil) return wait(state.backoffUntil, 'silence');
    if (state.halfOpenSentAt !== null && now < state.halfOpenSentAt + HALF_OPEN_LOST_MS) {
      return { go: false, at: now + 1000, because: 'probe' };
    }
    // A back-off shorter than the window may end while the window is still full; a half-open request counts in it
    // too.
    const leaves = recent.at(-sendsPerWindow(limits));
    if (leaves !== undefined) return wait(leaves + span, 'window');
    return { go: true, state: { ...state, halfOpenSentAt: now } };
  }
  const ceiling = Math.min(ceilingAt(limits, state, now), ownMost(limits, others));
  const allowed = Math.max(1, Math.floor(ceiling));
  const last = recent.at(-1);
  if (last === undefined) return { go: true, state };
  if (recent.length >= allowed) {
    const leaves = recent[recent.length - allowed] ?? last;
    return wait(leaves + span, 'window');
  }
  const next = last + limits.windowMs / ceiling;
  return next > now ? wait(next, 'spacing') : { go: true, state };
}

/**
 * Returns the state after the request sent at `sentAt` ended with `outcome` at `now`. Only the answer to a
 * half-open request ends a back-off. Refusals of requests that were already under way when it began neither prolong
 * it nor begin another one after it.
 */
export function settled(
  limits: PaceLimits,
  state: PaceState,
  request: { readonly sentAt: number; readonly outcome: RequestOutcome; readonly sendsInWindow: number },
  now: number,
): PaceState {
  if (refuses(request.outcome)) {
    // Outside of a back-off, a refusal dated in the future was dated by a clock that has been set back since: ignore
    // it.
    const isDated = state.refusedAt !== null && (state.backoffUntil !== null || state.refusedAt <= now);
    if (isDated && request.sentAt <= state.refusedAt) return state;
    const refusals = state.refusals + 1;
    const max = sendsPerWindow(limits);
    const resumeAt = Math.min(max, Math.max(Math.min(RESUME_FLOOR, max), request.sendsInWindow / 2));
    return {
      ...state,
      backoffUntil: now + backoffFor(limits, refusals - SUSPECT_AFTER),
      halfOpenSentAt: null,
      refusals,
      refusal: request.outcome,
      refusedSince: refusals === 1 ? now : state.refusedSince,
      refusedAt: now,
      occupancy: refusals === 1 ? request.sendsInWindow : state.occupancy,
      resumeAt: refusals === 1 ? resumeAt : state.resumeAt,
    };
  }
  if (state.backoffUntil === null) return state;
  const isLast = request.sentAt === state.halfOpenSentAt;
  // An answer that says nothing about credential or rate keeps the back-off, but allows another half-open request.
  if (saysNothing(request.outcome))
    return isLast ? { ...state, halfOpenSentAt: null, backoffUntil: now + limits.backoffMs / 6 } : state;
  // A half-open request that took longer than HALF_OPEN_LOST_MS is no longer the last one: any request sent since
  // the refusal counts.
  const isHalfOpen = isLast || (state.refusedAt !== null && request.sentAt > state.refusedAt);
  if (!isHalfOpen) return state;
  return {
    ...initialPace(limits, now),
    ceiling: state.resumeAt ?? RESUME_FLOOR,
    refusedAt: state.refusedAt,
  };
}

/**
 * Returns whether a refusal does not concern the fleet, given that the process that sent the request at `sentAt`
 * has a suspected credential. That is so if nobody backs off and others have sent since the fleet's last refusal:
 * they would be refused as well if the rate were the cause. `own` contains that process's part of `sends`, or more.
 * A request that was under way at that refusal concerns the fleet no more than in `settled`.
 */
export function concernsOneOnly(
  { backoffUntil, refusedAt }: Pick<PaceState, 'backoffUntil' | 'refusedAt'>,
  { sentAt, own }: { readonly sentAt: number; readonly own: readonly number[] },
  sends: readonly number[],
): boolean {
  const since = refusedAt ?? -Infinity;
  const sentSince = (times: readonly number[]) => times.filter((at) => at > since).length;
  return backoffUntil === null && (sentAt <= since || sentSince(sends) > sentSince(own));
}

/** Returns the back-off after repeated doubling, at most ten times the first: the upper bound of every recovery. */
export function backoffFor(limits: PaceLimits, doublings: number): number {
  return limits.backoffMs * Math.min(LONGEST_BACKOFF, 2 ** Math.max(0, doublings));
}

const REFUSALS: ReadonlySet<string> = new Set<RequestOutcome>([...AUTH_CLASS, 'account-not-configured']);

/**
 * Returns whether an outcome makes the fleet back off: the auth class (partner rule 5.6) and an account that is not
 * configured. `outcome` is a RequestOutcome, or another reason why a run failed, which never does.
 */
export function refuses(outcome: string): boolean {
  return REFUSALS.has(outcome);
}

/** Returns whether an outcome shows the request past the authorizer: neither too fast nor wrongly signed. */
export function letsThrough(outcome: RequestOutcome): boolean {
  return !refuses(outcome) && !saysNothing(outcome);
}

function saysNothing(outcome: RequestOutcome): boolean {
  return outcome !== 'ok' && NO_ANSWER.has(outcome);
}

/** Returns the pace that a configuration allows the mirror (partner rule 8.rate: its share of the account's limit). */
export function paceLimits({ rate }: Pick<Config, 'rate'>): Required<PaceLimits> {
  return {
    maxPerWindow: Math.max(1, Math.floor(rate.limit * rate.share)),
    windowMs: rate.windowMs,
    backoffMs: rate.backoffMs,
    account: { limit: rate.limit, floor: rateFloor({ rate }) },
  };
}

/** Returns the requests per window that the mirror keeps while other users send; never more than its share. */
export function rateFloor({ rate }: Pick<Config, 'rate'>): number {
  return Math.max(1, Math.floor(rate.limit * Math.min(rate.floor, rate.share)));
}
