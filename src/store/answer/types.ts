import type { Metadata } from '../../declared/metadata.ts';
import type { CEILING_MET } from '../ledger/due.ts';
import type { HeldLine, Wholesale } from '../live/product-line-state.ts';
import type { LiveRefresh, LearnedRefresh } from '../live/refresh.ts';
import type { Oddity } from './plausibility.ts';

/** One size of a record, as it is stored. */
export interface PriceRow {
  readonly size: string;
  readonly price: number | null;
  /** The partner's entry as JSON text; null if it was just the number. */
  readonly entry: string | null;
}

/** Metadata of a record, as it is stored: columns of catalog.products. */
export interface ProductRow extends Metadata {
  /** The product object as JSON text. */
  readonly product: string;
}

/**
 * Why a SKU is in error. `reported`: it is in the answer's `errors`; `omitted`: in none of its arrays; `contradictory`:
 * in two; `unreadable`: its record is. `call-` and the kind of a failure: a call with it and no other failed.
 */
export type ErrorCause = 'reported' | 'omitted' | 'contradictory' | 'unreadable' | `call-${string}`;

/** The result of one asked SKU. Waits are in milliseconds from now. */
export type SkuResult =
  | {
      readonly sku: string;
      readonly kind: 'record';
      readonly prices: readonly PriceRow[];
      readonly product: ProductRow;
    }
  | { readonly sku: string; readonly kind: 'not_found' }
  | {
      readonly sku: string;
      readonly kind: 'deferred';
      readonly waitMs: number;
      /** Set if the ceiling on live computations was met when it was asked. */
      readonly because?: typeof CEILING_MET;
    }
  | {
      readonly sku: string;
      readonly kind: 'error';
      readonly waitMs: number;
      /**
       * `alone`: a call with this SKU and no other failed as a whole, so it gets calls of its own until one has
       * worked. `general`: nearly all SKUs are in errors, so it is counted at most once against this one. `class`: the
       * source of all live SKUs fails, so it is not counted against this one. Absent: the answer has this SKU in
       * errors.
       */
      readonly blame?: 'alone' | 'general' | 'class';
      /** Absent: unknown. */
      readonly because?: ErrorCause;
    };

/** When a SKU's next refresh is due after an answer, in milliseconds. */
export interface NextRefresh {
  /** For SKUs without a plan of their own whose moves nobody reports, such as unlisted ones. */
  readonly liveMs: number;
  /** Snapshot-priced: by sweep, or by the age of the metadata if sweeps are off. */
  readonly snapshotMs: number;
  readonly snapshotReason: 'sweep' | 'metadata';
  readonly notFoundMs: number;
  /** The same for a listed SKU, which may be the partner's mistake: the first time, then doubling to notFoundMs. */
  readonly lostMs: number;
}

/** Learns from the live SKUs of an answer, within its transaction. */
export interface AnswerLearning {
  /**
   * Learns from a refresh of a live SKU, and from what its line says of it, and returns when the next one is due; null
   * if nothing is learned, and the next one is due after `liveMs`.
   */
  readonly live: (refresh: LiveRefresh, lineEvidence?: LineEvidence) => LearnedRefresh | null;
  /** Weighs the refreshes of live SKUs by their lines. */
  readonly lines: (refreshes: readonly LiveRefresh[]) => WeighedLines;
  /** Whether a refresh of any SKU counts as that of a live SKU, as during an incident, whatever the catalog lists. */
  readonly everythingLive: boolean;
  /** Returns a random number from [0, 1). */
  readonly random: () => number;
}

export const NO_LEARNING: AnswerLearning = {
  live: () => null,
  lines: () => ({ lines: [], lineEvidence: new Map() }),
  everythingLive: false,
  random: () => 0,
};

/** Lines with the refreshes of an answer, in order of their ids, and their evidence on each refresh, by SKU. */
export interface WeighedLines {
  readonly lines: readonly WeighedLine[];
  readonly lineEvidence: ReadonlyMap<string, LineEvidence>;
}

/** What its line says about a refresh. */
export interface LineEvidence {
  /** Whether the line's release explains what the refresh found. */
  readonly explained: boolean;
  /**
   * In how many minutes the SKU is refreshed again because its line moves and it has not; null: no sooner than usual.
   */
  readonly againIn: number | null;
  /** What is now known of the SKU's own wholesale moves. */
  readonly wholesale: Wholesale;
}

/** A line with those of its SKUs that an answer has refreshed, as known when the answer was applied. */
export interface WeighedLine extends HeldLine {
  readonly refreshes: readonly LineRefresh[];
}

/** What a refresh of a SKU has found, `minutes` after the previous one. Times in minutes. */
export interface LineRefresh {
  readonly at: number;
  readonly minutes: number;
  /** How many sizes had a price, and how many of these moved. */
  readonly sizes: { readonly held: number; readonly moved: number };
  readonly wholesale: Wholesale;
}

export interface DoubtedSku {
  readonly sku: string;
  readonly oddity: Oddity;
}
