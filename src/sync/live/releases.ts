import type { LineRefresh } from '../../store/answer/types.ts';
import { type Line, QUIET_LINE, type Releases, type Wholesale } from '../../store/live/product-line-state.ts';
import { faded } from '../../store/live/rate-prior.ts';

/*
 * Releases: SKUs of one line (brand and model) whose prices move together. A refresh that finds one of them moved
 * is the only sign of moves of the others, because the others were not asked for. So each refresh is weighed by
 * its line. If more SKUs of a line have moved *wholesale* (at least half of their sizes) than chance explains, the
 * line is suspected, and some of its other SKUs, its panel, are refreshed at once. If these have moved too, all
 * others follow by what a refresh of each gains; if not, it was chance, and the next suspicion takes more evidence
 * (product-lines.ts decides which SKUs are refreshed when). Pure; all times in minutes.
 */

/** A move of at least this part of the sizes is wholesale. */
const WHOLESALE_PART = 0.5;
/**
 * The part of an unknown line that a release moves wholesale, and how many refreshes that assumption weighs as
 * much as.
 */
const USUAL_PART = 0.6;
const USUAL_COUNTS = 4;
/** Refreshes of a line's releases that are remembered: older ones fade. */
const MAX_COUNTS = 200;

/**
 * Minutes between two wholesale moves of a SKU by itself while nothing is known, and how many moves of all SKUs
 * that assumption weighs as much as.
 */
const USUAL_MINUTES = 1500;
const FIRST_MOVES = 4;
/** How far a SKU's past counts. */
const MAX_MEMORY_MINUTES = 2 * 24 * 60;

/**
 * Evidence (log odds) fades with this time constant. One refresh adds at most MAX_EVIDENCE; one that found nothing
 * subtracts UNMOVED_EVIDENCE.
 */
const EVIDENCE_MINUTES = 10;
const MAX_EVIDENCE = 4;
const MAX_CHANCE = 0.9;
const UNMOVED_EVIDENCE = Math.log(1 - USUAL_PART);

/**
 * How much evidence makes a line suspect: at first and at least, at most, and by how much a wrong suspicion and a
 * right one change it.
 */
const MIN_THRESHOLD = 6;
const MAX_THRESHOLD = 16;
const AFTER_WRONG = 0.5;
const AFTER_RIGHT = -0.2;

/**
 * A suspicion is confirmed by CONFIRMING_EVIDENCE of other SKUs, for which two moves suffice. A SKU that has not
 * moved says little, because it may still move: a suspicion is dismissed only after ANSWERS answers and
 * DISMISSED_MINUTES without confirmation.
 */
const CONFIRMING_EVIDENCE = 6;
const UNMOVED_ANSWER = -0.25;
const ANSWERS = 6;
const DISMISSED_MINUTES = 5;
/** A suspicion that is not confirmed by then is dismissed, even after few answers. */
const UNDECIDED_MINUTES = 30;

/** Times closer than this are equal: they are computed from others. */
export const SAME_MINUTES = 1e-3;

/** For this time after a suspicion, moves of the line are taken for part of the release. */
export const RELEASE_MINUTES = 10;

/** The state while nothing is known. */
export const NO_RELEASES: Releases = {
  threshold: MIN_THRESHOLD,
  wholesaleRate: 1 / USUAL_MINUTES,
  early: 0,
  earlyAt: 0,
};

/** How a refresh changed the phase of a line. */
export type LineTransition = 'suspected' | 'confirmed' | 'dismissed';

export interface Weighed {
  readonly line: Line;
  readonly turn: LineTransition | null;
  /** Whether the release explains what the refresh found, which then teaches nothing about the SKU's own moves. */
  readonly explained: boolean;
}

/** Returns whether at least half of the sizes moved. */
export function isWholesale({ held, moved }: LineRefresh['sizes']): boolean {
  return held > 0 && moved >= WHOLESALE_PART * held;
}

/**
 * Returns what is known of a SKU's own wholesale moves after a refresh that no release explains, `minutes` after
 * the previous one.
 */
export function learnWholesale(before: Wholesale, minutes: number, moved: boolean): Wholesale {
  if (minutes <= 0) return before;
  const after = { moves: before.moves + Number(moved), minutes: before.minutes + minutes };
  const scale = Math.min(1, MAX_MEMORY_MINUTES / after.minutes);
  return { moves: faded(after.moves * scale), minutes: after.minutes * scale };
}

/** Returns the wholesale moves per minute of a SKU by itself, from those of all SKUs together. */
export function wholesaleRate(all: Wholesale): number {
  return (FIRST_MOVES + all.moves) / (FIRST_MOVES * USUAL_MINUTES + all.minutes);
}

/** Returns the part of a line that a release moves. */
export function releasedPart({ hits, misses }: Pick<Line, 'hits' | 'misses'>): number {
  return (USUAL_COUNTS * USUAL_PART + hits) / (USUAL_COUNTS + hits + misses);
}

/**
 * Weighs a refresh of one of a line's SKUs. A line with times in the future, from a clock that was ahead, begins
 * anew.
 */
export function weighRefresh(before: Line, refresh: LineRefresh, releases: Releases): Weighed {
  const { at, minutes } = refresh;
  const now = present(before, at);
  const line = { ...now, step: before.step + 1, weighedAt: Math.max(now.weighedAt, at) };
  const moved = isWholesale(refresh.sizes);
  const fromSuspicion = line.since === null ? Infinity : at - minutes - line.since;
  // The SKU's first refresh since the line was suspected.
  const isFirst = fromSuspicion < -SAME_MINUTES;
  const isSoon = line.since !== null && at - line.since <= RELEASE_MINUTES;
  const explained = line.phase !== 'quiet' && moved && (isFirst || isSoon);
  if (line.phase === 'suspected')
    return { ...decide(isFirst ? answered(line, refresh, releases) : line, at), explained };
  // It may have moved with the release although an earlier refresh since then had not found that.
  if (line.phase === 'released' && fromSuspicion < RELEASE_MINUTES)
    return { line: isFirst ? remembered(line, Number(moved), Number(!moved)) : line, turn: null, explained };
  const faded = now.evidence * Math.exp(-Math.max(0, at - now.weighedAt) / EVIDENCE_MINUTES);
  const evidence = Math.max(0, faded + (moved ? evidenceOf(refresh, releases) : UNMOVED_EVIDENCE));
  if (evidence < releases.threshold) return { line: { ...line, evidence }, turn: null, explained };
  const suspected = { phase: 'suspected', evidence: 0, since: at, answers: 0, moved: 0 } as const;
  return { line: { ...line, ...suspected }, turn: 'suspected', explained };
}

const present = (line: Line, now: number): Line =>
  line.weighedAt > now + 1 || (line.since ?? 0) > now + 1
    ? { ...QUIET_LINE, step: line.step, hits: line.hits, misses: line.misses }
    : line;

/**
 * Returns the evidence of a wholesale move for a release: the log odds of a move in a release, which moves
 * USUAL_PART of a line, against one of the SKU's own.
 */
function evidenceOf({ minutes, wholesale }: LineRefresh, { wholesaleRate: usual }: Releases): number {
  const rate = (wholesale.moves + 0.5) / (wholesale.minutes + 0.5 / usual);
  const chance = Math.max(1e-9, Math.min(MAX_CHANCE, -Math.expm1(-rate * minutes)));
  return Math.min(MAX_EVIDENCE, Math.log((USUAL_PART + (1 - USUAL_PART) * chance) / chance));
}

/** Returns a suspected line after another of its SKUs had its first refresh since then. */
function answered(line: Line, refresh: LineRefresh, releases: Releases): Line {
  const moved = isWholesale(refresh.sizes);
  const evidence = line.evidence + (moved ? evidenceOf(refresh, releases) : UNMOVED_ANSWER);
  return { ...line, evidence, answers: line.answers + 1, moved: line.moved + Number(moved) };
}

/** Decides a suspicion by the answers so far, once they say enough or it has lasted too long. */
function decide(line: Line, now: number): { readonly line: Line; readonly turn: LineTransition | null } {
  if (line.evidence >= CONFIRMING_EVIDENCE) {
    const known = remembered(line, line.moved, line.answers - line.moved);
    return { line: { ...known, phase: 'released', evidence: 0 }, turn: 'confirmed' };
  }
  const age = now - (line.since ?? now);
  const isOver = (line.answers >= ANSWERS && age >= DISMISSED_MINUTES) || age > UNDECIDED_MINUTES;
  return isOver ? { line: dismissed(line), turn: 'dismissed' } : { line, turn: null };
}

export const dismissed = (line: Line): Line => ({
  ...line,
  phase: 'quiet',
  since: null,
  evidence: 0,
  answers: 0,
  moved: 0,
});

/** Returns a line after this many of its SKUs had moved with a release (`hits`), or had not (`misses`). */
export function remembered(line: Line, hits: number, misses: number): Line {
  const all = line.hits + hits + line.misses + misses;
  const scale = Math.min(1, MAX_COUNTS / all);
  return { ...line, hits: faded((line.hits + hits) * scale), misses: faded((line.misses + misses) * scale) };
}

/** Returns the threshold after a suspicion was confirmed or dismissed. */
export function thresholdAfter(threshold: number, turn: Exclude<LineTransition, 'suspected'>): number {
  const after = threshold + (turn === 'confirmed' ? AFTER_RIGHT : AFTER_WRONG);
  return Math.min(MAX_THRESHOLD, Math.max(MIN_THRESHOLD, after));
}
