import { doubling } from '../../lib/duration.ts';
import { OUTAGE_KINDS, type PartnerErrorKind } from '../../partner/errors.ts';
import type { FailedCall, CallSize } from '../../store/call/call-lesson.ts';
import { FAILURES_BEFORE_PAUSE } from '../../store/ledger/tasks.ts';
import type { SyncSettings } from '../settings.ts';

/*
 * How many SKUs a bulk call may carry. The partner names a maximum (partner rule 4.1.bulk) but not which calls
 * fail as a whole: because of one SKU in it (400, partner rule 7.1.400), the size of the body (8.open), or the
 * time that it takes (a gateway's 504). Nothing in the answer distinguishes these. So the SKUs of a failed call go
 * into calls of half as many until one of these works; and a size that keeps failing while smaller calls work is
 * not used again soon. Pure; stored in catalog_internal.call_size.
 */

/** A call whose size may have mattered. */
export interface SizedCall {
  readonly skus: number;
  readonly failed: boolean;
  /** Whether its SKUs had been in a failed call before. */
  readonly hadFailed: boolean;
}

/** Full calls that must work before a larger size is tried, which may cost one call. */
const PATIENCE = 40;
/** The same if larger sizes keep failing: some six hours of calls at the usual pace. */
const MAX_PATIENCE = PATIENCE * 2 ** 10;
/** The limit is not narrowed down further than to this part of the failing size. */
const NEAR = 0.1;

export const ANY_SIZE: Omit<CallSize, 'step'> = {
  size: null,
  failing: null,
  suspected: null,
  proven: 0,
  worked: 0,
  patience: PATIENCE,
};

/**
 * Returns the SKUs of the next call, of `most` configured ones; each of the `failures` in a row leaves a quarter
 * of them.
 */
export function skusOfCall({ size }: Pick<CallSize, 'size'>, most: number, failures: number): number {
  return Math.max(1, Math.min(size ?? most, most) >> Math.min(2 * failures, 30));
}

/**
 * Returns the SKUs of a half-open call after `refusals` in a row: all after the first, then a quarter each time,
 * because one SKU, or their number, may be what is refused.
 */
export function skusOfHalfOpen(skus: number, refusals: number): number {
  return Math.max(1, Math.ceil(skus / 4 ** Math.min(15, Math.max(0, refusals - 1))));
}

/**
 * Returns the size after a call; null if it taught nothing. Failed calls count only if they were sent while others
 * worked: in an outage no size works.
 */
export function sizeAfter(before: CallSize, most: number, call: SizedCall): CallSize | null {
  const { skus, failed, hadFailed } = call;
  const after = failed ? afterFailure(before, skus, hadFailed) : afterSuccess(before, most, skus);
  return after === null ? null : { ...after, step: before.step + 1 };
}

function afterFailure(before: CallSize, skus: number, hadFailed: boolean): CallSize | null {
  if (skus <= 1) return null;
  const { size, suspected, failing, proven, patience } = before;
  // One of the SKUs may be the cause: at the first failure, after as many SKUs have worked since, or in part of a
  // failed call.
  if (suspected === null || skus <= proven || (hadFailed && skus !== suspected))
    return { ...before, suspected: skus, proven: Math.min(proven, skus - 1) };
  const least = Math.min(Math.max(skus, suspected), failing ?? Infinity);
  const works = Math.min(proven, least - 1);
  const wasTrial = size !== null && proven > 0 && proven < size;
  return {
    ...before,
    size: Math.max(works, least >> 1),
    failing: least,
    suspected: null,
    proven: works,
    worked: 0,
    patience: wasTrial ? Math.min(MAX_PATIENCE, 2 * patience) : patience,
  };
}

function afterSuccess(before: CallSize, most: number, skus: number): CallSize | null {
  const { size, failing, suspected, proven, worked, patience } = before;
  if (suspected === null && failing === null && size === null) return null;
  const isCleared = suspected !== null && skus >= suspected;
  const after = {
    ...before,
    suspected: isCleared ? null : suspected,
    failing: failing !== null && skus >= failing ? null : failing,
    proven: Math.max(proven, skus),
    worked: size !== null && skus >= size ? worked + 1 : worked,
    patience: isCleared ? PATIENCE : patience,
  };
  if (after.suspected === null && (size === null || skus >= most)) return { ...after, ...ANY_SIZE };
  if (size !== null && after.suspected === null && after.worked >= after.patience)
    return tryLarger(after, most);
  const same = after.suspected === suspected && after.proven === proven && after.worked === worked;
  return same ? null : after;
}

/** Starts a trial: a single failure at its size ends it. */
function tryLarger(before: CallSize, most: number): CallSize {
  const { failing, proven } = before;
  const isNear = failing === null || failing - proven <= Math.max(1, NEAR * failing);
  const size = Math.min(most, isNear ? 2 * Math.max(1, proven) : (proven + failing) >> 1);
  return { ...before, size, failing: isNear ? null : failing, suspected: size, worked: 0 };
}

/** An outage ends as suddenly as it began; a rejection lasts until somebody changes something. */
export const OUTAGE_PAUSE_MAX_MS = 300_000;
const PAUSE_MAX_MS = 1_800_000;

/** What failed: the call at the partner, or storing its answer in Postgres. */
export type FailedKind = PartnerErrorKind | 'not-stored';

/** Returns whether something has to be changed before such calls work, unlike in an outage. */
export function isRejection(kind: FailedKind): boolean {
  return !OUTAGE_KINDS.some((outage) => outage === kind);
}

/**
 * Returns the milliseconds for which calls pause after the `times`-th failure in a row that causes a pause.
 * `others` of these belong to an outage, so they do not count towards the longer pause of rejections.
 */
function pauseAfter(kind: FailedKind, times: number, others: number, errorMs: number): number {
  const after = (failed: number, mostMs: number) =>
    failed < 1 ? 0 : doubling(errorMs, failed, Math.max(errorMs, mostMs));
  const asOutageMs = after(times, OUTAGE_PAUSE_MAX_MS);
  return isRejection(kind) ? Math.max(asOutageMs, after(times - others, PAUSE_MAX_MS)) : asOutageMs;
}

/** A bulk call that failed as a whole, but was not refused. */
export interface Failed {
  readonly kind: FailedKind;
  readonly skus: number;
  /** Failed calls immediately before it. */
  readonly failures: number;
  /** How many of these were rejections. */
  readonly rejections: number;
  /** Whether its SKUs had been in a failed call before. */
  readonly hadFailed: boolean;
}

/**
 * Decides what follows from a failed call. While few calls have failed in a row, its SKUs are suspected: they
 * share calls of half as many, or a SKU that had the call to itself is blamed. The FAILURES_BEFORE_PAUSE-th
 * failure in a row pauses all calls and blames no SKU, because it may be part of an outage; nor do further
 * failures teach anything about SKUs and sizes. A wrong body key pauses at once. After each pause one call is
 * tried. Its SKUs are held for longer than the next pause, so that no try has the SKUs of the one before.
 */
export function afterFailedCall(
  { kind, skus, failures, rejections, hadFailed }: Failed,
  callSize: CallSize,
  { bulk, intervals }: Pick<SyncSettings, 'bulk' | 'intervals'>,
): Pick<FailedCall, 'pauseMs' | 'holdMs' | 'largestCall' | 'callSize'> & { readonly blames: boolean } {
  const isConfiguration = kind === 'no-skus-read';
  const times = failures + 2 - (isConfiguration ? 1 : FAILURES_BEFORE_PAUSE);
  const pauseMs = pauseAfter(kind, times, failures - rejections, intervals.errorMs);
  if (isConfiguration || failures >= FAILURES_BEFORE_PAUSE) {
    const holdMs = isConfiguration ? 0 : pauseMs + intervals.errorMs;
    return { pauseMs, holdMs, largestCall: null, callSize: null, blames: false };
  }
  return {
    pauseMs,
    holdMs: 0,
    largestCall: Math.ceil(skus / 2),
    callSize: failures === 0 ? sizeAfter(callSize, bulk.maxSkus, { skus, failed: true, hadFailed }) : null,
    blames: skus === 1 && failures < FAILURES_BEFORE_PAUSE - 1,
  };
}
