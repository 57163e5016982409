import type { LineRefresh, LineEvidence, WeighedLine, WeighedLines } from '../../store/answer/types.ts';
import type { LivePlan } from '../../store/live/live.ts';
import { type Line, QUIET_LINE, type Releases, type Wholesale } from '../../store/live/product-line-state.ts';
import type { Rate } from '../../store/live/rate-prior.ts';
import type { LiveRefresh } from '../../store/live/refresh.ts';
import { boostedMinutes, boostedValue, type RefreshTerms, rateOf } from './policy.ts';
import {
  isWholesale,
  learnWholesale,
  type LineTransition,
  weighRefresh,
  RELEASE_MINUTES,
  releasedPart,
  SAME_MINUTES,
} from './releases.ts';

/* Weighs the refreshes of one answer by their lines (releases.ts). Pure; times in minutes. */

/** Returns what is known after a refresh of a SKU without a line. */
export const byItself = (refresh: LiveRefresh): LineEvidence => ({
  explained: false,
  againIn: null,
  wholesale: ownMoves(refresh, false),
});

const wholesaleOf = ({ wholesaleMoves, wholesaleMinutes }: LiveRefresh): Wholesale => ({
  moves: wholesaleMoves ?? 0,
  minutes: wholesaleMinutes ?? 0,
});

function ownMoves(refresh: LiveRefresh, explained: boolean): Wholesale {
  const { minutes, sizes } = refresh;
  const before = wholesaleOf(refresh);
  if (explained || minutes === null) return before;
  return learnWholesale(before, minutes, sizes !== undefined && isWholesale(sizes));
}

/**
 * Returns the terms of live refreshes if these are scarce; null if they are not, and during an incident, when
 * lines do not count.
 */
export function boostPlan({ refreshThreshold, maxIntervalMinutes, incident }: LivePlan): RefreshTerms | null {
  if (refreshThreshold === null || maxIntervalMinutes === null || incident !== null) return null;
  return { refreshThreshold, maxIntervalMinutes };
}

/** Returns what lines say about refreshes, by SKU, and the lines with their refreshes, in order of their ids. */
export function weighLines(plan: LivePlan, refreshes: readonly LiveRefresh[]): WeighedLines {
  const lineEvidence = new Map<string, LineEvidence>();
  const lines = new Map<string, WeighedLine & { readonly now: Line }>();
  const boost = boostPlan(plan);
  for (const refresh of boost === null ? [] : refreshes) {
    const { line, at, minutes, sizes } = refresh;
    if (!line || at === undefined || minutes === null || minutes <= 0 || sizes === undefined) continue;
    const found = { at, minutes, sizes, wholesale: wholesaleOf(refresh) };
    const before = lines.get(line.id) ?? { ...line, refreshes: [], now: line.state ?? QUIET_LINE };
    const { line: now, explained } = weighRefresh(before.now, found, plan.releases);
    lines.set(line.id, { ...before, refreshes: [...before.refreshes, found], now });
    const known = { weight: refresh.weight, rate: rateOf(refresh) };
    const againIn = boost === null ? null : releaseRecheckMinutes(now, found, known, boost);
    lineEvidence.set(refresh.sku, { explained, againIn, wholesale: ownMoves(refresh, explained) });
  }
  const inOrder = [...lines.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return {
    lines: inOrder.map(({ id, brand, model, state, refreshes: found }) => ({
      id,
      brand,
      model,
      state,
      refreshes: found,
    })),
    lineEvidence,
  };
}

/** Returns a line after the refreshes of an answer, with its transitions on the way. */
export function afterRefreshes(
  before: Line,
  refreshes: readonly LineRefresh[],
  releases: Releases,
): { readonly line: Line; readonly turns: readonly LineTransition[] } {
  let line = before;
  const turns: LineTransition[] = [];
  for (const refresh of refreshes) {
    const weighed = weighRefresh(line, refresh, releases);
    line = weighed.line;
    if (weighed.turn !== null) turns.push(weighed.turn);
  }
  return { line, turns };
}

/*
 * Which SKUs of a line that moves together are refreshed sooner because of it (releases.ts), and what that takes.
 * Pure; all times in minutes.
 */

/** SKUs of a panel: more than the decision needs, because some may be deferred. */
const PANEL = 8;
/** With fewer others in the line, there is nothing to gain. */
const MIN_OTHERS = 12;

/** Average time from the beginning of a release to the move of one of its SKUs. */
const DELAY_MINUTES = 3;
/** Shortest time from the beginning of a release to the second refresh of a SKU that had not moved. */
const AGAIN_MINUTES = 6;

/** Early refreshes fade with this time constant; this part of them is excluded from the next plan. */
const EARLY_MEMORY_MINUTES = 120;
const SET_ASIDE_PART = 0.5;

/** Another SKU of a line, with the minutes since its last refresh and until the next one. */
export interface LineMember {
  readonly sku: string;
  readonly weight: number;
  readonly rate: Rate;
  readonly minutes: number;
  readonly dueIn: number;
}

/**
 * A SKU that has moved with its line with probability 1 − e^−hazard, and the minutes until its refresh because of
 * that; null: no sooner than it is due.
 */
export interface Pulled {
  readonly sku: string;
  readonly inMinutes: number | null;
  readonly hazard: number;
}

interface Boosted {
  readonly sku: string;
  readonly inMinutes: number;
  readonly hazard: number;
  readonly isSooner: boolean;
  readonly value: number;
}

/**
 * Returns the others of a line whose last refresh was before `since`, soonest due first when the release is
 * considered.
 */
function boosted(line: Line, members: readonly LineMember[], plan: RefreshTerms, now: number): Boosted[] {
  const hazard = -Math.log1p(-releasedPart(line));
  return members
    .filter(({ minutes }) => now - minutes < (line.since ?? now) - SAME_MINUTES)
    .map(({ sku, weight, rate, minutes, dueIn }) => {
      const inMinutes = Math.max(0, boostedMinutes({ weight, rate, hazard }, plan) - minutes);
      const value = boostedValue({ weight, rate, minutes, hazard }, plan);
      return { sku, inMinutes, hazard, isSooner: inMinutes < dueIn, value };
    })
    .toSorted((a, b) => a.inMinutes - b.inMinutes || b.value - a.value);
}

/** Returns the panel of a suspected line; empty if it has too few others to judge it by. */
export function panelOf(
  line: Line,
  members: readonly LineMember[],
  plan: RefreshTerms,
  now: number,
): readonly Pulled[] {
  const others = boosted(line, members, plan, now);
  if (others.length < MIN_OTHERS) return [];
  return others.slice(0, PANEL).map(({ sku, hazard }) => ({ sku, inMinutes: 0, hazard }));
}

/**
 * Returns the others of a line whose release is confirmed, soonest first, then by value. All of them have probably
 * moved, including those that are due sooner anyway or have long been due (`inMinutes` is null), whose hazard
 * gives them their place in a backlog.
 */
export function releasedMembers(
  line: Line,
  members: readonly LineMember[],
  plan: RefreshTerms,
  now: number,
): readonly Pulled[] {
  return boosted(line, members, plan, now).map(({ sku, inMinutes, isSooner, hazard }) => ({
    sku,
    inMinutes: isSooner ? inMinutes : null,
    hazard,
  }));
}

/**
 * Returns in how many minutes a SKU that has not moved with its line is refreshed again, because it may still
 * move. Null: no sooner than otherwise, because the line does not move, or no longer does.
 */
export function releaseRecheckMinutes(
  line: Line,
  { at, sizes }: Pick<LineRefresh, 'at' | 'sizes'>,
  { weight, rate }: { readonly weight: number; readonly rate: Rate },
  plan: RefreshTerms,
): number | null {
  if (line.phase !== 'released' || line.since === null || isWholesale(sizes)) return null;
  const age = at - line.since;
  if (age < 0 || age > RELEASE_MINUTES) return null;
  const part = releasedPart(line);
  const left = part * Math.exp(-age / DELAY_MINUTES);
  const hazard = -Math.log1p(-left / (1 - part + left));
  return Math.max(boostedMinutes({ weight, rate, hazard }, plan), AGAIN_MINUTES - age);
}

/** Refreshes per minute that came early, as of the minute `earlyAt`. */
export type EarlyRefreshes = Pick<Releases, 'early' | 'earlyAt'>;

/** Returns the early refreshes per minute after `pulled` more at `now`. */
export function earlyAfter({ early, earlyAt }: EarlyRefreshes, pulled: number, now: number): number {
  const faded = early * Math.exp(-Math.max(0, now - earlyAt) / EARLY_MEMORY_MINUTES);
  return faded + pulled / EARLY_MEMORY_MINUTES;
}

/** Returns the refreshes per minute that the schedule of live refreshes leaves to releases and hints. */
export function setAside(refreshes: EarlyRefreshes, now: number): number {
  return SET_ASIDE_PART * earlyAfter(refreshes, 0, now);
}
