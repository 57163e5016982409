import { doubling } from '../lib/duration.ts';
import type { PutOff } from '../pace/permit.ts';
import { refuses } from '../pace/policy.ts';
import type { PartnerError, PartnerErrorKind } from '../partner/errors.ts';
import type { TaskFailures } from '../store/ledger/tasks.ts';

/** How one run of a task ended. Waiting is planned, and therefore a value; `counts` are for the log line. */
export type TaskOutcome =
  | {
      readonly kind: 'done';
      readonly nextInMs: number;
      readonly counts: Readonly<Record<string, number | string | null>>;
    }
  /** Not tried, or not completed; this is no failure. */
  | { readonly kind: 'postponed'; readonly nextInMs: number; readonly because: string }
  | ({ readonly kind: 'failed'; readonly nextInMs: number } & Failure);

/** Why a run failed. `because` is an error kind or the reason of a refusal. */
export interface Failure {
  readonly because: string;
  readonly hint: string;
  readonly httpStatus?: number | undefined;
  /** The partner's code (partner rules 7.3). */
  readonly code?: string | undefined;
  /** The error in words: no value, no URL, no secret. */
  readonly problem?: string | undefined;
}

/** Returns the failure that a partner error stands for. */
export function failureOf({ kind, hint, status, code, message }: PartnerError): Failure {
  return { because: kind, hint, httpStatus: status, code, problem: message };
}

const RETRY_FIRST_MS = 60_000;
const RETRY_MAX_MS = 3_600_000;
/**
 * After a refusal, the pacer knows when to send again: a run asks it soon, instead of waiting for the back-off
 * twice.
 */
const RETRY_REFUSED_MS = 1000;

const RETRY_LOST_FIRST_MS = 5000;

/**
 * Returns the milliseconds until a retry after a lost connection to Postgres, which is not the work's fault: few
 * at first, doubling to an hour as after other failures.
 */
export function lostRetryInMs(failuresBefore: number): number {
  return doubling(RETRY_LOST_FIRST_MS, 1 + failuresBefore, RETRY_MAX_MS);
}

/**
 * Returns the milliseconds until a failed manifest or delta is retried: a minute, doubling to an hour, at most its
 * schedule.
 */
export function retryInMs(failuresBefore: number, scheduleMs: number): number {
  return Math.min(scheduleMs, doubling(RETRY_FIRST_MS, failuresBefore + 1, RETRY_MAX_MS));
}

/** Returns the outcome of a run that failed for a reason other than a refusal. */
export function failedAfter(before: TaskFailures, scheduleMs: number, failure: Failure): TaskOutcome {
  return { kind: 'failed', nextInMs: retryInMs(otherThanRefused(before), scheduleMs), ...failure };
}

/** Well below the time after which a delta counts as late. */
const RETRY_REJECTED_MAX_MS = 600_000;

/**
 * Returns the milliseconds until the delta is asked again with a token that its route has rejected: a minute,
 * doubling to ten, whatever the schedule; to an hour after an answer that was too large, because that is not
 * cheap. `failuresBefore` counts all rejections but the first.
 */
export function rejectedRetryInMs(kind: PartnerErrorKind, failuresBefore: number): number {
  const mostMs = kind === 'answer-too-large' ? RETRY_MAX_MS : RETRY_REJECTED_MAX_MS;
  return doubling(RETRY_FIRST_MS, failuresBefore + 1, mostMs);
}

/**
 * Returns whether the partner refused the run's request, as it does with requests that come too fast (partner
 * rules 5.6 and 5.7).
 */
export function isRefusal(outcome: TaskOutcome): boolean {
  return outcome.kind === 'failed' && refuses(outcome.because);
}

/**
 * Returns the number of failures that were not refusals. Neither kind lengthens the other's wait: after an outage
 * of the route the first request is often refused as too fast, and after a wrong secret was replaced a download
 * may fail.
 */
export function otherThanRefused({ failures, refusals }: TaskFailures): number {
  return failures - refusals;
}

/** Refused runs since the last success after which a refusal may concern the route and not the account. */
const ROUTE_SUSPECT_AFTER = 2;
/** Well below the time after which a delta counts as late: others may use up the limit, which looks the same. */
const RETRY_REFUSED_ROUTE_MAX_MS = 1_200_000;
/**
 * After a back-off, other requests go first: one that is refused because of its route says nothing about the
 * account.
 */
const OTHERS_FIRST_MS = 5000;

/**
 * Returns whether a request after this many refused runs may be refused because of its route: a gateway dislikes
 * it or drops its Authorization header, or the account does not have the route. The refusal looks like one that
 * all requests get (partner rules 5.6 and 5.7), so only requests to other routes can tell.
 */
function isRouteSuspect({ refusals }: TaskFailures): boolean {
  return refusals >= ROUTE_SUSPECT_AFTER;
}

/**
 * Returns the outcome of a run that got no permit. In a back-off, a run whose route is suspected waits until
 * others have asked.
 */
export function postponedBy(
  { forMs, because }: { readonly forMs: number; readonly because: PutOff },
  before: TaskFailures,
): TaskOutcome {
  const isLater = because === 'silence' && isRouteSuspect(before);
  return { kind: 'postponed', nextInMs: forMs + (isLater ? OTHERS_FIRST_MS : 0), because };
}

/**
 * Returns the milliseconds until the next run after a request that failed. If several runs were refused, and this
 * request was refused after others were let through, its route may be the reason: it waits longer each time,
 * whatever its schedule.
 */
export function retryAfter(
  { error, beganBackoff }: { readonly error: Pick<PartnerError, 'kind'>; readonly beganBackoff: boolean },
  before: TaskFailures,
  scheduleMs: number,
): number {
  if (!refuses(error.kind)) return retryInMs(otherThanRefused(before), scheduleMs);
  if (beganBackoff && isRouteSuspect(before))
    return doubling(RETRY_FIRST_MS, before.refusals, RETRY_REFUSED_ROUTE_MAX_MS);
  return Math.min(scheduleMs, RETRY_REFUSED_MS);
}

/** How long a request inside a run waits for its permit before the run is put off instead. */
export const PATIENCE_MS = 15_000;
