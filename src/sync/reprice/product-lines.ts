import type { WeighedLine } from '../../store/answer/types.ts';
import type { LivePlan } from '../../store/live/live.ts';
import { type Line, QUIET_LINE, type Releases } from '../../store/live/product-line-state.ts';
import {
  type TransitionCounts,
  type HeldMember,
  type HeldMembers,
  type LineChange,
  moveMembers,
  readLines,
  readMembers,
  storeLineChanges,
} from '../../store/live/product-lines.ts';
import type { Rate } from '../../store/live/rate-prior.ts';
import type { SyncContext } from '../context.ts';
import { hintedMinutes } from '../live/hints.ts';
import { type RefreshTerms, nextRefreshMinutes, rateOf } from '../live/policy.ts';
import {
  earlyAfter,
  panelOf,
  type Pulled,
  releasedMembers,
  afterRefreshes,
  boostPlan,
} from '../live/product-lines.ts';
import { dismissed, type LineTransition, thresholdAfter } from '../live/releases.ts';

/*
 * Follows lines whose SKUs move together, call by call: they are weighed with the answer and stored with what it
 * teaches; if one is suspected, confirmed or dismissed, its others are moved in the order of live refreshes. Every
 * call weighs lines; few have such a transition.
 */

/** Attempts to store a line that other calls keep changing; after these, what this call showed of it is lost. */
const MAX_TRIES = 5;

/** A line after the refreshes of a call, to be stored, and its transitions. */
export interface ChangedLine {
  readonly change: LineChange;
  readonly turns: readonly LineTransition[];
}

/** Returns the lines of an answer as they are known now (`states` by id, else as they were when it was applied). */
export function turnedLines(
  lines: readonly WeighedLine[],
  releases: Releases,
  states: ReadonlyMap<string, Line | null> = new Map(),
): ChangedLine[] {
  return lines.map(({ id, brand, model, state, refreshes }) => {
    const before = (states.has(id) ? states.get(id) : state) ?? null;
    const { line, turns } = afterRefreshes(before ?? QUIET_LINE, refreshes, releases);
    return { change: { id, brand, model, from: before?.step ?? 0, to: line }, turns };
  });
}

/**
 * Follows lines whose state was stored, and weighs again those that other calls have changed since the answer was
 * applied.
 */
export async function followChangedLines(
  ctx: SyncContext,
  plan: LivePlan,
  lines: readonly WeighedLine[],
  stored: readonly string[],
): Promise<void> {
  const boost = boostPlan(plan);
  if (boost === null || lines.length === 0) return;
  const turned = turnedLines(lines, plan.releases);
  for (const line of turned) if (stored.includes(line.change.id)) await follow(ctx, boost, line);
  let left = lines.filter(({ id }) => !stored.includes(id));
  for (let tries = 0; tries < MAX_TRIES && left.length > 0; tries += 1) {
    const held = await readLines(
      ctx.sql,
      left.map(({ id }) => id),
    );
    const states = new Map(left.map(({ id }) => [id, held.find((line) => line.id === id)?.state ?? null]));
    const again = turnedLines(left, plan.releases, states);
    const now = await storeLineChanges(
      ctx.sql,
      again.map(({ change }) => change),
    );
    for (const line of again) if (now.includes(line.change.id)) await follow(ctx, boost, line);
    left = left.filter(({ id }) => !now.includes(id));
  }
}

/** Moves the other SKUs of a line after a transition, and reports each transition. */
async function follow(ctx: SyncContext, boost: RefreshTerms, { change, turns }: ChangedLine): Promise<void> {
  const last = turns.at(-1);
  if (last === undefined) return;
  const { sql, floors, emit } = ctx;
  const { to, brand, model } = change;
  const found = await readMembers(sql, change.id);
  const members = found.members.map((member) => ({ ...member, rate: rateOf(member) }));
  const pulled = {
    suspected: () => panelOf(to, members, boost, found.now),
    confirmed: () => releasedMembers(to, members, boost, found.now),
    dismissed: () => [],
  }[last]();
  // There are too few others to judge it by.
  if (last === 'suspected' && pulled.length === 0) {
    await storeLineChanges(sql, [{ ...change, from: to.step, to: { ...dismissed(to), step: to.step + 1 } }]);
    return;
  }
  const moved = last === 'dismissed' ? putBack(members, boost) : moves(pulled, members);
  const sooner = pulled.filter(({ inMinutes }) => inMinutes !== null).length;
  const skus = await moveMembers(sql, moved, transitionCounts(found, turns, sooner));
  floors.reset();
  for (const turn of turns)
    if (turn === 'dismissed') emit({ event: 'release.dismissed', brand, model });
    else emit({ event: `release.${turn}`, brand, model, skus: turn === last ? skus : 0 });
}

/**
 * Makes SKUs of the panel that have not been refreshed wait as if their line had never been suspected: as hints at
 * them say, or their own rate.
 */
const putBack = (members: readonly (HeldMember & { readonly rate: Rate })[], boost: RefreshTerms) =>
  members
    .filter(({ pulled }) => pulled)
    .map(({ sku, generation, weight, rate, minutes, hintHazard }) => {
      const wait = nextRefreshMinutes({ weight, rate }, boost);
      const dueIn = Math.max(0, wait - minutes);
      const hinted = hintedMinutes({ weight, rate, minutes, dueIn }, hintHazard ?? 0, boost);
      return { sku, generation, inMinutes: hinted ?? dueIn, hazard: null };
    });

const moves = (pulled: readonly Pulled[], members: readonly HeldMember[]) => {
  const generations = new Map(members.map(({ sku, generation }) => [sku, generation]));
  return pulled.map((each) => ({ ...each, generation: generations.get(each.sku) ?? -1 }));
};

function transitionCounts(
  { releases, now }: HeldMembers,
  turns: readonly LineTransition[],
  pulled: number,
): TransitionCounts {
  const count = (turn: LineTransition) => turns.filter((each) => each === turn).length;
  const threshold = turns.reduce(
    (before, turn) => (turn === 'suspected' ? before : thresholdAfter(before, turn)),
    releases.threshold,
  );
  const counts = {
    suspected: count('suspected'),
    confirmed: count('confirmed'),
    dismissed: count('dismissed'),
  };
  return { ...counts, threshold, early: earlyAfter(releases, pulled, now), earlyAt: now };
}
