import { doubling } from '../../lib/duration.ts';
import { refuses } from '../../pace/policy.ts';
import type { BulkAnswer, LowestRecord } from '../../partner/answers.ts';
import type { ErrorCause, SkuResult } from '../../store/answer/types.ts';
import { CEILING_MET, type ClaimedSku } from '../../store/ledger/due.ts';
import type { SyncSettings } from '../settings.ts';
import { type FailedKind, OUTAGE_PAUSE_MAX_MS } from './call-size.ts';

/**
 * What a bulk answer says about one asked SKU. `because` of an error: the partner reported it, the answer does not
 * add up, or a call with only this SKU failed as a whole, as `failure` says (`alone-in-doubt`: other calls were
 * failing, too).
 */
export type SkuAnswer =
  | { readonly kind: 'record'; readonly record: LowestRecord }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'deferred' }
  | {
      readonly kind: 'error';
      readonly because: 'reported' | 'omitted' | 'contradictory' | 'unreadable';
    }
  | { readonly kind: 'error'; readonly because: 'alone' | 'alone-in-doubt'; readonly failure: FailedKind };

export interface Reconciliation {
  /** One answer for each asked SKU. */
  readonly skuAnswers: ReadonlyMap<string, SkuAnswer>;
  /** SKUs in the answer that were not asked; they change nothing. */
  readonly unexpected: number;
  /**
   * The number of SKUs that the partner says it read, if it answers as many and fewer than were asked; else null.
   */
  readonly read: number | null;
  /**
   * Whether the call was too large for the partner: it read only the first SKUs, hardly by chance, or never reads
   * more.
   */
  readonly cut: boolean;
}

const OMITTED: SkuAnswer = { kind: 'error', because: 'omitted' };
const UNREADABLE: SkuAnswer = { kind: 'error', because: 'unreadable' };

/** Returns the answer for a SKU; `omitted` if the answer leaves it out, or it was not asked for. Pure. */
export const answerFor = (
  { sku }: Pick<ClaimedSku, 'sku'>,
  answers: Reconciliation['skuAnswers'],
): SkuAnswer => answers.get(sku) ?? OMITTED;

/** Counts the SKUs of `asked` that were answered in one of these ways. Pure. */
export const countAnswered = (
  asked: readonly ClaimedSku[],
  answers: Reconciliation['skuAnswers'],
  ...kinds: readonly SkuAnswer['kind'][]
): number => asked.filter((each) => kinds.includes(answerFor(each, answers).kind)).length;

/** Unread SKUs count as cut off if the probability that they are the last ones by chance is at most this. */
const LAST_BY_CHANCE = 0.2;

/**
 * Reconciles a bulk answer with what was asked (partner rules 2.5: the four arrays exclude each other and add up
 * to the input). A SKU that the answer leaves out, or names with two kinds of result, is an error of its own and
 * stays due. A placeholder in `results` counts only if no list names its SKU. `setBack`: SKUs that have failed
 * while others were answered; if the partner passes over only these, that says nothing about the call.
 */
export function reconcile(
  asked: readonly string[],
  answer: BulkAnswer,
  setBack: ReadonlySet<string> = new Set(),
): Reconciliation {
  const skuAnswers = new Map<string, SkuAnswer>(asked.map((sku) => [sku, OMITTED]));
  const unexpected = new Set<string>();
  const rule = (sku: string, skuAnswer: SkuAnswer) => {
    const present = skuAnswers.get(sku);
    if (present === undefined) {
      unexpected.add(sku);
    } else if (present.kind === 'error' && present.because === 'omitted') {
      skuAnswers.set(sku, skuAnswer);
    } else if (present.kind !== skuAnswer.kind) {
      skuAnswers.set(sku, { kind: 'error', because: 'contradictory' });
    }
  };
  const placeholders: string[] = [];
  for (const [sku, result] of answer.results) {
    if ('sizes' in result) rule(sku, { kind: 'record', record: result });
    else if (result.isPlaceholder === true) placeholders.push(sku);
    else rule(sku, UNREADABLE);
  }
  for (const sku of answer.notFound) rule(sku, { kind: 'not_found' });
  for (const sku of answer.deferred) rule(sku, { kind: 'deferred' });
  for (const sku of answer.errors) rule(sku, { kind: 'error', because: 'reported' });
  for (const sku of placeholders) if (isOmitted(skuAnswers.get(sku) ?? OMITTED)) rule(sku, UNREADABLE);
  const order = [...skuAnswers.keys()];
  const omitted = order.filter((sku) => isOmitted(skuAnswers.get(sku)));
  const read = order.length - omitted.length;
  const isShort = omitted.length > 0 && read > 0 && answer.requested === read;
  const cut =
    isShort &&
    order.slice(read).every((sku) => isOmitted(skuAnswers.get(sku))) &&
    chanceToBeLast(order.length, omitted.length) <= LAST_BY_CHANCE &&
    !omitted.every((sku) => setBack.has(sku));
  return { skuAnswers, unexpected: unexpected.size, read: isShort ? read : null, cut };
}

const isOmitted = (said: SkuAnswer | undefined) => said?.kind === 'error' && said.because === 'omitted';

/** Returns the probability that `some` of `all`, drawn at random, are the last ones. */
function chanceToBeLast(all: number, some: number): number {
  let chance = 1;
  for (let left = some; left > 0; left -= 1) chance *= left / (all - some + left);
  return chance;
}

/** Counts the SKUs that were answered in each way, and errors by cause. */
export function tally(
  skuAnswers: Iterable<SkuAnswer>,
): Record<
  'resolved' | 'notFound' | 'deferred' | 'errors' | 'omitted' | 'contradictory' | 'unreadable',
  number
> {
  const counts = {
    resolved: 0,
    notFound: 0,
    deferred: 0,
    errors: 0,
    omitted: 0,
    contradictory: 0,
    unreadable: 0,
  };
  for (const skuAnswer of skuAnswers) {
    if (skuAnswer.kind === 'record') counts.resolved += 1;
    else if (skuAnswer.kind === 'not_found') counts.notFound += 1;
    else if (skuAnswer.kind === 'deferred') counts.deferred += 1;
    else {
      counts.errors += 1;
      if (skuAnswer.because in counts) counts[skuAnswer.because as keyof typeof counts] += 1;
    }
  }
  return counts;
}

const SKU_ERROR_MAX_MS = 6 * 3_600_000;
/** A SKU that fails alone costs a whole call each time, so once blamed it waits this many times as long. */
const ALONE_TIMES = 60;

/**
 * Returns how often a SKU must have failed before it is blamed for the failure of a call of its own: not the first
 * time, which may be chance, nor the first times it is refused, because others may use up the limit.
 */
export const blamedFrom = (failure: FailedKind): number => (refuses(failure) ? 3 : 1);

/** Waits are lengthened by up to this part, so that SKUs do not all come due at once. */
const JITTER = 0.1;
/** A SKU that is always deferred while others are not waits up to this many times DEFERRED_INTERVAL. */
const MAX_DEFERRED = 6;

/** What recent answers say about the partner, beyond this SKU's own answer. */
export interface PartnerTrend {
  /** Whether nearly all SKUs asked recently are in `errors`, so that no single SKU is at fault. */
  readonly generalErrors: boolean;
  /** Whether live SKUs are being computed, so that one that is deferred again and again is itself the cause. */
  readonly computes: boolean;
  /** Whether SKUs that the answer omits were not read. */
  readonly cut?: boolean;
  /** Whether the partner's live source fails, so that no live SKU is at fault. */
  readonly liveFails?: boolean;
  /**
   * Whether calls suffice for all live SKUs, so that one in errors is asked as often as others, and takes from
   * none of them.
   */
  readonly liveSuffices?: boolean;
  /** Whether the ceiling on live computations was met when the call was planned. */
  readonly ceilingMet?: boolean;
}

const NOTHING_KNOWN: PartnerTrend = { generalErrors: false, computes: false };

/** Returns the answer as it will be stored. Waits grow with each repetition, and vary by `random` (in [0, 1)). */
export function skuResultOf(
  asked: ClaimedSku,
  skuAnswer: SkuAnswer,
  settings: SyncSettings,
  random: () => number,
  {
    generalErrors,
    computes,
    cut = false,
    liveFails = false,
    liveSuffices = false,
    ceilingMet = false,
  }: PartnerTrend = NOTHING_KNOWN,
): SkuResult {
  const { sku } = asked;
  switch (skuAnswer.kind) {
    case 'record':
      return { sku, kind: 'record', ...rowsOf(skuAnswer.record) };
    case 'not_found':
      return { sku, kind: 'not_found' };
    case 'deferred': {
      const { deferredMs } = settings.intervals;
      const longestMs = computes ? MAX_DEFERRED * deferredMs : deferredMs;
      const waitMs = doubling(deferredMs, asked.deferrals, longestMs) * (1 + JITTER * random());
      return { sku, kind: 'deferred', waitMs, ...(ceilingMet && asked.live && { because: CEILING_MET }) };
    }
    case 'error': {
      const { errorMs } = settings.intervals;
      const because: ErrorCause = 'failure' in skuAnswer ? `call-${skuAnswer.failure}` : skuAnswer.because;
      const failed = { sku, kind: 'error', because } as const;
      if (cut && because === 'omitted') return { ...failed, waitMs: errorMs, blame: 'general' };
      if (liveFails && asked.live) {
        const waitMs = errorMs * (1 + JITTER * random());
        return { ...failed, waitMs, blame: 'class' };
      }
      if (generalErrors) {
        const waitMs = Math.max(errorMs, OUTAGE_PAUSE_MAX_MS) * (1 + JITTER * random());
        return { ...failed, waitMs, blame: 'general' };
      }
      const waitMs = errorWaitMs(asked, skuAnswer, settings, liveSuffices);
      return { ...failed, waitMs, ...('failure' in skuAnswer && { blame: 'alone' }) };
    }
  }
}

/** Returns how long a SKU waits that is, or may be, itself the cause of its error. */
function errorWaitMs(
  { failures, live }: ClaimedSku,
  skuAnswer: Extract<SkuAnswer, { kind: 'error' }>,
  { intervals: { errorMs, liveMs } }: Pick<SyncSettings, 'intervals'>,
  liveSuffices: boolean,
): number {
  const blamed = skuAnswer.because === 'alone' ? failures + 1 - blamedFrom(skuAnswer.failure) : 0;
  if (blamed > 0) return doubling(errorMs * ALONE_TIMES, blamed, SKU_ERROR_MAX_MS);
  const longestMs = live && liveSuffices && !('failure' in skuAnswer) ? liveMs : Infinity;
  return doubling(errorMs, failures + 1, Math.min(SKU_ERROR_MAX_MS, Math.max(errorMs, longestMs)));
}

function rowsOf(record: LowestRecord): Pick<Extract<SkuResult, { kind: 'record' }>, 'prices' | 'product'> {
  return {
    prices: [...record.sizes].map(([size, { price, entry }]) => ({
      size,
      price,
      entry: entry === null ? null : JSON.stringify(entry),
    })),
    product: { ...record.metadata, product: JSON.stringify(record.product ?? {}) },
  };
}

/** Counts the entries of a record's size_map that say something, but contain no readable price. */
export function unpriced(record: LowestRecord): number {
  return [...record.sizes.values()].filter(({ unreadable }) => unreadable).length;
}
