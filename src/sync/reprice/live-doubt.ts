import { doubling } from '../../lib/duration.ts';
import { OUTAGE_KINDS, type PartnerErrorKind } from '../../partner/errors.ts';
import type { ClaimedSku } from '../../store/ledger/due.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { SyncSettings } from '../settings.ts';
import type { FailedKind } from './call-size.ts';

/*
 * Whether calls fail as a whole for the live SKUs in them: a live source that hangs takes a gateway's time for the
 * whole call, and the answers of the snapshot-priced SKUs with it. A single SKU, the size of the call, or an outage of
 * everything look the same. So after two calls with live SKUs, one after the other, calls have none until one of these
 * is answered; then two live SKUs are tried, each in a call of its own, other calls being answered meanwhile. The first
 * live SKU that is answered ends the doubt. Pure; times in milliseconds of the monotonic clock.
 */

/** Failed calls after which the next ones have no live SKU. One may be for any of its SKUs. */
export const DOUBTED = 2;
/**
 * The same for an hour after a live SKU was answered all the same: where it is for the number of live SKUs, or for
 * some of them, halving finds that, and more than so many do not fail one after the other.
 */
const DOUBTED_AGAIN = 5;
const AGAIN_MS = 3_600_000;
/** Live SKUs that fail alone make it an outage: one may be the reason itself. */
const TRIED = 2;

export interface LiveDoubt {
  /** Calls with live SKUs that failed one after the other; from DOUBTED on those of a live SKU alone. */
  readonly failed: number;
  /** When the last of these ended: calls that were under way together are one. */
  readonly endedAt: number;
  /** When the last call with live SKUs that failed was sent. */
  readonly sentAt: number;
  /** When the last answered call without live SKUs was sent, none having failed since. */
  readonly othersAt: number;
  /** From how many of them on it is doubted whether the live source works. */
  readonly doubtedFrom: number;
  /** When a live SKU was answered in such a doubt. */
  readonly disprovedAt: number;
  /** The live SKU that was the last to be tried alone. */
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

/** What calls are to carry: none of the live SKUs until such a call is answered, or one of them alone. */
export type DoubtStep = 'others' | 'try';

/** How a call ended that was answered, or failed as in an outage. */
export interface EndedCall {
  readonly asked: readonly Pick<ClaimedSku, 'sku' | 'live'>[];
  readonly answered: boolean;
  readonly sentAt: number;
  readonly endedAt: number;
}

/** Whether a failure of this kind may be for what a call takes. */
export function mayBeOfLive(kind: PartnerErrorKind): boolean {
  return kind !== 'no-skus-read' && OUTAGE_KINDS.includes(kind);
}

/**
 * Whether a live SKU whose own call failed in this way may have failed for the live source: since it failed before, as
 * its wait tells, no live SKU was computed. All daemons know that, while the doubt is each one's own.
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

/** The doubt after a call has ended. */
export function afterEnded(before: LiveDoubt, { asked, answered, sentAt, endedAt }: EndedCall): LiveDoubt {
  if (!asked.some(({ live }) => live)) {
    // Which calls fail for themselves is not to be told now: another one has to be answered.
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

/** A call without live SKUs was answered that was sent after the last one with live SKUs that failed. */
const othersWork = ({ othersAt, sentAt }: LiveDoubt): boolean => othersAt > sentAt;

/** What the next calls are to carry; null: anything. */
export function doubtStep(doubt: LiveDoubt): DoubtStep | null {
  if (!isDoubted(doubt)) return null;
  return othersWork(doubt) ? 'try' : 'others';
}

/** Whether the live source is what fails. */
export function isLiveAway(doubt: LiveDoubt): boolean {
  return doubt.failed >= doubt.doubtedFrom + TRIED && othersWork(doubt);
}
