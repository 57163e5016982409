import {
  type HeldDoubt,
  isAccepted,
  isMoved,
  type JudgedAnswer,
  judgePrices,
  type Judgement,
} from './doubts.ts';
import { apartMinutes, isEachDoubted, type KnownMassMove } from './mass-move.ts';
import {
  factorOf,
  hasJumped,
  isLoss,
  moveOf,
  type Oddity,
  oddityOf,
  type SizePrices,
} from './plausibility.ts';

/* An answer's SKUs, each judged by itself (doubts.ts), and what each shows about the market (hour-of-moves.ts). */

/** What one judged SKU shows about the market as a whole. Only SKUs with prices in the counted hour have a sample. */
export interface MarketSample {
  readonly odd: boolean;
  /** Whether it is odd because all sizes have one price. */
  readonly onePrice: boolean;
  /** Whether it no longer has a price. */
  readonly lost: boolean;
  /** Whether no delta would report that loss. */
  readonly untold: boolean;
  /** How far it has moved from the believed prices, up or down, as a natural logarithm; null if no size is in both. */
  readonly factor: number | null;
  /** How far its prices have moved, as a median of natural logarithms; null if none has. */
  readonly move: number | null;
}

/** What an answer says about one SKU's prices. */
export interface SkuJudgement {
  readonly sku: string;
  readonly judgement: Judgement;
  /** In how many milliseconds a second answer counts; null if none is awaited. */
  readonly confirmInMs: number | null;
  /** Null if nothing was held before. */
  readonly sample: MarketSample | null;
}

/** Judges all SKUs of an answer. Pure. */
export function judgeAll(
  answers: readonly JudgedAnswer[],
  heldOf: (sku: string) => HeldDoubt | null,
  massMove: KnownMassMove,
): SkuJudgement[] {
  return answers.map((answer) => {
    const held = heldOf(answer.sku);
    const judgement = judgePrices(answer, held, massMove);
    return {
      sku: answer.sku,
      judgement,
      confirmInMs: confirmIn(answer, judgement, held, apartMinutes(massMove)),
      sample: sampleOf(answer, judgement, held, massMove),
    };
  });
}

/** A SKU that has moved, or has its first prices, and what was held before. */
export interface UndoubtedMove {
  readonly sku: string;
  readonly believed: SizePrices;
}

/**
 * Returns the moves of an answer that are undoubted only because no mass move was known; they are doubted if one has
 * begun in the meantime. This includes first prices, if nearly all prices move by a common factor. Pure.
 */
export function undoubtedMoves(
  answers: readonly JudgedAnswer[],
  judged: readonly SkuJudgement[],
  massMove: KnownMassMove,
): UndoubtedMove[] {
  if (isEachDoubted(massMove)) return [];
  const begun: KnownMassMove = { ...massMove, since: new Date(0), kind: 'factor', factor: 0 };
  const undoubted = new Set(judged.flatMap(({ sku, judgement }) => (judgement.kind === 'none' ? [sku] : [])));
  // Nothing else is odd about them: `begun` only says that a mass move has begun.
  return answers.flatMap(({ sku, before, now }) =>
    undoubted.has(sku) && isMoved(before, now, begun) ? [{ sku, believed: before }] : [],
  );
}

function sampleOf(
  { before, now, returned = new Map(), losses, isReturn = false, isGone = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
  massMove: KnownMassMove,
): MarketSample | null {
  const { accepted, usual } = massMove;
  const back = judgement.kind === 'ends' && judgement.back;
  // A loss counts once, with its first answer, and only as `lost`: missing prices are not implausible numbers.
  const isCounted = held !== null && isLoss(held.oddity) && now.size === 0;
  // Leftovers of a fault that is over begin no new one, and SKUs of a fault of some count once, not with each answer.
  const isLeft = !isEachDoubted(massMove) && judgement.kind === 'stays' && judgement.isFault === true;
  // A size that is offered again may have any price, too; the other sizes show whether the SKU is odd.
  const others = () => new Map([...now].filter(([size]) => !returned.has(size)));
  const isReturned = !isGone && hasJumped(returned, now) && oddityOf(before, others(), usual ?? 0) === null;
  if (before.size === 0 || back || isReturn || isCounted || isLeft || isReturned) return null;
  const untold = losses === 'unusual';
  // A SKU whose numbers keep changing was counted when its doubt first began.
  const isNew = judgement.kind === 'begins' && judgement.isAgain !== true;
  const begins = isNew && judgement.doubt === 'implausible' && !isLoss(judgement.oddity);
  // While a fault goes on in masses, each answer that has it counts; but first prices show nothing.
  const isFaulty = held !== null && held.believed.size > 0;
  const stays = isFaulty && judgement.kind === 'stays' && judgement.isFault === true;
  if (isAccepted(before, now, accepted))
    return { odd: false, onePrice: false, lost: false, untold, factor: null, move: null };
  return {
    odd: begins || stays,
    onePrice: (begins && isOnePrice(judgement.oddity)) || (stays && isOnePrice(held.oddity)),
    lost: now.size === 0,
    untold,
    factor: factorOf(held?.believed ?? before, now),
    move: moveOf(before, now),
  };
}

const isOnePrice = (oddity: Oddity | null) => oddity === 'one-price' || oddity === 'one-price-of-many';

/** Returns the milliseconds until a second answer is requested, and counts; null if none is awaited. */
function confirmIn(
  { before, now, isGone = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
  apart: number,
): number | null {
  if (judgement.kind === 'begins') return apart * 60_000;
  // A SKU that stays doubted because of a fault of all SKUs is refreshed on its ordinary schedule.
  if (judgement.kind !== 'stays' || judgement.isFault === true) return null;
  if (now.size === 0 && !isLoss(held?.oddity ?? null))
    return before.size === 0 || isGone ? null : apart * 60_000;
  return Math.max(0, apart - (held?.minutes ?? 0)) * 60_000;
}
