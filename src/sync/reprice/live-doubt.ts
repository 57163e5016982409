import { doubling } from '../../lib/duration.ts';
import { OUTAGE_KINDS, type PartnerErrorKind } from '../../partner/errors.ts';
import type { ClaimedSku } from '../../store/ledger/due.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { SyncSettings } from '../settings.ts';
import type { FailedKind } from './call-size.ts';

/*
 * Decides whether calls fail as a whole because of their live SKUs: a live source that hangs can use up a
 * gateway's timeout, and the answers of the call's snapshot-priced SKUs are lost with it. A single SKU, the size
 * of the call, or a general outage look the same. So after two consecutive failed calls with live SKUs, calls have
 * none until one of these is answered; then two live SKUs are tried, each in a call of its own, while other calls
 * are being answered. The first live SKU that is answered ends the doubt. Pure; times in milliseconds of the
 * monotonic clock.
 */

/** Failed calls after which the next ones have no live SKU. A single one may be due to any of its SKUs. */
export const DOUBTED = 2;
/**
 * The same for an hour after a live SKU was answered in such a doubt: if the number of live SKUs or some of them
 * are the cause, halving finds that before this many calls fail in a row.
 */
const DOUBTED_AGAIN = 5;
const AGAIN_MS = 3_600_000;
/** Live SKUs that must fail alone to make it an outage: a single one may be the cause itself. */
const TRIED = 2;

export interface LiveDoubt {
  /** Consecutive failed calls with live SKUs; once in doubt, only those of a live SKU alone. */
  readonly failed: number;
  /** When the last of these ended: calls that were under way together count as one. */
  readonly endedAt: number;
  /** When the last failed call with live SKUs was sent. */
  readonly sentAt: number;
  /** When the last answered call without live SKUs was sent; −Infinity if one has failed since. */
  readonly othersAt: number;
  /** The number of failed calls from which the live source is in doubt. */
  readonly doubtedFrom: number;
  /** When a live SKU was last answered in such a doubt. */
  readonly disprovedAt: number;
  /** The last live SKU that was tried alone. */
  readonly tried: string | null;
}

export const NO_DOUBT: LiveDoubt = {
  failed: 0,
  sentAt: -Infinity,
  endedAt: -Infinity,
  othersAt: -Infinity,
  doubtedFrom: DOUBTED,
  disprovedAt: -Infinity,
  tried: null,
};

/** What calls should carry: no live SKUs until such a call is answered, or one live SKU alone. */
export type DoubtStep = 'others' | 'try';

/** How a call ended that was answered, or failed as in an outage. */
export interface EndedCall {
  readonly asked: readonly Pick<ClaimedSku, 'sku' | 'live'>[];
  readonly answered: boolean;
  readonly sentAt: number;
  readonly endedAt: number;
}

/** Returns whether a failure of this kind may be due to the call's live SKUs. */
export function mayBeOfLive(kind: PartnerErrorKind): boolean {
  return kind !== 'no-skus-read' && OUTAGE_KINDS.includes(kind);
}

/**
 * Returns whether a live SKU whose own call failed in this way may have failed because of the live source: no live
 * SKU was computed during its wait since the failure before. All daemons know that, while each has its own doubt.
 */
export function mayFailForSource(
  { live, failures }: Pick<ClaimedSku, 'live' | 'failures'>,
  kind: FailedKind,
  { computedAt, now }: Pick<LivePlan, 'computedAt' | 'now'>,
  { errorMs, liveMs }: Pick<SyncSettings['intervals'], 'errorMs' | 'liveMs'>,
): boolean {
  if (!live || kind === 'not-stored' || !mayBeOfLive(kind)) return false;
  const waitedMs = doubling(errorMs, failures, Math.max(errorMs, liveMs));
  return computedAt === null || computedAt <= now - waitedMs;
}

export function afterEnded(before: LiveDoubt, { asked, answered, sentAt, endedAt }: EndedCall): LiveDoubt {
  if (!asked.some(({ live }) => live)) {
    // It is unclear which calls fail by themselves now, until another one is answered.
    return { ...before, othersAt: answered ? Math.max(before.othersAt, sentAt) : -Infinity };
  }
  if (answered) {
    const { othersAt } = before;
    const disprovedAt = isDoubted(before) ? endedAt : before.disprovedAt;
    return { ...NO_DOUBT, othersAt, disprovedAt };
  }
  const alone = asked.length === 1 ? (asked[0]?.sku ?? null) : null;
  const isTry = isDoubted(before) && alone !== null && alone !== before.tried && othersWork(before);
  const counts = sentAt >= before.endedAt && (!isDoubted(before) || isTry);
  const from = endedAt - before.disprovedAt < AGAIN_MS ? DOUBTED_AGAIN : DOUBTED;
  return {
    ...before,
    failed: before.failed + Number(counts),
    doubtedFrom: before.failed > 0 ? before.doubtedFrom : from,
    sentAt: Math.max(before.sentAt, sentAt),
    endedAt: counts ? endedAt : before.endedAt,
    tried: isTry ? alone : before.tried,
  };
}

const isDoubted = (doubt: LiveDoubt): boolean => doubt.failed >= doubt.doubtedFrom;

/** Returns whether a call without live SKUs was answered that was sent after the last failed one with live SKUs. */
const othersWork = ({ othersAt, sentAt }: LiveDoubt): boolean => othersAt > sentAt;

/** Returns what the next calls should carry; null: anything. */
export function doubtStep(doubt: LiveDoubt): DoubtStep | null {
  if (!isDoubted(doubt)) return null;
  return othersWork(doubt) ? 'try' : 'others';
}

/** Returns whether the live source is what fails. */
export function isLiveAway(doubt: LiveDoubt): boolean {
  return doubt.failed >= doubt.doubtedFrom + TRIED && othersWork(doubt);
}
