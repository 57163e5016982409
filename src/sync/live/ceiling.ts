import type { LiveSpend } from '../../store/ledger/claim.ts';
import { type LiveCeiling, NO_CEILING } from '../../store/live/limits.ts';
import type { LivePlan } from '../../store/live/live.ts';

/*
 * The partner also limits live computations over time; how many and how is not documented (partner rules 4.1.3,
 * 8.open): a rolling or fixed window of any length, a bucket that fills, a limit that changes by the hour. What
 * any of them allows in the long run can be measured. A cycle lasts from the first computation after one block to
 * the first after the next. The rate spent in it, times its part without a block, was allowed. The ceiling is
 * spent evenly, a little less at first and more the longer nothing is deferred, until the next block measures it
 * again. Pure; times in epoch milliseconds of the database's clock.
 */

/**
 * Part of the measured ceiling that is left unspent at first; divided by one plus the number of consecutive cycles
 * that were alike.
 */
const CAUTION = 0.005;
/**
 * Growth by the minutes without a block: linear, and after some minutes ever faster, so that a raised ceiling is
 * found.
 */
const GROWTH = 0.008;
const FURTHER_GROWTH = 0.001;
const FURTHER_POWER = 3.5;
/**
 * Cycles are alike if they measure the same to within ALIKE_PART. For each consecutive one, up to MAX_ALIKE,
 * growth begins HELD_MINUTES later and is slower by LONGER_FOR_ALIKE, because each block costs computations and
 * shows little new.
 */
const ALIKE_PART = 0.04;
const MAX_ALIKE = 5;
const HELD_MINUTES = 1;
const LONGER_FOR_ALIKE = 0.1;
/** The largest part of the ceiling that one cycle takes off: if cycles before it were alike, and if not. */
const DROP = 0.04;
const FIRST_DROP = 0.8;
/** A shorter cycle contains too few computations to confirm anything, and takes off less. */
const MIN_CYCLE_MS = 10_000;
const SHORT_DROP = 0.15;
/**
 * Live computations per minute. A ceiling below LEAST is not believed, because a minute would show nothing.
 * LEAST_TRIED is tried if nothing was computed lately; a lower ceiling grows as fast, so that a raised one is
 * found as soon.
 */
const LEAST = 1;
const LEAST_TRIED = 5;
/** While blocked, one SKU is tried again after this part of the time from the block to the last try. */
const PATIENCE = 0.6;
const MAX_PATIENCE_MS = 60_000;
/** How much unused credit is saved: one SKU, and the share of this many calls. */
const SAVED_CALLS = 1.5;
/**
 * SKUs that became live since the last delta use a call's budget unseen. They rarely use all of it twice within
 * SUSPECTED_MS, and rarely a part of it in SUSPECTED_CALLS calls of a minute, so either indicates a ceiling. If
 * SKUs are deferred for reasons of their own (again.ts), a call's SKUs are all deferred only if they are few
 * (FEW_SKUS), and rarely do that many of the last calls (MAX_OF_LAST of LAST_CALLS) have a part of theirs
 * deferred.
 */
const SUSPECTED_MS = 60_000;
const SUSPECTED_CALLS = 10;
const FEW_SKUS = 2;
const MAX_OF_LAST = 20;
/**
 * Calls that defer SKUs taken for snapshot-priced are few below this number per call that defers part of its live
 * SKUs only.
 */
const FEW = 0.2;
/** A ceiling that exceeds what all calls can ask for by this factor no longer exists. */
const BEYOND_CAPACITY = 1.03;

/**
 * Time without a computation is idle beyond IDLE_MS, or beyond what IDLE_SKUS take to compute, but not within
 * LEAST_IDLE_MS, because a call may be waiting for others, nor within the time of IDLE_CALLS calls, because only a
 * few per minute may be allowed.
 */
const IDLE_MS = 120_000;
const LEAST_IDLE_MS = 10_000;
const IDLE_SKUS = 1.25;
const IDLE_CALLS = 2;

/**
 * Excludes from the ceiling's growth the idle time that lasts at `now` or has just ended, because nothing was
 * tried in it. `computedAt`: when something was last computed; null: unknown.
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
 * Returns the ceiling that may be tried at `now`, in live computations per minute; Infinity if none was met. It
 * does not grow during a block.
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

/** Returns the ceiling that cycles agree on; 0 if they do not, Infinity if none was met. */
export function measuredCeiling({ perMinute, alike }: Pick<LiveCeiling, 'perMinute' | 'alike'>): number {
  if (perMinute === null) return Infinity;
  return alike > 0 ? perMinute : 0;
}

/** What an answered call showed of the ceiling. */
export interface CeilingEvidence {
  /** When it was claimed, and when its answer arrived. */
  readonly askedAt: number;
  readonly answeredAt: number;
  /** SKUs that counted as live: asked, computed, deferred. */
  readonly asked: number;
  readonly computed: number;
  readonly deferred: number;
  /** Deferred SKUs that counted as snapshot-priced: they may have used the call's budget unseen. */
  readonly snapshotDeferred: number;
  /** Whether SKUs that were deferred are deferred again no more often than others (again.ts). */
  readonly alike: boolean;
  /**
   * What was computed in a minute before the ceiling was lowered because of SKUs that are deferred for reasons of
   * their own; null: it was not.
   */
  readonly proven: number | null;
  /** Live SKUs that a call may contain, as learned: a call with more may be deferred because of that. */
  readonly budget: number;
  /** The configured budget: a call that exceeds it is a trial. */
  readonly configuredBudget: number;
}

/** What earlier calls showed, when a call is weighed. */
export type KnownOfCeiling = Pick<
  LivePlan,
  'ceiling' | 'best' | 'partlyDeferred' | 'lastDeferred' | 'othersDeferred' | 'computedRate' | 'computedAt'
>;

/**
 * Decides whether a call's deferrals show that the ceiling was met. If all of its live SKUs are deferred, there is
 * hardly any other cause. If only a part is, the cause may be the call's own budget, or SKUs taken for
 * snapshot-priced that use it unseen, some of which are then deferred, too. If calls with such SKUs are few, it is
 * the ceiling once that is known, because calls then ask for less than the budget, or if many calls agree: most of
 * the last ones, as happens once the ceiling is met, or fewer if the deferred SKUs are known not to be the cause
 * themselves (`alike`).
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
 * Returns the ceiling after a call; null: unchanged. A ceiling beyond what `callsPerMinute` calls of this budget
 * can ask for is dropped.
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
 * Returns a ceiling that was lowered without a reason to what was computed before; the next cycle shows how long
 * that is allowed.
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
    // One or two SKUs may all be deferred by chance, if others were computed since the last such call.
    const isChance = computed === 0 && deferred <= FEW_SKUS && (computedAt ?? 0) > (failedAt ?? Infinity);
    if (failedAt === null || isChance || Math.abs(askedAt - failedAt) > SUSPECTED_MS)
      return { ...before, failedAt: askedAt };
    // The recent rate is allowed at least for a while. The first cycle, which begins here, shows for how long.
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
    // A call sent after the last failing one ends the block if it computed a SKU, even if it was under way when
    // the block began. A block in the future comes from a wrong clock.
    return call.computed > 0 && (call.askedAt > (failedAt ?? 0) || blockedAt > call.answeredAt)
      ? afterCycle(before, blockedAt, call.askedAt, call.answeredAt)
      : null;
  if (perMinute !== null && liveCeilingAt(before, call.answeredAt) > capacity * BEYOND_CAPACITY)
    return NO_CEILING;
  return null;
}

/** Ends a cycle with its block from `blockedAt` to `endedAt`, which measures what is allowed. */
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
  // Not compared with what it has grown to, because after long growth no cycle would measure that.
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

/** How many live SKUs may be asked for, and what one of them costs. */
export interface LiveCredit {
  /** Infinity if no ceiling is known. */
  readonly skus: number;
  /** Milliseconds until another one may be asked for; 0: now. */
  readonly waitMs: number;
  /**
   * What the claim spends: `skuMs` milliseconds per SKU, of at most `mostMs` saved ones; null: no ceiling is
   * known.
   */
  readonly spend: LiveSpend | null;
}

/**
 * Returns what may be asked for under the ceiling now: its even share, or an occasional single SKU while it is
 * blocked or the live source fails.
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
  // It is far in the future if the database's clock was set back.
  const isAhead = creditFrom > now + skuMs + MAX_PATIENCE_MS;
  const savedMs = isAhead ? mostMs : Math.min(mostMs, now - creditFrom);
  return {
    skus: Math.max(0, savedMs / skuMs),
    waitMs: Math.max(0, skuMs - savedMs),
    spend: { skuMs, mostMs },
  };
}

/** Less than this per SKU is not given back: it is little, and a burst of it might meet a limit per second. */
const LEAST_RETURNED_MS = 2000;

/**
 * Returns the milliseconds of credit that a call gives back: the cost of SKUs that were deferred the last time and
 * are again. They say nothing about the ceiling, and used none of it.
 */
export function returnedCreditMs(spend: LiveSpend | null, deferredAgain: number): number {
  const skuMs = spend?.skuMs ?? 0;
  return skuMs < LEAST_RETURNED_MS ? 0 : skuMs * deferredAgain;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
