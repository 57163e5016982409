import { type HeldDoubt, isAccepted, type JudgedAnswer, judgePrices, type Judgement } from './doubts.ts';
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
 * What an answer shows of the market as a whole: judged SKUs that had prices before, within the hour that moves are
 * counted for.
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
 * What is not doubted only because nothing was known of moves in masses: it is, where they have begun meanwhile. First
 * prices are, where nearly all move by a common factor. Pure.
 */
export function undoubtedMoves(
  answers: readonly JudgedAnswer[],
  judged: readonly SkuJudgement[],
  massMove: KnownMassMove,
): UndoubtedMove[] {
  if (isEachDoubted(massMove)) return [];
  const begun: KnownMassMove = { ...massMove, since: new Date(0), kind: 'factor', factor: 0 };
  const undoubted = new Set(judged.flatMap(({ sku, judgement }) => (judgement.kind === 'none' ? [sku] : [])));
  return answers.flatMap((answer) => {
    if (!undoubted.has(answer.sku)) return [];
    const judgement = judgePrices(answer, null, begun);
    return judgement.kind === 'begins' ? [{ sku: answer.sku, believed: judgement.believed }] : [];
  });
}

function sampleOf(
  { before, now, returned = new Map(), losses, isReturn = false, isGone = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
  massMove: KnownMassMove,
): MarketSample | null {
  const { accepted, usual } = massMove;
  const back = judgement.kind === 'ends' && judgement.back;
  // A loss is counted once, and with those of others: by itself it is no number that is hardly a price.
  const isCounted = held !== null && isLoss(held.oddity) && now.size === 0;
  // What is left of a fault that is over is none that begins, nor is one of some SKUs more with each of their answers.
  const isLeft = !isEachDoubted(massMove) && judgement.kind === 'stays' && judgement.isFault === true;
  // A single size that is offered again may cost what it likes, too; the others show what they do.
  const others = new Map([...now].filter(([size]) => !returned.has(size)));
  const isReturned = !isGone && hasJumped(returned, now) && oddityOf(before, others, usual ?? 0) === null;
  if (before.size === 0 || back || isReturn || isCounted || isLeft || isReturned) return null;
  const untold = losses === 'unusual';
  // One whose numbers go on changing has been counted when it began.
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

/** In how many milliseconds a second answer counts, which is asked for then; null: none is waited for. */
function confirmIn(
  { before, now, isGone = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
  apart: number,
): number | null {
  if (judgement.kind === 'begins') return apart * 60_000;
  // What stays as faulty as all are is refreshed as if nothing were.
  if (judgement.kind !== 'stays' || judgement.isFault === true) return null;
  if (now.size === 0 && !isLoss(held?.oddity ?? null))
    return before.size === 0 || isGone ? null : apart * 60_000;
  return Math.max(0, apart - (held?.minutes ?? 0)) * 60_000;
}
