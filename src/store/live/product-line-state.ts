/*
 * What is remembered about lines of live SKUs (one brand and model), whose prices may move together
 * (sync/live/releases.ts). Times are minutes since 1970.
 */

export type LinePhase = 'quiet' | 'suspected' | 'released';

export interface Line {
  /** Counts the changes: a change is stored only if no other call has changed the line since it was read. */
  readonly step: number;
  readonly phase: LinePhase;
  /** The evidence for a release, as the logarithm of odds at the last weighed refresh. */
  readonly evidence: number;
  readonly weighedAt: number;
  /** When it was suspected; null while the line is quiet. */
  readonly since: number | null;
  /** While suspected: how many SKUs were refreshed for the first time since then, and how many had moved wholesale. */
  readonly answers: number;
  readonly moved: number;
  /** Over all releases so far: how many SKUs had moved wholesale with their line, and how many had not; fading. */
  readonly hits: number;
  readonly misses: number;
}

export const QUIET_LINE: Line = {
  step: 0,
  phase: 'quiet',
  evidence: 0,
  weighedAt: 0,
  since: null,
  answers: 0,
  moved: 0,
  hits: 0,
  misses: 0,
};

/** How often a SKU has moved wholesale by itself, and in how many minutes; fading. */
export interface Wholesale {
  readonly moves: number;
  readonly minutes: number;
}

/** What is known about all lines. */
export interface Releases {
  /** The evidence at which a line is suspected. */
  readonly threshold: number;
  /** Wholesale moves a minute that a SKU makes by itself, over all live SKUs. */
  readonly wholesaleRate: number;
  /** How many SKUs a minute were refreshed early because their line moves, as of `earlyAt`. */
  readonly early: number;
  readonly earlyAt: number;
}

/** Identifies a line. `id` is catalog_internal.line_of. */
export interface LineName {
  readonly id: string;
  readonly brand: string;
  readonly model: string;
}

/** A line as it was read; null if nothing is known about it. */
export interface HeldLine extends LineName {
  readonly state: Line | null;
}
