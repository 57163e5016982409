import { isAnotherFault, isFault, type KnownMassMove, type MassMoveKind } from './mass-move.ts';

/*
 * Decides whether prices move implausibly in masses: either a fault of the partner, or a crash of the market. One
 * answer cannot tell these apart, so each move is doubted until a second answer says the same. If several SKUs move by
 * one and the same factor, it is another unit or currency; if most implausible SKUs have one price for all sizes, the
 * sizes are lost. For these two, no number of equal answers is evidence: the doubt waits for the seller's word. If one
 * of the partner's sources has another unit for a few SKUs, only those wait. Pure.
 */

/** Answered SKUs of the hour, and moved ones among them, from which a part of them may show a mass move. */
export const ENOUGH_SKUS = 200;
/** Moved SKUs of the hour that suffice to show that a mass move goes on; or answered ones, that it is over. */
export const SOME_SKUS = 20;
/**
 * The part of the answered SKUs that is implausible, or that has lost all its prices, in a mass move. With fewer
 * answers than ENOUGH_SKUS, as in an hour of a catalog of a hundred SKUs, also at least `few` SKUs: one or two may be
 * chance.
 */
const IMPLAUSIBLE = { part: 0.01, few: 5 } as const;
const LOST = { part: 0.25, few: 10 } as const;
/** Implausible SKUs that show that the mass move goes on: one or two may move so far by chance. */
export const GOING_SKUS = 3;
/** How many implausible SKUs, and which part of them all, show that all sizes have one price. */
const ONE_PRICE = { skus: 8, part: 0.5 } as const;
/**
 * Prices move far if the median move is over TIMES_USUAL times the usual one. MIN_USUAL: the least that counts as
 * usual. UNKNOWN_FAR: what is far while the usual move is not known (natural logarithms).
 */
const TIMES_USUAL = 8;
const MIN_USUAL = 0.02;
const UNKNOWN_FAR = Math.log(2);

/** What answers of the last hour have shown. */
export interface HourOfMoves {
  readonly answers: number;
  /** Whether SOME_SKUS of them came within the hour itself; otherwise other processes may have seen more. */
  readonly isRecent: boolean;
  readonly implausible: number;
  /** How many SKUs these are: a live SKU is asked often. */
  readonly implausibleSkus: number;
  /** Those of the implausible ones with one price for all sizes. */
  readonly onePrice: number;
  readonly lost: number;
  /** The same for SKUs whose losses no delta reports, because only the live ones may have lost their prices. */
  readonly untold: { readonly answers: number; readonly lost: number };
  readonly moves: number;
  /** Median; null if there are no moves. */
  readonly move: number | null;
  /** The factor by which several SKUs have begun to move implausibly, a natural logarithm; null if there is none. */
  readonly factor: number | null;
  /** SKUs that had been doubted for what no market does, and no longer show it. */
  readonly repairedSkus: number;
}

export const NO_MOVES: HourOfMoves = {
  answers: 0,
  isRecent: false,
  implausible: 0,
  implausibleSkus: 0,
  onePrice: 0,
  lost: 0,
  untold: { answers: 0, lost: 0 },
  moves: 0,
  move: null,
  factor: null,
  repairedSkus: 0,
};

/**
 * Returns the kind of mass move that the hour shows, beyond chance and an ordinary market; null if none. `going`: each
 * move is doubted already, and less evidence shows that this goes on. Pure.
 */
export function isMassMove(hour: HourOfMoves, usual: number | null, going: boolean): MassMoveKind | null {
  const kind = movesOfMany(hour, usual, going);
  if (hour.factor === null) return kind;
  return kind === null ? 'factor-of-some' : 'factor';
}

/** The same, regardless of a factor that some SKUs have in common. */
function movesOfMany(
  { answers, implausible, implausibleSkus, onePrice, lost, untold, moves, move }: HourOfMoves,
  usual: number | null,
  going: boolean,
): MassMoveKind | null {
  const share = going ? 0.5 : 1;
  const isMany = (odd: number, all: number, { part, few }: typeof IMPLAUSIBLE | typeof LOST) =>
    odd > share * part * all && (all >= ENOUGH_SKUS || odd >= share * few);
  if (isMany(implausible, answers, IMPLAUSIBLE) && (!going || implausibleSkus >= GOING_SKUS)) {
    return onePrice >= Math.max(ONE_PRICE.skus, ONE_PRICE.part * implausible) ? 'one-price' : 'implausible';
  }
  if (isMany(lost, answers, LOST) || isMany(untold.lost, untold.answers, LOST)) return 'lost';
  const far = usual === null ? UNKNOWN_FAR : TIMES_USUAL * Math.max(MIN_USUAL, usual);
  const isFar = moves >= (going ? SOME_SKUS : ENOUGH_SKUS) && (move ?? 0) > (going ? far / 2 : far);
  return isFar ? 'far' : null;
}

/** How a mass move begins, or what it turns into. */
export interface FoundMassMove {
  readonly kind: MassMoveKind;
  readonly factor: number | null;
}

/**
 * Returns the mass move that begins, or that the known one turns into; null if neither. While each move is doubted, a
 * factor that some SKUs share counts as `factor`. While only some SKUs are doubted, fewer than ENOUGH_SKUS answers can
 * change only their factor, because the first answers of a daemon after its start may all be of such SKUs. Pure.
 */
export function turnOf(
  kind: MassMoveKind | null,
  { factor, answers }: Pick<HourOfMoves, 'factor' | 'answers'>,
  known: Pick<KnownMassMove, 'kind' | 'factor'>,
): FoundMassMove | null {
  const isOfSome = known.kind === 'factor-of-some';
  const isOfAll = known.kind !== null && !isOfSome;
  const ofSome: MassMoveKind | null = factor === null ? null : isOfAll ? 'factor' : 'factor-of-some';
  const found = kind === 'factor-of-some' || (isOfSome && answers < ENOUGH_SKUS) ? ofSome : kind;
  if (found === null) return null;
  if (isOfSome && !isFault(found)) return { kind: 'factor', factor: known.factor };
  const turned: FoundMassMove = {
    kind: found,
    factor: found === 'factor' || found === 'factor-of-some' ? factor : null,
  };
  return known.kind === null || isAnotherFault(turned, known) ? turned : null;
}
