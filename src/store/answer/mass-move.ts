import { LONGEST_CACHED_SECONDS } from '../catalog/audit.ts';

/* What a mass move is, and how it affects doubts. Pure. */

/** How long after the first answer a second one counts: until then it may come from the same cache. */
export const APART_MINUTES = 5;

/** The same while prices are known to lag (late-prices.ts): as long as a cache may keep a price. */
const LATE_APART_MINUTES = LONGEST_CACHED_SECONDS / 60;

/** The time over which mass moves are counted. */
export const HOUR_MINUTES = 60;

/**
 * What shows a mass move: implausible answers, several of those by one factor, or most with one price for all sizes;
 * SKUs that have lost all their prices; moves far beyond the usual. `factor-of-some`: only some SKUs have moved, by
 * one factor, and all others as usual; then only those are doubted.
 */
export type MassMoveKind = 'implausible' | 'factor' | 'factor-of-some' | 'one-price' | 'lost' | 'far';

/**
 * The mass move that is known when an answer is judged. `since`: null if prices do not move in masses. `usual`: how
 * far prices usually move, null if not known. Factors are natural logarithms: `factor`, by which many SKUs move at
 * present, and `accepted`, which the seller has accepted as the market's.
 */
export interface KnownMassMove {
  readonly since: Date | null;
  readonly kind: MassMoveKind | null;
  readonly usual: number | null;
  readonly factor: number | null;
  readonly accepted: number | null;
  /** Whether SKUs that moved while the mass move was being stored are yet to be doubted. */
  readonly isUnfinished?: boolean;
  /** Whether prices are known to lag behind reports, so that a second answer counts later. */
  readonly pricesLag?: boolean;
}

/** Returns how many minutes after a doubted answer a second one counts. Pure. */
export const apartMinutes = ({ pricesLag = false }: Pick<KnownMassMove, 'pricesLag'>): number =>
  pricesLag ? LATE_APART_MINUTES : APART_MINUTES;

/** Whether every move is doubted at present, not only those of some SKUs by one factor. Pure. */
export const isEachDoubted = ({ since, kind }: Pick<KnownMassMove, 'since' | 'kind'>): boolean =>
  since !== null && kind !== 'factor-of-some';

/**
 * How far (natural logarithm) from the factor prices still count as being in another unit, because they go on to move.
 * Smaller than the least odd move.
 */
export const OF_FACTOR = 0.3;

/** The same if only some sizes of a SKU have moved far: a single size may jump in an ordinary market, too. */
export const OF_FACTOR_SOME = 0.12;

/** What no market does: no second answer is evidence of anything, so the doubt waits for the seller's word. */
export const FAULT_KINDS: readonly MassMoveKind[] = ['factor', 'factor-of-some', 'one-price'];

export const isFault = (kind: MassMoveKind | null): boolean => kind !== null && FAULT_KINDS.includes(kind);

/** Whether the found mass move is a fault other than the known one. Pure. */
export const isAnotherFault = (
  found: Pick<KnownMassMove, 'kind' | 'factor'>,
  known: Pick<KnownMassMove, 'kind' | 'factor'>,
): boolean => isFault(found.kind) && (found.kind !== known.kind || isOfAnother(found.factor ?? 0, known));

/**
 * Whether `by` is another factor than the known one. For a fault of some SKUs its reverse is not: it is the way back
 * of SKUs of that fault that had not been found. While every move is doubted, the reverse counts like any factor.
 */
export function isOfAnother(by: number, { kind, factor }: Pick<KnownMassMove, 'kind' | 'factor'>): boolean {
  const known = factor ?? 0;
  return Math.abs(by - known) > OF_FACTOR && (kind !== 'factor-of-some' || Math.abs(by + known) > OF_FACTOR);
}

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
 * A mass move that has begun, with the evidence, or that ended after `seconds`; or storing that has failed, and the
 * next answer tries again.
 */
export type MassMoved =
  | ({ readonly event: 'began'; readonly skus: number } & Omit<MassMove, 'since'>)
  | { readonly event: 'ended'; readonly seconds: number }
  | { readonly event: 'failed'; readonly problem: string };
