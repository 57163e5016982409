import type { LineRefresh, LineEvidence, WeighedLine, WeighedLines } from '../../store/answer/types.ts';
import { type Line, QUIET_LINE, type Releases, type Wholesale } from '../../store/live/line-state.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { LiveRefresh } from '../../store/live/refresh.ts';
import { releaseRecheckMinutes, type BoostPlan } from './boost.ts';
import { rateOf } from './rate.ts';
import { isWholesale, learnWholesale, type LineTransition, weighRefresh } from './releases.ts';

/* The refreshes of one answer, weighed by their lines (releases.ts). Pure; times in minutes. */

/** What is known of a SKU without a line after a refresh. */
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
 * By what live refreshes are planned where they are scarce; null where they are not, and during an incident: then
 * nobody goes by lines.
 */
export function boostPlan({ refreshThreshold, maxIntervalMinutes, incident }: LivePlan): BoostPlan | null {
  if (refreshThreshold === null || maxIntervalMinutes === null || incident !== null) return null;
  return { refreshThreshold, maxIntervalMinutes };
}

/** What lines say of refreshes by SKU, and the lines with their refreshes, in order of their ids. */
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

/** A line after the refreshes of an answer, and what became of it on the way. */
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
