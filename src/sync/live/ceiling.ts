import type { LiveSpend } from '../../store/ledger/claim.ts';
import { type LiveCeiling, NO_CEILING } from '../../store/live/limits.ts';
import type { LivePlan } from '../../store/live/live.ts';

/*
 * The partner limits live computations in time, too; how many and in which way is not documented (partner rules 4.1.3,
 * 8.open): a rolling or fixed window of any length, a bucket that fills, a limit that moves by the hour. What any of
 * them allows over a long time can be measured. A cycle lasts from the first computation after one block to the first
 * after the next. The rate at which it was spent, times the part of the cycle without a block, was allowed. The ceiling
 * is spent evenly, a little less at first and more the longer nothing is deferred, until the next block measures it
 * again. Pure; times in epoch milliseconds of the database's clock.
 */

/**
 * Part of the measured ceiling that is left unspent at first; divided by one more than the cycles in a row that were
 * alike.
 */
const CAUTION = 0.005;
/**
 * Growth in the minutes without a block: linear, and after some minutes ever faster, so that a ceiling that was
 * raised is found.
 */
const GROWTH = 0.008;
const FURTHER_GROWTH = 0.001;
const FURTHER_POWER = 3.5;
/**
 * Cycles are alike that measure the same to within ALIKE_PART. Each one in a row, up to MAX_ALIKE, has growth begin
 * HELD_MINUTES later and take longer by LONGER_FOR_ALIKE, because each block costs computations and shows little new.
 */
const ALIKE_PART = 0.04;
const MAX_ALIKE = 5;
const HELD_MINUTES = 1;
const LONGER_FOR_ALIKE = 0.1;
/** Largest part of the ceiling that one cycle takes off: where those before it were alike, and where none was. */
const DROP = 0.04;
const FIRST_DROP = 0.8;
/** A shorter cycle confirms nothing, and takes off less: it holds too few computations. */
const MIN_CYCLE_MS = 10_000;
const SHORT_DROP = 0.15;
/**
 * Live computations a minute. Less than the first is not believed, as a minute would show nothing; and the second is
 * tried where nothing was computed lately. What is less than that grows as fast, so that a ceiling that was raised is
 * found as soon.
 */
const LEAST = 1;
const LEAST_TRIED = 5;
/** While blocked, one SKU is tried again after this part of the time that it has lasted. */
const PATIENCE = 0.6;
const MAX_PATIENCE_MS = 60_000;
/** What is not asked in time may be asked later: one SKU, and the share of this many calls. */
const SAVED_CALLS = 1.5;
/**
 * SKUs that became live since the last delta use a call's budget unseen. They rarely use all of it twice within
 * SUSPECTED_MS, and rarely a part of it in SUSPECTED_CALLS calls of a minute, so either shows a ceiling. If SKUs are
 * deferred for reasons of their own (again.ts), all SKUs of a call are deferred only if these are few (FEW_SKUS), and
 * it is rare that so many of the last calls (MAX_OF_LAST of LAST_CALLS) have a part of theirs deferred.
 */
const SUSPECTED_MS = 60_000;
const SUSPECTED_CALLS = 10;
const FEW_SKUS = 2;
const MAX_OF_LAST = 20;
/** Calls that defer SKUs taken for snapshot-priced, for each that defers a part of the live ones only. */
const FEW = 0.2;
/** Where it has grown beyond what all calls can ask by this factor, there is no ceiling. */
const BEYOND_CAPACITY = 1.03;

/**
 * A longer time without a computation is idle, and so is that in which so many might have been computed, but no time
 * in which a call may wait for others, nor that of so many calls where only a few a minute may be sent.
 */
const IDLE_MS = 120_000;
const LEAST_IDLE_MS = 10_000;
const IDLE_SKUS = 1.25;
const IDLE_CALLS = 2;

/**
 * The ceiling without the idle time that lasts at `now` or has just ended, because nothing was tried in it.
 * `computedAt`: when something was last computed; null: that is not known.
 */
export function withoutIdleTime(
  ceiling: LiveCeiling,
  { computedAt, now }: { readonly computedAt: number | null; readonly now: number },
  callsPerMinute: number,
): LiveCeiling {
  if (ceiling.perMinute === null || ceiling.blockedAt !== null || computedAt === null) return ceiling;
  const from = Math.max(computedAt, ceiling.since);
  const idleMs = now - from;
  const leastMs = Math.max(LEAST_IDLE_MS, (IDLE_CALLS * 60_000) / callsPerMinute);
  const usedMs = clamp((IDLE_SKUS * 60_000) / liveCeilingAt(ceiling, from), leastMs, IDLE_MS);
  if (idleMs <= usedMs) return ceiling;
  return { ...ceiling, since: ceiling.since + idleMs, cycleFrom: ceiling.cycleFrom + idleMs };
}

/**
 * The ceiling as it may be tried at `now`, in live computations a minute; Infinity where none was met. While it is
 * met it does not grow.
 */
export function liveCeilingAt({ perMinute, since, alike, blockedAt }: LiveCeiling, now: number): number {
  if (perMinute === null) return Infinity;
  const heldFor = HELD_MINUTES * alike;
  const grownMs = Math.min(now, blockedAt ?? Infinity) - since;
  const minutes = Math.max(0, grownMs / 60_000 - heldFor) / (1 + LONGER_FOR_ALIKE * alike);
  const caution = CAUTION / (1 + alike);
  const further = FURTHER_GROWTH * minutes ** FURTHER_POWER;
  return perMinute * (1 - caution + GROWTH * minutes) + Math.max(perMinute, LEAST_TRIED) * further;
}

/** The ceiling as cycles agree on it; 0 where they do not, Infinity where none was met. */
export function measuredCeiling({ perMinute, alike }: Pick<LiveCeiling, 'perMinute' | 'alike'>): number {
  if (perMinute === null) return Infinity;
  return alike > 0 ? perMinute : 0;
}

/** What an answered call showed of the ceiling. */
export interface CeilingEvidence {
  /** When it was claimed, and when its answer was there. */
  readonly askedAt: number;
  readonly answeredAt: number;
  /** SKUs that counted as live: asked, computed, deferred. */
  readonly asked: number;
  readonly computed: number;
  readonly deferred: number;
  /** Deferred SKUs that counted as snapshot-priced: they may have used the call's budget unseen. */
  readonly snapshotDeferred: number;
  /** SKUs that were deferred are deferred again no more often than others (again.ts). */
  readonly alike: boolean;
  /**
   * What was computed in a minute before it was lowered for SKUs that are deferred for reasons of their own; null: it
   * was not.
   */
  readonly proven: number | null;
  /** Live SKUs that a call may have, as learned: a call at the budget may be deferred for that. */
  readonly budget: number;
  /** The budget as configured: what exceeds it is a trial. */
  readonly configuredBudget: number;
}

/** What is known of earlier calls when a call is weighed. */
export type KnownOfCeiling = Pick<
  LivePlan,
  'ceiling' | 'best' | 'partlyDeferred' | 'lastDeferred' | 'othersDeferred' | 'computedRate' | 'computedAt'
>;

/**
 * Whether deferrals of a call show that the ceiling was met. If all of a call's live SKUs are deferred, hardly anything
 * else can be the cause. If a part of them is, it may be the call's own budget, or SKUs taken for snapshot-priced that
 * use it unseen, some of which are then deferred, too. If calls with such SKUs are few, it is the ceiling once that is
 * known, because less than the budget is asked for then, or if many calls agree: most of the last ones, as happens once
 * the ceiling is met, or fewer if the deferred SKUs are known not to be the cause themselves (`alike`).
 */
export function meetsCeiling(call: CeilingEvidence, plan: KnownOfCeiling): boolean {
  const { asked, computed, deferred, snapshotDeferred, budget, configuredBudget } = call;
  if (deferred === 0 || snapshotDeferred > 0) return false;
  if (computed === 0) return true;
  const isBudgetUsedUnseen = plan.othersDeferred >= FEW * Math.max(1, plan.partlyDeferred);
  if (isBudgetUsedUnseen || asked > Math.floor(budget)) return false;
  if (plan.ceiling.perMinute === null) {
    const areMany =
      plan.partlyDeferred >= SUSPECTED_CALLS && (plan.lastDeferred >= MAX_OF_LAST || call.alike);
    return asked <= plan.best && areMany;
  }
  const isTrialOfBudget = asked > configuredBudget && computed >= configuredBudget;
  return !isTrialOfBudget;
}

/**
 * The ceiling after a call; null: it stays as it was. One beyond what `callsPerMinute` calls of this budget can ask for
 * is none.
 */
export function learnLiveCeiling(
  plan: KnownOfCeiling,
  call: CeilingEvidence,
  callsPerMinute: number,
): LiveCeiling | null {
  const capacity = callsPerMinute * call.budget;
  const idle = { computedAt: plan.computedAt, now: call.askedAt };
  const before = restored(withoutIdleTime(plan.ceiling, idle, callsPerMinute), call);
  const after = meetsCeiling(call, plan)
    ? blocked(before, call, { ...plan, most: Math.min(capacity, plan.computedRate) })
    : passed(before, call, capacity);
  if (after === null && before === plan.ceiling) return null;
  return { ...(after ?? before), step: plan.ceiling.step + 1 };
}

/**
 * A ceiling that was lowered without a reason returns to what was computed before; the next cycle shows how long that
 * is allowed.
 */
function restored(ceiling: LiveCeiling, { proven, answeredAt }: CeilingEvidence): LiveCeiling {
  const { perMinute } = ceiling;
  if (proven === null || perMinute === null || perMinute >= proven * (1 - ALIKE_PART)) return ceiling;
  const anew = { since: answeredAt, cycleFrom: answeredAt, alike: 0, blockedAt: null, failedAt: null };
  return { ...ceiling, ...anew, perMinute: proven };
}

function blocked(
  before: LiveCeiling,
  { askedAt, computed, deferred }: CeilingEvidence,
  { computedAt, most }: Pick<KnownOfCeiling, 'computedAt'> & { readonly most: number },
): LiveCeiling | null {
  const { perMinute, blockedAt, failedAt } = before;
  if (perMinute === null) {
    // Of one or two SKUs all may be deferred by chance, if others were computed since the last time.
    const isChance = computed === 0 && deferred <= FEW_SKUS && (computedAt ?? 0) > (failedAt ?? Infinity);
    if (failedAt === null || isChance || Math.abs(askedAt - failedAt) > SUSPECTED_MS)
      return { ...before, failedAt: askedAt };
    // What was computed lately is allowed for a while at least. The first cycle, which begins here, shows for how long.
    const first = { since: askedAt, cycleFrom: askedAt, alike: 0 };
    return {
      ...before,
      ...first,
      perMinute: Math.max(LEAST_TRIED, most),
      blockedAt: askedAt,
      failedAt: askedAt,
    };
  }
  if (blockedAt !== null) return askedAt > (failedAt ?? 0) ? { ...before, failedAt: askedAt } : null;
  // A call that was sent before the last cycle was weighed belongs to the block that ended it.
  return askedAt < before.since ? null : { ...before, blockedAt: askedAt, failedAt: askedAt };
}

function passed(before: LiveCeiling, call: CeilingEvidence, capacity: number): LiveCeiling | null {
  const { perMinute, blockedAt, failedAt } = before;
  if (blockedAt !== null)
    // A call sent after the last failing one ends the block if it computed a SKU, even if it was under way when the
    // block began. A block in the future is the clock's.
    return call.computed > 0 && (call.askedAt > (failedAt ?? 0) || blockedAt > call.answeredAt)
      ? afterCycle(before, blockedAt, call.askedAt, call.answeredAt)
      : null;
  if (perMinute !== null && liveCeilingAt(before, call.answeredAt) > capacity * BEYOND_CAPACITY)
    return NO_CEILING;
  return null;
}

/** A block from `blockedAt` to `endedAt` ends a cycle, which measures what is allowed. */
function afterCycle(
  before: LiveCeiling,
  blockedAt: number,
  endedAt: number,
  answeredAt: number,
): LiveCeiling {
  const { perMinute, cycleFrom, since, alike } = before;
  const [first, last] = [liveCeilingAt(before, since), liveCeilingAt(before, blockedAt)];
  const lengthMs = Math.max(1, endedAt - cycleFrom);
  const openMs = blockedAt - cycleFrom;
  const measured = openMs > 0 ? ((first + last) / 2) * (openMs / lengthMs) : last;
  // Not with what it had grown to: after long growth no cycle would measure that.
  const measuredBefore = perMinute ?? last;
  const isAlike = Math.abs(measured - measuredBefore) <= ALIKE_PART * measuredBefore;
  const confirmed = lengthMs < MIN_CYCLE_MS ? alike : Math.min(MAX_ALIKE, alike + 1);
  const firstDrop = lengthMs < MIN_CYCLE_MS ? SHORT_DROP : FIRST_DROP;
  const drop = alike > 0 ? DROP : firstDrop;
  return {
    ...before,
    perMinute: Math.max(LEAST, Math.min(last, Math.max(measured, last * (1 - drop)))),
    since: answeredAt,
    alike: isAlike ? confirmed : Math.max(0, alike - 1),
    blockedAt: null,
    failedAt: null,
    cycleFrom: endedAt,
  };
}

/** How many live SKUs may be asked for, and what asking for one takes. */
export interface LiveCredit {
  /** Infinity where no ceiling is known. */
  readonly skus: number;
  /** Milliseconds until another one may be asked for; 0 where one may now. */
  readonly waitMs: number;
  /**
   * What the claim takes: `skuMs` milliseconds a SKU, out of the saved ones, at most `mostMs`; null: no ceiling is
   * known.
   */
  readonly spend: LiveSpend | null;
}

/**
 * What may be asked for under the ceiling now: its even share, and one SKU at times while it is blocked, or while the
 * live source fails.
 */
export function liveCredit(
  {
    ceiling: known,
    computedAt,
    creditFrom,
    outageSince = null,
    now,
  }: Pick<LivePlan, 'ceiling' | 'computedAt' | 'creditFrom' | 'outageSince' | 'now'>,
  callsPerMinute: number,
): LiveCredit {
  const ceiling = withoutIdleTime(known, { computedAt, now }, callsPerMinute);
  const blockedAt = outageSince ?? (ceiling.perMinute === null ? null : ceiling.blockedAt);
  if (blockedAt !== null) {
    const triedAt = Math.max(creditFrom, outageSince ?? ceiling.failedAt ?? 0);
    const patienceMs = PATIENCE * (triedAt - blockedAt);
    const leastMs = 60_000 / callsPerMinute;
    const waitMs = clamp(triedAt + clamp(patienceMs, leastMs, MAX_PATIENCE_MS) - now, 0, MAX_PATIENCE_MS);
    return { skus: waitMs > 0 ? 0 : 1, waitMs, spend: { skuMs: 0, mostMs: 0 } };
  }
  if (ceiling.perMinute === null) return { skus: Infinity, waitMs: 0, spend: null };
  const skuMs = 60_000 / liveCeilingAt(ceiling, now);
  const mostMs = skuMs + (SAVED_CALLS * 60_000) / callsPerMinute;
  // Far in the future where the database's clock was set back.
  const isAhead = creditFrom > now + skuMs + MAX_PATIENCE_MS;
  const savedMs = isAhead ? mostMs : Math.min(mostMs, now - creditFrom);
  return {
    skus: Math.max(0, savedMs / skuMs),
    waitMs: Math.max(0, skuMs - savedMs),
    spend: { skuMs, mostMs },
  };
}

/** Of less a SKU nothing is given back: it is little, and in a burst might meet a limit a second. */
const LEAST_RETURNED_MS = 2000;

/**
 * Milliseconds of credit that a call gives back: what SKUs took that were deferred when they were asked before, and are
 * again. They say nothing of the ceiling, and none of it was used for them.
 */
export function returnedCreditMs(spend: LiveSpend | null, deferredAgain: number): number {
  const skuMs = spend?.skuMs ?? 0;
  return skuMs < LEAST_RETURNED_MS ? 0 : skuMs * deferredAgain;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
