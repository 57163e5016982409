import type { PriceDifference } from './differences.ts';
import { isLoss, type Losses, lossOf, type Oddity, oddityOf, type SizePrices } from './plausibility.ts';
import type { SkuResult } from './types.ts';

/** Why prices that the partner says are not acted on before a second answer has said them. */
export type Doubt = 'implausible' | 'mass-move';

/** A second answer counts only this long after the first: until then it may come from the same cache. */
export const APART_MINUTES = 5;

/** Mass moves are counted over this time. */
export const HOUR_MINUTES = 60;

/**
 * What shows moves in masses: implausible answers, of those nearly all by one factor, or most with one price for all
 * sizes; SKUs that have lost all their prices; moves that go far beyond what is usual.
 */
export type MassMoveKind = 'implausible' | 'factor' | 'one-price' | 'lost' | 'far';

/**
 * What is known of moves in masses when an answer is judged: since when they go on, and how far prices usually move;
 * null: they do not, nobody knows. Factors are natural logarithms: the one that nearly all of them move by at present,
 * and the one that the seller has taken for the market's.
 */
export interface KnownMassMove {
  readonly since: Date | null;
  readonly kind: MassMoveKind | null;
  readonly usual: number | null;
  readonly factor: number | null;
  readonly accepted: number | null;
}

/**
 * Prices go on to move in another unit: so far (natural logarithm) from the factor, they are still in it. Less far than
 * the least odd move from none at all.
 */
const OF_FACTOR = 0.3;

/** A doubt that the ledger holds of a SKU. */
export interface HeldDoubt {
  readonly doubt: Doubt;
  readonly oddity: Oddity | null;
  /** Minutes from the answer that is doubted to this one; negative: a clock that was ahead has dated it. */
  readonly minutes: number;
  /** What was held before it. */
  readonly believed: SizePrices;
}

/** What follows from an answer for the doubt of its SKU: it begins (anew), stays as it is, or ends. */
export type Judgement =
  | {
      readonly kind: 'begins';
      readonly doubt: Doubt;
      readonly oddity: Oddity | null;
      readonly believed: SizePrices;
    }
  /** `isFault`: what no market does goes on in masses, so a second answer that says the same is no evidence. */
  | { readonly kind: 'stays'; readonly isFault?: boolean }
  /** `back`: the prices are as before the doubted answer. Else a second answer has said what is doubted. */
  | { readonly kind: 'ends'; readonly back: boolean }
  | { readonly kind: 'none' };

/** What one answer says of a SKU, beside what was held. */
export interface JudgedAnswer {
  readonly sku: string;
  readonly before: SizePrices;
  readonly now: SizePrices;
  /** Whether name and model have both changed. */
  readonly renamed: boolean;
  /**
   * `before` vanished longer ago than moves of the market are counted for: what is offered again may cost what it
   * likes.
   */
  readonly isReturn?: boolean;
  /** `before` has vanished with an earlier answer. */
  readonly isGone?: boolean;
  /** Which losses are doubted; absent: none. */
  readonly losses?: Losses | undefined;
}

/**
 * Judges one SKU of an answer. While prices move implausibly in masses, each move is doubted; while they do so as no
 * market does, by a common factor or to one price for all sizes, what has moved like that stays doubted whatever
 * further answers say, and by a factor first prices are doubted, too. Pure.
 */
export function judgePrices(
  answer: Omit<JudgedAnswer, 'sku'>,
  held: HeldDoubt | null,
  massMove: KnownMassMove,
): Judgement {
  const { before, now, losses, isGone = false } = answer;
  const loss = losses === undefined || isGone ? null : lossOf(before, now, losses);
  if (held !== null && isLoss(held.oddity) && now.size === 0) return secondAnswer(held, answer);
  // Without prices there is nothing to act on; what was doubted is, should it come back.
  if (held !== null && now.size === 0) return { kind: 'stays' };
  const oddity = oddOf(answer, massMove);
  if (held === null) {
    const odd = oddity ?? loss;
    if (odd !== null) return { kind: 'begins', doubt: 'implausible', oddity: odd, believed: before };
    if (now.size > 0 && isMoved(before, now, massMove))
      return { kind: 'begins', doubt: 'mass-move', oddity: null, believed: before };
    return { kind: 'none' };
  }
  if (isBack(held, now, massMove.usual ?? 0)) return { kind: 'ends', back: true };
  if (isOfFault(held, now, massMove)) return { kind: 'stays', isFault: true };
  if (oddity !== null) return { kind: 'begins', doubt: 'implausible', oddity, believed: held.believed };
  return secondAnswer(held, answer);
}

/** What is odd about an answer; a move by the factor that the seller has accepted is not. */
function oddOf(
  answer: Omit<JudgedAnswer, 'sku'>,
  { usual, accepted }: Pick<KnownMassMove, 'usual' | 'accepted'>,
): Oddity | null {
  const { before, now } = answer;
  const oddity = oddityOf(before, now, usual ?? 0);
  if (oddity !== null) return isAccepted(before, now, accepted) ? null : oddity;
  return isAnotherProduct(answer) ? 'another-product' : null;
}

const isAccepted = (before: SizePrices, now: SizePrices, accepted: number | null): boolean =>
  accepted !== null && Math.abs((factorOf(before, now) ?? 0) - accepted) <= OF_FACTOR;

/** Whether there is a move that is doubted only because many move. */
function isMoved(before: SizePrices, now: SizePrices, { since, factor, accepted }: KnownMassMove): boolean {
  if (since === null || isAccepted(before, now, accepted)) return false;
  return before.size > 0 ? !samePrices(before, now) : factor !== null;
}

/** Whether what is doubted has moved as nearly all do in masses, and no market does, or cannot be told from it. */
function isOfFault(
  { believed, oddity }: HeldDoubt,
  now: SizePrices,
  { kind, factor }: KnownMassMove,
): boolean {
  if (kind === 'one-price') return oddityOf(believed, now) === 'one-price';
  if (factor === null || isLoss(oddity)) return false;
  const moved = factorOf(believed, now);
  return moved === null ? believed.size === 0 : Math.abs(moved - factor) <= OF_FACTOR;
}

/** By how much the sizes that are in both have moved: the median of natural logarithms; null where none is. */
function factorOf(before: SizePrices, now: SizePrices): number | null {
  const logs = [...now].flatMap(([size, price]) => {
    const old = before.get(size);
    return old === undefined ? [] : [Math.log(price / old)];
  });
  return logs.toSorted((a, b) => a - b)[Math.floor(logs.length / 2)] ?? null;
}

/** An answer that says what is doubted once more. A loss that a report has told of meanwhile needs none. */
function secondAnswer(held: HeldDoubt, { losses }: Pick<JudgedAnswer, 'losses'>): Judgement {
  if (isLoss(held.oddity) && losses === 'told') return { kind: 'ends', back: false };
  if (held.minutes < 0) return { kind: 'begins', ...held };
  return held.minutes >= APART_MINUTES ? { kind: 'ends', back: false } : { kind: 'stays' };
}

/** Where nothing is odd about the numbers themselves, nothing less than those of before says that they were none. */
function isBack({ oddity, believed }: HeldDoubt, now: SizePrices, usual: number): boolean {
  if (oddity === null || oddity === 'another-product') return samePrices(believed, now);
  if (isLoss(oddity) && lossOf(believed, now, 'all') !== null) return false;
  return oddityOf(believed, now, usual) === null;
}

const isAnotherProduct = ({ before, now, renamed }: Omit<JudgedAnswer, 'sku'>): boolean =>
  renamed && before.size > 0 && !samePrices(before, now);

function samePrices(one: SizePrices, other: SizePrices): boolean {
  return one.size === other.size && [...one].every(([size, price]) => other.get(size) === price);
}

/** What is known of a SKU before an answer. */
export interface KnownSku {
  /** Whether its prices are this account's. */
  readonly isOurs: boolean;
  /** Its last prices, where the mirror holds none any longer, and how long before the request they vanished. */
  readonly vanished: SizePrices;
  readonly vanishedMinutes: number;
  /** Which losses of its prices are doubted. */
  readonly losses?: Losses | undefined;
}

/**
 * What is answered of each SKU beside what was held: the mirror's prices, as the differences tell them, or else those
 * that vanished last; none where they are another account's. Pure.
 */
export function judgedAnswers(
  answered: readonly SkuResult[],
  differences: readonly PriceDifference[],
  renamed: ReadonlySet<string>,
  known: (sku: string) => KnownSku,
): JudgedAnswer[] {
  const records = new Map(
    answered.map((result) => {
      const prices = result.kind === 'record' ? result.prices : [];
      const now = new Map(
        prices.flatMap(({ size, price }) => (price === null ? [] : [[size, price] as const])),
      );
      return [result.sku, { now, before: new Map(now) }];
    }),
  );
  for (const { sku, size, oldPrice } of differences) {
    const before = records.get(sku)?.before;
    if (oldPrice === null) before?.delete(size);
    else before?.set(size, oldPrice);
  }
  return [...records].map(([sku, { before, now }]) => {
    const { isOurs, vanished, vanishedMinutes, losses } = known(sku);
    const isGone = before.size === 0 && vanished.size > 0;
    const held = isGone ? vanished : before;
    const isReturn = isGone && vanishedMinutes > HOUR_MINUTES;
    return {
      sku,
      before: isOurs ? held : new Map(),
      now,
      renamed: renamed.has(sku),
      isReturn,
      isGone,
      losses,
    };
  });
}

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
  readonly againInMs: number | null;
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
      againInMs: againIn(answer, judgement, held),
      sample: sampleOf(answer, judgement, held, massMove.accepted),
    };
  });
}

function sampleOf(
  { before, now, losses, isReturn = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
  accepted: number | null,
): MarketSample | null {
  const back = judgement.kind === 'ends' && judgement.back;
  // A loss is counted once, and with those of others: by itself it is no number that is hardly a price.
  const isCounted = held !== null && isLoss(held.oddity) && now.size === 0;
  if (before.size === 0 || back || isReturn || isCounted) return null;
  const untold = losses === 'unusual';
  const begins =
    judgement.kind === 'begins' && judgement.doubt === 'implausible' && !isLoss(judgement.oddity);
  // As long as answers have a fault that goes on in masses, each of them shows it; but first prices show nothing.
  const stays = judgement.kind === 'stays' && judgement.isFault === true && held?.believed.size !== 0;
  if (isAccepted(before, now, accepted))
    return { odd: false, onePrice: false, lost: false, untold, factor: null, move: null };
  return {
    odd: begins || stays,
    onePrice: (begins ? judgement.oddity : stays && held?.oddity) === 'one-price',
    lost: now.size === 0,
    untold,
    factor: factorOf(held?.believed ?? before, now),
    move: moveOf(before, now),
  };
}

/** In how many milliseconds a second answer counts, which is asked for then; null: none is waited for. */
function againIn(
  { before, now, isGone = false }: JudgedAnswer,
  judgement: Judgement,
  held: HeldDoubt | null,
): number | null {
  if (judgement.kind === 'begins') return APART_MINUTES * 60_000;
  // What stays as faulty as all are is refreshed as if nothing were.
  if (judgement.kind !== 'stays' || judgement.isFault === true) return null;
  if (now.size === 0 && !isLoss(held?.oddity ?? null))
    return before.size === 0 || isGone ? null : APART_MINUTES * 60_000;
  return Math.max(0, APART_MINUTES - (held?.minutes ?? 0)) * 60_000;
}

/** The median of how far the sizes that moved have moved. */
function moveOf(before: SizePrices, now: SizePrices): number | null {
  const logs = [...now].flatMap(([size, price]) => {
    const old = before.get(size);
    return old === undefined || old === price ? [] : [Math.abs(Math.log(price / old))];
  });
  return logs.toSorted((a, b) => a - b)[Math.floor(logs.length / 2)] ?? null;
}
