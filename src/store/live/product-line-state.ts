/*
 * What is remembered of lines of live SKUs (one brand and model), whose prices may move together
 * (sync/live/releases.ts). Times in minutes since 1970.
 */

export type LinePhase = 'quiet' | 'suspected' | 'released';

export interface Line {
  /** Counts the changes: one is stored only where no other call has changed the line since it was read. */
  readonly step: number;
  readonly phase: LinePhase;
  /** For a release, as a logarithm of odds, as of the time of the last refresh that was weighed. */
  readonly evidence: number;
  readonly weighedAt: number;
  /** When it was suspected; null while it is quiet. */
  readonly since: number | null;
  /** While it is suspected: SKUs refreshed for the first time since then, and those that had moved wholesale. */
  readonly answers: number;
  readonly moved: number;
  /** Over all releases so far: SKUs that had moved wholesale with their line, and those that had not; fading. */
  readonly hits: number;
  readonly misses: number;
}

/** Before any refresh. */
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

/** How often a SKU has moved wholesale by itself, in how many minutes; fading. */
export interface Wholesale {
  readonly moves: number;
  readonly minutes: number;
}

/** What is known of all lines. */
export interface Releases {
  /** With how much evidence a line is suspected. */
  readonly threshold: number;
  /** Wholesale moves a minute of a SKU by itself, over all live SKUs. */
  readonly wholesaleRate: number;
  /** SKUs a minute that have been refreshed early because their line moves, as of `earlyAt`. */
  readonly early: number;
  readonly earlyAt: number;
}

/** Which line it is. `id` is catalog_internal.line_of. */
export interface LineName {
  readonly id: string;
  readonly brand: string;
  readonly model: string;
}

/** A line as it was read; null: nothing is known of it. */
export interface HeldLine extends LineName {
  readonly state: Line | null;
}
