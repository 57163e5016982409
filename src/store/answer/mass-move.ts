import { LONGEST_CACHED_SECONDS } from '../catalog/audit.ts';

/*
 * What a mass move is, and what a doubt goes by while there is one. Pure.
 */

/** A second answer counts only this long after the first: until then it may come from the same cache. */
export const APART_MINUTES = 5;

/** It counts only after as long as a cache may keep a price, while it is known that prices lag (late-prices.ts). */
const LATE_APART_MINUTES = LONGEST_CACHED_SECONDS / 60;

/** Mass moves are counted over this time. */
export const HOUR_MINUTES = 60;

/**
 * What shows a mass move: implausible answers, several of those by one factor, or most with one price for all sizes;
 * SKUs that have lost all their prices; moves far beyond the usual. `factor-of-some`: only some SKUs have moved, by one
 * factor, and all others as ever; then only those are doubted.
 */
export type MassMoveKind = 'implausible' | 'factor' | 'factor-of-some' | 'one-price' | 'lost' | 'far';

/**
 * The mass move that is known when an answer is judged. `since`: null if prices do not move in masses. `usual`: how far
 * prices usually move, null if not known. Factors are natural logarithms: `factor`, by which many SKUs move at present,
 * and `accepted`, which the seller has taken for the market's.
 */
export interface KnownMassMove {
  readonly since: Date | null;
  readonly kind: MassMoveKind | null;
  readonly usual: number | null;
  readonly factor: number | null;
  readonly accepted: number | null;
  /** Some SKUs that moved while the mass move was being stored are not doubted yet. */
  readonly isUnfinished?: boolean;
  /** Whether it is known that prices lag behind reports, so that a second answer counts later. */
  readonly pricesLag?: boolean;
}

/** How many minutes after a doubted answer a second one counts. Pure. */
export const apartMinutes = ({ pricesLag = false }: Pick<KnownMassMove, 'pricesLag'>): number =>
  pricesLag ? LATE_APART_MINUTES : APART_MINUTES;

/** Whether any move is doubted at present, and not only those of some SKUs by one factor. Pure. */
export const isEachDoubted = ({ since, kind }: Pick<KnownMassMove, 'since' | 'kind'>): boolean =>
  since !== null && kind !== 'factor-of-some';

/**
 * Prices go on to move in another unit: so far (natural logarithm) from the factor, they are still in it. Less far than
 * the least odd move from none at all.
 */
export const OF_FACTOR = 0.3;

/** The same where some sizes of a SKU alone have moved far: a single size may jump in an ordinary market, too. */
export const OF_FACTOR_SOME = 0.12;

/** What no market does: no second answer is evidence of anything, it waits for the seller's word. */
export const FAULT_KINDS: readonly MassMoveKind[] = ['factor', 'factor-of-some', 'one-price'];

export const isFault = (kind: MassMoveKind | null): boolean => kind !== null && FAULT_KINDS.includes(kind);

/** Whether moves in masses are a fault, and not the one that is known. Pure. */
export const isAnotherFault = (
  found: Pick<KnownMassMove, 'kind' | 'factor'>,
  known: Pick<KnownMassMove, 'kind' | 'factor'>,
): boolean => isFault(found.kind) && (found.kind !== known.kind || isOfAnother(found.factor ?? 0, known));

/**
 * Whether `by` is another factor than the known one. For a fault of some SKUs its reverse is not: it is the way back of
 * SKUs of that fault that had not been found. While each move is doubted, the reverse counts like any other factor.
 */
export function isOfAnother(by: number, { kind, factor }: Pick<KnownMassMove, 'kind' | 'factor'>): boolean {
  const known = factor ?? 0;
  return Math.abs(by - known) > OF_FACTOR && (kind !== 'factor-of-some' || Math.abs(by + known) > OF_FACTOR);
}

/** Prices do not move in masses. */
export const NO_MASS_MOVE = { kind: null, factor: null } as const;

/**
 * A mass move that goes on. `implausible`: how many of the `answers` were implausible, or had lost all prices (kind
 * `lost`). With a common `factor` (natural logarithm) its kind is `factor`, or `factor-of-some` if only some SKUs have
 * it.
 */
export interface MassMove {
  readonly since: Date;
  readonly kind: MassMoveKind;
  readonly answers: number;
  readonly implausible: number;
  readonly move: number | null;
  readonly factor: number | null;
}

/**
 * A mass move that has begun, with what shows it, or that ended after `seconds`; or beginning or ending it has failed,
 * and the next answer tries again.
 */
export type MassMoved =
  | ({ readonly event: 'began'; readonly skus: number } & Omit<MassMove, 'since'>)
  | { readonly event: 'ended'; readonly seconds: number }
  | { readonly event: 'failed'; readonly problem: string };
