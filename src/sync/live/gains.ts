import { type CapacityInput, liveGroupsOf, liveWaits, refreshedPart, underWayOf } from './capacity.ts';
import {
  MAX_ROUNDS,
  nextRefreshMinutes,
  promisedWait,
  type RateGroup,
  roundOf,
  SPENT_PART,
} from './policy.ts';

/*
 * Estimates what would keep live prices right for more of the time: more requests, a watchlist, hints. Like
 * capacity.ts, it expects what the known rates imply. Pure. Times in minutes.
 */

/**
 * A service that reports moves (catalog.hint): which part of them it reports, and which part of its reports are
 * moves.
 */
export interface HintSource {
  readonly recall: number;
  readonly precision: number;
}

/** Parts of the time, in [0, 1], for which live prices are right: those of all live SKUs together. */
export interface Gains {
  readonly now: number;
  readonly moreRequests: number;
  /**
   * Whether these suffice for LIVE_INTERVAL and today's do not: all live SKUs are then refreshed in rotation
   * instead of by gain, so prices may be right for less of the time.
   */
  readonly moreMeetInterval: boolean;
  readonly hints: number;
  /**
   * With this many of the live SKUs in the watchlist (at most all of them): the part of the time for which their
   * prices are right, and those of all others; null: there are no others.
   */
  readonly watchedSkus: number;
  readonly watched: number;
  readonly others: number | null;
}

export interface WhatIf {
  /** More requests per minute. */
  readonly requests: number;
  readonly hints: HintSource;
  /** SKUs in the watchlist, and their weight; all others keep theirs. */
  readonly watched: number;
  readonly weight: number;
}

/** Minutes from a hint to the refresh that it causes. */
const HINT_MINUTES = 1;

/** Estimates what each of these would gain by itself; null if there are no live SKUs. */
export function gainsOf(input: CapacityInput, whatIf: WhatIf): Gains | null {
  const skus = Math.round(input.skus * input.liveShare);
  if (skus === 0) return null;
  const groups = liveGroupsOf(input, skus);
  const refreshes = refreshesOf(input, input.requestsPerMinute);
  const more = refreshesOf(input, input.requestsPerMinute + whatIf.requests);
  const now = partRight(input, groups, refreshes);
  const meets = (each: number) => roundOf(groups, each) <= input.liveMinutes;
  const watchedSkus = Math.min(whatIf.watched, skus);
  return {
    now,
    moreRequests: partRight(input, groups, more),
    moreMeetInterval: meets(more) && !meets(refreshes),
    // A source that is right too seldom to gain anything is not followed.
    hints: Math.max(now, withHints(input, groups, refreshes, whatIf.hints)),
    watchedSkus,
    ...withWatched(input, groups, refreshes, { part: watchedSkus / skus, weight: whatIf.weight }),
  };
}

/** Returns the live refreshes per minute at this request rate. */
function refreshesOf(input: CapacityInput, requestsPerMinute: number): number {
  const most = underWayOf({ ...input, requestsPerMinute })?.mostPerMinute ?? Infinity;
  return Math.min(Math.min(requestsPerMinute, most) * input.liveBudget, input.liveCeiling ?? Infinity);
}

const sum = (groups: readonly RateGroup[], of: (group: RateGroup, at: number) => number) =>
  groups.reduce((total, group, at) => total + group.count * of(group, at), 0);

const countOf = (groups: readonly RateGroup[]) => sum(groups, () => 1);

function waitsOf(input: CapacityInput, groups: readonly RateGroup[], refreshes: number): number[] {
  const meets = roundOf(groups, refreshes) <= input.liveMinutes;
  return liveWaits(input, groups, refreshes, meets);
}

function partRight(input: CapacityInput, groups: readonly RateGroup[], refreshes: number): number {
  const waits = waitsOf(input, groups, refreshes);
  return sum(groups, ({ lambda }, at) => refreshedPart(lambda, waits[at] as number)) / countOf(groups);
}

/**
 * Returns for what part of the time prices are right with a source of hints. A hint is followed if its refresh
 * gains as much as one more refresh anywhere, which all others then lack, or if there is a refresh to spare. Moves
 * without a hint are found only by planned refreshes.
 */
function withHints(
  input: CapacityInput,
  groups: readonly RateGroup[],
  refreshes: number,
  source: HintSource,
): number {
  const round = roundOf(groups, refreshes);
  const isEnough = round <= input.liveMinutes || input.livePolicy === 'round-robin';
  const hinted = isEnough
    ? followedInRotation(groups, refreshes, Math.max(round, input.liveMinutes), source)
    : followedByGain(groups, refreshes, MAX_ROUNDS * round, source);
  const right = ({ lambda }: RateGroup, at: number) => {
    const { recall, wait } = hinted[at] as Hinted;
    return Math.exp(-lambda * recall * HINT_MINUTES) * refreshedPart(lambda * (1 - recall), wait);
  };
  return sum(groups, right) / countOf(groups);
}

/** A group's minutes between two planned refreshes, and the part of its moves that hints report in time. */
interface Hinted {
  readonly recall: number;
  readonly wait: number;
}

/** Gives hints the refreshes that are left when all SKUs are refreshed in rotation. */
function followedInRotation(
  groups: readonly RateGroup[],
  refreshes: number,
  wait: number,
  { recall, precision }: HintSource,
): Hinted[] {
  const waits = groups.map((group) => promisedWait(group, wait));
  const spare = Math.max(0, refreshes - sum(groups, (_, at) => 1 / (waits[at] as number)));
  const moves = sum(groups, ({ lambda }) => lambda);
  const followed = Math.min(recall, (spare * precision) / moves);
  return waits.map((each) => ({ recall: followed, wait: each }));
}

/**
 * Finds, when refreshes are scarce, the threshold of gain at which planned and hinted refreshes together use up
 * all of them.
 */
function followedByGain(
  groups: readonly RateGroup[],
  refreshes: number,
  most: number,
  { recall, precision }: HintSource,
): Hinted[] {
  const followedAt = (threshold: number) =>
    groups.map((group): Hinted => {
      const { lambda, weight } = group;
      const gain = (precision * weight) / (lambda + 1 / most);
      const followed = gain >= threshold ? recall : 0;
      const rate = { alpha: lambda * (1 - followed), beta: 1 };
      return {
        recall: followed,
        wait: promisedWait(
          group,
          nextRefreshMinutes({ weight, rate }, { refreshThreshold: threshold, maxIntervalMinutes: most }),
        ),
      };
    });
  const asked = (threshold: number) => {
    const hinted = followedAt(threshold);
    return sum(groups, ({ lambda }, at) => {
      const { recall: followed, wait } = hinted[at] as Hinted;
      return 1 / wait + (lambda * followed) / precision;
    });
  };
  let [low, high] = [-60, 60];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (asked(Math.exp(middle)) > SPENT_PART * refreshes) low = middle;
    else high = middle;
  }
  return followedAt(Math.exp(high));
}

/** Returns the parts with `part` of each group in the watchlist. */
function withWatched(
  input: CapacityInput,
  groups: readonly RateGroup[],
  refreshes: number,
  { part, weight }: { readonly part: number; readonly weight: number },
): Pick<Gains, 'watched' | 'others'> {
  const inList = groups.map((group) => ({ ...group, count: group.count * part, weight }));
  const notInList = part === 1 ? [] : groups.map((group) => ({ ...group, count: group.count * (1 - part) }));
  const waits = waitsOf(input, [...inList, ...notInList], refreshes);
  const partOf = (some: readonly RateGroup[], from: number) =>
    sum(some, ({ lambda }, at) => refreshedPart(lambda, waits[from + at] as number)) / countOf(some);
  return {
    watched: partOf(inList, 0),
    others: notInList.length === 0 ? null : partOf(notInList, groups.length),
  };
}
