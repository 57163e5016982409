import {
  MAX_ROUNDS,
  nextRefreshMinutes,
  promisedWait,
  type RateGroup,
  roundOf,
  solveThreshold,
} from './policy.ts';

/*
 * Estimates what a number of requests per minute buys: how long an initial load takes, how old prices get, and
 * what part of the time they are right. The market's rates of change are assumed to be log-normal; the policy is
 * that of policy.ts. Pure. Times in minutes.
 */

export interface CapacityInput {
  readonly skus: number;
  /** Part of the SKUs that is live-priced, in [0, 1]. */
  readonly liveShare: number;
  readonly requestsPerMinute: number;
  /** How long an answer takes; null: too short to matter. */
  readonly answerSeconds: number | null;
  /** The most calls that a process has under way. */
  readonly mostUnderWay: number;
  /** SKUs in a bulk call, and how many of them are computed live (partner rule 8.bulk). */
  readonly bulkMaxSkus: number;
  readonly liveBudget: number;
  /** The partner's ceiling on live computations per minute; null if none is known. */
  readonly liveCeiling: number | null;
  readonly livePolicy: 'index' | 'round-robin';
  readonly liveMinutes: number;
  /** 0: no separate sweep. */
  readonly sweepMinutes: number;
  readonly sweepMinAgeMinutes: number;
  readonly metadataMinutes: number;
  readonly deltaMinutes: number;
  /** From one snapshot to the next (partner rule 8.manifest-interval). */
  readonly snapshotMinutes: number;
  /**
   * Live SKUs grouped by what their refreshes have taught; null: nothing is known, and `liveMovesEvery` is
   * assumed.
   */
  readonly liveGroups: readonly RateGroup[] | null;
  /** Median minutes between two price changes of a SKU. */
  readonly liveMovesEvery: number;
  readonly snapshotMovesEvery: number;
}

export interface ClassCapacity {
  readonly skus: number;
  readonly meanAge: number;
  readonly worstAge: number;
  /** Part of the time that a price is right. */
  readonly freshness: number;
}

/** What long answers require of a process. */
export interface UnderWay {
  /** Calls that the request rate keeps under way: as many as are sent while one is answered. */
  readonly needed: number;
  /** Calls per minute with the most calls under way. */
  readonly mostPerMinute: number;
  /** Whether that is less than the requests per minute. */
  readonly limits: boolean;
}

export interface Capacity {
  readonly requestsPerMinute: number;
  /** Null if `answerSeconds` is. */
  readonly underWay: UnderWay | null;
  /** The fewest calls that an initial load takes, and its duration. */
  readonly fillCalls: number;
  readonly fillMinutes: number;
  /** Live refreshes per minute; and how long one of every live SKU takes at the highest rate. */
  readonly liveRefreshes: number;
  readonly roundMinutes: number;
  /** Whether every live SKU can be refreshed within LIVE_INTERVAL. */
  readonly meetsLiveInterval: boolean;
  readonly live: ClassCapacity;
  readonly snapshot: ClassCapacity;
  /** Calls per minute that this takes when nothing else is due. */
  readonly callsPerMinute: number;
}

/** Spread of the logarithm of rates of change, as measured on catalogs of this kind. */
const SIGMA = 1.5;
const GROUPS = 80;
/** In standard deviations; the mass beyond them is negligible. */
const WIDTH = 4;

/**
 * Returns how many calls the request rate keeps under way, and the rate that the most calls allow. Null: answers
 * are short.
 */
export function underWayOf({
  requestsPerMinute,
  answerSeconds,
  mostUnderWay,
}: Pick<CapacityInput, 'requestsPerMinute' | 'answerSeconds' | 'mostUnderWay'>): UnderWay | null {
  if (answerSeconds === null) return null;
  const mostPerMinute = (mostUnderWay * 60) / answerSeconds;
  return {
    needed: Math.ceil((requestsPerMinute * answerSeconds) / 60),
    mostPerMinute,
    limits: mostPerMinute < requestsPerMinute,
  };
}

/** Estimates load time, price age and freshness for a request budget; times are minutes. */
export function capacityOf(input: CapacityInput): Capacity {
  const live = Math.round(input.skus * input.liveShare);
  const snapshot = input.skus - live;
  const { requestsPerMinute, liveBudget, liveCeiling } = input;
  const underWay = underWayOf(input);
  const rate = Math.min(requestsPerMinute, underWay?.mostPerMinute ?? Infinity);
  const refreshes = Math.min(rate * liveBudget, liveCeiling ?? Infinity);
  const fillCalls = Math.max(Math.ceil(input.skus / input.bulkMaxSkus), Math.ceil(live / liveBudget));
  const groups = live === 0 ? [] : liveGroupsOf(input, live);
  const round = roundOf(groups, refreshes);
  const meets = round <= input.liveMinutes;
  const perMinute = meets ? refreshesWithin(groups, input.liveMinutes) : refreshes;
  const liveCalls = perMinute / liveBudget;
  const swept = sweepOf(input, rate, snapshot, live > 0 ? Math.min(liveCalls, rate) : 0);
  return {
    requestsPerMinute,
    underWay,
    fillCalls,
    fillMinutes: Math.max(fillCalls / rate, live / refreshes),
    liveRefreshes: perMinute,
    roundMinutes: round,
    meetsLiveInterval: meets,
    live: liveCapacity(input, groups, live, refreshes, meets),
    snapshot: swept.capacity,
    callsPerMinute: swept.callsPerMinute,
  };
}

/** Returns the refreshes per minute that refresh every SKU within `minutes`, or within its promise. */
export const refreshesWithin = (groups: readonly RateGroup[], minutes: number): number =>
  groups.reduce((sum, group) => sum + group.count / promisedWait(group, minutes), 0);

function liveCapacity(
  input: CapacityInput,
  groups: readonly RateGroup[],
  skus: number,
  refreshes: number,
  meets: boolean,
): ClassCapacity {
  if (skus === 0) return { skus, meanAge: 0, worstAge: 0, freshness: 1 };
  const waits = liveWaits(input, groups, refreshes, meets);
  const mean = (value: (group: RateGroup, wait: number) => number) =>
    groups.reduce((sum, group, i) => sum + group.count * value(group, waits[i] as number), 0) / skus;
  return {
    skus,
    meanAge: mean((_, wait) => wait / 2),
    worstAge: Math.max(...waits),
    freshness: mean(({ lambda }, wait) => refreshedPart(lambda, wait)),
  };
}

/** Returns the live SKUs: the mirror's, scaled to `skus`, or those of an assumed market. */
export function liveGroupsOf(
  { liveGroups, liveMovesEvery }: Pick<CapacityInput, 'liveGroups' | 'liveMovesEvery'>,
  skus: number,
): readonly RateGroup[] {
  if (liveGroups === null) return groupsOf(skus, liveMovesEvery);
  const known = liveGroups.reduce((sum, { count }) => sum + count, 0);
  return liveGroups.map((group) => ({ ...group, count: (group.count * skus) / known }));
}

/**
 * Returns the minutes between two refreshes of a SKU of each group, at `refreshes` per minute for all. `meets`:
 * they suffice for LIVE_INTERVAL.
 */
export function liveWaits(
  { livePolicy: policy, liveMinutes }: Pick<CapacityInput, 'livePolicy' | 'liveMinutes'>,
  groups: readonly RateGroup[],
  refreshes: number,
  meets: boolean,
): number[] {
  if (meets) return groups.map((group) => promisedWait(group, liveMinutes));
  const round = roundOf(groups, refreshes);
  if (policy === 'round-robin') return groups.map((group) => promisedWait(group, round));
  const most = MAX_ROUNDS * round;
  const terms = { refreshThreshold: solveThreshold(groups, refreshes, most), maxIntervalMinutes: most };
  return groups.map((group) => {
    const { weight, lambda } = group;
    return promisedWait(group, nextRefreshMinutes({ weight, rate: { alpha: lambda, beta: 1 } }, terms));
  });
}

/**
 * Estimates how often snapshot-priced SKUs are refreshed: calls are made for live SKUs and for sweeps that are
 * due, and every call is filled up with SKUs that are old enough.
 */
function sweepOf(
  input: CapacityInput,
  rate: number,
  skus: number,
  liveCalls: number,
): { capacity: ClassCapacity; callsPerMinute: number } {
  const every =
    input.sweepMinutes > 0 ? Math.min(input.sweepMinutes, input.metadataMinutes) : input.metadataMinutes;
  const perCall =
    liveCalls > 0 ? input.bulkMaxSkus - Math.min(input.liveBudget, input.bulkMaxSkus - 1) : input.bulkMaxSkus;
  const forSweep = Math.max(0, skus / every - liveCalls * perCall) / input.bulkMaxSkus;
  const callsPerMinute = Math.min(rate, liveCalls + forSweep);
  if (skus === 0) return { capacity: { skus, meanAge: 0, worstAge: 0, freshness: 1 }, callsPerMinute };
  const slots = liveCalls * perCall + Math.max(0, callsPerMinute - liveCalls) * input.bulkMaxSkus;
  const period = Math.max(input.sweepMinAgeMinutes, skus / Math.max(slots, 1e-9));
  const groups = groupsOf(skus, input.snapshotMovesEvery);
  const freshness =
    groups.reduce(
      (sum, { count, lambda }) =>
        sum + count * rightPart(lambda, period, input.snapshotMinutes, input.deltaMinutes / 2),
      0,
    ) / skus;
  return { capacity: { skus, meanAge: period / 2, worstAge: period, freshness }, callsPerMinute };
}

/**
 * Returns for what part of the time a price is right that moves `lambda` times per minute and is refreshed every
 * `every` minutes.
 */
export function refreshedPart(lambda: number, every: number): number {
  const moves = lambda * every;
  return moves > 0 ? -Math.expm1(-moves) / moves : 1;
}

const STEPS = 200;

/**
 * Returns the same for a price whose moves are also reported with the next snapshot: one every `snapshot` minutes,
 * `delay` minutes late. This is the expectation of e^(−λ·age), where the age is the smaller of two uniformly
 * distributed ones.
 */
function rightPart(lambda: number, every: number, snapshot: number, delay: number): number {
  const most = Math.min(every, snapshot + delay);
  const older = (age: number) => (1 - age / every) * Math.min(1, 1 - (age - delay) / snapshot);
  let sum = 0;
  for (let step = 0; step < STEPS; step += 1) {
    const age = ((step + 0.5) * most) / STEPS;
    sum += Math.exp(-lambda * age) * older(age);
  }
  return 1 - (lambda * sum * most) / STEPS;
}

/**
 * Divides a log-normal market into groups along its logarithm. `median`: minutes between two moves of the median
 * SKU.
 */
function groupsOf(skus: number, median: number): RateGroup[] {
  const deviations = Array.from({ length: GROUPS }, (_, i) => WIDTH * ((2 * (i + 0.5)) / GROUPS - 1));
  const density = (z: number) => Math.exp((-z * z) / 2);
  const whole = deviations.reduce((sum, z) => sum + density(z), 0);
  return deviations.map((z) => ({
    count: (skus * density(z)) / whole,
    lambda: Math.exp(SIGMA * z) / median,
    weight: 1,
  }));
}
