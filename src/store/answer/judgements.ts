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

/*
 * An answer's SKUs, judged each by itself (doubts.ts), and what each shows of the market as a whole (hour-of-moves.ts).
 */

/**
 * What one judged SKU shows of the market as a whole. Only SKUs that had prices within the hour over which moves are
 * counted have a sample.
 */
export interface MarketSample {
  readonly odd: boolean;
  /** It is, by one price for all sizes. */
  readonly onePrice: boolean;
  /** It has no price any longer. */
  readonly lost: boolean;
  /** Nobody reports that. */
  readonly untold: boolean;
  /** By how much it has moved from what was believed, up or down; null where no size is in both. */
  readonly factor: number | null;
  /** By how much its prices have moved, as a median of natural logarithms; null: none has. */
  readonly move: number | null;
}

/** What an answer says of one SKU's prices. */
export interface SkuJudgement {
  readonly sku: string;
  readonly judgement: Judgement;
  /** In how many milliseconds a second answer counts; null: none is waited for. */
  readonly confirmInMs: number | null;
  /** Null where nothing was held before. */
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

/** A SKU that has moved, or has its first prices, and what was held of it before. */
export interface UndoubtedMove {
  readonly sku: string;
  readonly believed: SizePrices;
}

/**
 * Moves of an answer that are not doubted only because no mass move was known; if one has begun meanwhile, they are. So
 * are first prices, if nearly all prices move by a common factor. Pure.
 */
export function undoubtedMoves(
  answers: readonly JudgedAnswer[],
  judged: readonly SkuJudgement[],
  massMove: KnownMassMove,
): UndoubtedMove[] {
  if (isEachDoubted(massMove)) return [];
  const begun: KnownMassMove = { ...massMove, since: new Date(0), kind: 'factor', factor: 0 };
  const undoubted = new Set(judged.flatMap(({ sku, judgement }) => (judgement.kind === 'none' ? [sku] : [])));
  // Nothing else speaks against them: a mass move is all that has begun.
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
  // A loss counts once, with its first answer, and only as `lost`: missing prices are no implausible number.
  const isCounted = held !== null && isLoss(held.oddity) && now.size === 0;
  // Remains of a fault that is over begin no new one, and SKUs of a fault of some count once, not with each answer.
  const isLeft = !isEachDoubted(massMove) && judgement.kind === 'stays' && judgement.isFault === true;
  // A single size that is offered again may cost what it likes, too; the others show what they do.
  const others = () => new Map([...now].filter(([size]) => !returned.has(size)));
  const isReturned = !isGone && hasJumped(returned, now) && oddityOf(before, others(), usual ?? 0) === null;
  if (before.size === 0 || back || isReturn || isCounted || isLeft || isReturned) return null;
  const untold = losses === 'unusual';
  // A SKU whose numbers go on changing was counted when its doubt first began.
  const isNew = judgement.kind === 'begins' && judgement.isAgain !== true;
  const begins = isNew && judgement.doubt === 'implausible' && !isLoss(judgement.oddity);
  // As long as answers have a fault that goes on in masses, each of them shows it; but first prices show nothing.
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

/** Milliseconds until a second answer is requested, and counts; null: none is awaited. */
function confirmIn(
  { before, now, isGone = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
  apart: number,
): number | null {
  if (judgement.kind === 'begins') return apart * 60_000;
  // A SKU that stays doubted for the fault of all is refreshed on its ordinary schedule.
  if (judgement.kind !== 'stays' || judgement.isFault === true) return null;
  if (now.size === 0 && !isLoss(held?.oddity ?? null))
    return before.size === 0 || isGone ? null : apart * 60_000;
  return Math.max(0, apart - (held?.minutes ?? 0)) * 60_000;
}
