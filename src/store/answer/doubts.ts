import type { PriceDifference } from './differences.ts';
import {
  apartMinutes,
  HOUR_MINUTES,
  isEachDoubted,
  type KnownMassMove,
  OF_FACTOR,
  OF_FACTOR_SOME,
} from './mass-move.ts';
import {
  factorOf,
  type FaultOfMany,
  hasJumped,
  hasMovedApart,
  hasOnePrice,
  isFar,
  isLoss,
  isOfMany,
  isOfSomeSizes,
  levelOf,
  type Losses,
  lossOf,
  type Oddity,
  oddityOf,
  samePrices,
  saysAnother,
  saysOnePrice,
  type SizePrices,
} from './plausibility.ts';
import type { SkuResult } from './types.ts';

/** Why new prices are not acted on before a second answer has repeated them. */
export type Doubt = 'implausible' | 'mass-move';

/** A SKU's doubt as the ledger holds it. */
export interface HeldDoubt {
  readonly doubt: Doubt;
  readonly oddity: Oddity | null;
  /** Minutes from the doubted answer to this one; negative if a clock that was ahead dated the doubted one. */
  readonly minutes: number;
  /** What was held before the doubted answer. */
  readonly believed: SizePrices;
}

/** What an answer means for the doubt of its SKU: the doubt begins (anew), stays as it is, or ends. */
export type Judgement =
  | {
      readonly kind: 'begins';
      readonly doubt: Doubt;
      readonly oddity: Oddity | null;
      readonly believed: SizePrices;
      /** Whether the SKU was doubted already, and now has other numbers than before. */
      readonly isAgain?: boolean;
    }
  /** `isFault`: many SKUs move as no market does, so a second answer that repeats it is no evidence. */
  | { readonly kind: 'stays'; readonly isFault?: boolean }
  /**
   * `back`: the prices are as before the doubted answer; otherwise a second answer has repeated the doubted ones.
   * `isRepaired`: the doubt was about a move that no market makes, and the answer no longer shows it.
   */
  | { readonly kind: 'ends'; readonly back: boolean; readonly isRepaired?: boolean }
  | { readonly kind: 'none' };

/** What one answer says of a SKU, and what was held before. */
export interface JudgedAnswer {
  readonly sku: string;
  readonly before: SizePrices;
  readonly now: SizePrices;
  /**
   * Sizes of `now` without a price in the mirror, each with its former price furthest from the present one; absent:
   * none.
   */
  readonly returned?: SizePrices;
  /** Those of them whose former prices are close to each other, so that they may be believed; absent: all. */
  readonly settled?: SizePrices;
  /** Whether name and model have both changed. */
  readonly renamed: boolean;
  /** Whether `before` vanished more than HOUR_MINUTES ago: a SKU that is offered again may have any price. */
  readonly isReturn?: boolean;
  /** Whether `before` vanished with an earlier answer. */
  readonly isGone?: boolean;
  /** Which losses are doubted; absent: none. */
  readonly losses?: Losses | undefined;
  /**
   * Whether the first record of a SKU has no size, or no price for any, although the manifest has counted some
   * (partner rules 2.6). That is possible if nobody offers any of them (partner rules 2.4).
   */
  readonly isHollow?: boolean;
}

/**
 * Judges one SKU of an answer. During a mass move every change of price is doubted. If the mass move is a fault (moves
 * by one factor, or to one price for all sizes), a SKU that has moved like that stays doubted however many answers
 * repeat it, even after other SKUs have recovered. If all SKUs move by a factor, first prices are doubted, too. Pure.
 */
export function judgePrices(
  answer: Omit<JudgedAnswer, 'sku'>,
  held: HeldDoubt | null,
  massMove: KnownMassMove,
): Judgement {
  const { before, now, returned = NO_PRICES, settled = returned } = answer;
  const { losses, isGone = false, isHollow = false } = answer;
  const loss = isHollow ? 'no-prices' : losses === undefined || isGone ? null : lossOf(before, now, losses);
  if (held !== null && isLoss(held.oddity) && now.size === 0) return secondAnswer(held, answer, massMove);
  // Without prices there is nothing to act on. The doubt stays in case the doubted prices come back.
  if (held !== null && now.size === 0) return { kind: 'stays' };
  const oddity = oddOf(answer, massMove);
  if (held === null) {
    const odd = oddity ?? loss;
    const believed = isLoss(odd) ? before : new Map([...before, ...settled]);
    if (odd !== null) return begun(odd, believed, now, massMove);
    if (isMoved(before, now, massMove))
      return { kind: 'begins', doubt: 'mass-move', oddity: null, believed: before };
    return { kind: 'none' };
  }
  const isRepaired = isOfMany(held.oddity) && { isRepaired: true };
  if (isOfMany(held.oddity) && isOfFault(held, answer, massMove)) return { kind: 'stays', isFault: true };
  if (isBack(held, now, massMove.usual ?? 0)) return { kind: 'ends', back: true, ...isRepaired };
  if (isOfFault(held, answer, massMove)) return { kind: 'stays', isFault: true };
  const believed = new Map([...settled, ...held.believed]);
  if (oddity !== null) return begun(isOfMany(held.oddity) ? held.oddity : oddity, believed, now, massMove);
  const judgement = secondAnswer(held, answer, massMove);
  return judgement.kind === 'ends' ? { ...judgement, ...isRepaired } : judgement;
}

function begun(oddity: Oddity, believed: SizePrices, now: SizePrices, massMove: KnownMassMove): Judgement {
  const ofMany = isLoss(oddity) ? null : faultOf(believed, now, massMove);
  return { kind: 'begins', doubt: 'implausible', oddity: ofMany ?? oddity, believed };
}

/** Returns the fault of the present mass move that the move from `believed` to `now` shows; null if none. Pure. */
export function faultOf(
  believed: SizePrices,
  now: SizePrices,
  { kind, factor }: Pick<KnownMassMove, 'kind' | 'factor'>,
): FaultOfMany | null {
  if (kind === 'one-price') return hasOnePrice(believed, now) ? 'one-price-of-many' : null;
  if (factor === null) return null;
  const isNear = (moved: number | null, by: number) => moved !== null && Math.abs(moved - factor) <= by;
  const ofFar = isOfSomeSizes(believed, now) ? OF_FACTOR_SOME : OF_FACTOR;
  const isOfUnit = isNear(levelOf(believed, now), OF_FACTOR) || isNear(factorOf(believed, now), ofFar);
  return isOfUnit ? 'unit-of-many' : null;
}

/** Returns what is odd about an answer. A move by the factor that the seller has accepted is not odd. */
function oddOf(
  answer: Omit<JudgedAnswer, 'sku'>,
  { usual, accepted }: Pick<KnownMassMove, 'usual' | 'accepted'>,
): Oddity | null {
  const { now, returned = NO_PRICES } = answer;
  const oddity = hasJumped(returned, now) ? 'jump' : oddityOf(answer.before, now, usual ?? 0);
  const before = new Map([...answer.before, ...returned]);
  if (oddity !== null) return isAccepted(before, now, accepted) ? null : oddity;
  return isAnotherProduct(answer) ? 'another-product' : null;
}

/**
 * Whether an answer has moved by the factor that the seller has accepted as the market's, and no size by another one.
 */
export const isAccepted = (before: SizePrices, now: SizePrices, accepted: number | null): boolean =>
  accepted !== null &&
  Math.abs((factorOf(before, now) ?? 0) - accepted) <= OF_FACTOR &&
  !hasMovedApart(before, now, accepted);

/** Whether there is a move, or a first price, that is doubted only because many SKUs move. Pure. */
export function isMoved(before: SizePrices, now: SizePrices, massMove: KnownMassMove): boolean {
  if (now.size === 0 || !isEachDoubted(massMove) || isAccepted(before, now, massMove.accepted)) return false;
  return before.size > 0 ? !samePrices(before, now) : massMove.factor !== null;
}

/**
 * Whether the doubted prices show the partner's fault, or cannot be told apart from it. A SKU marked with the fault
 * has it as long as its prices are far from `believed`, or still a single number, even if other SKUs have recovered;
 * but not if the seller has accepted the factor by which it moved.
 */
function isOfFault(
  { believed, oddity }: HeldDoubt,
  { before, now }: Pick<JudgedAnswer, 'before' | 'now'>,
  massMove: KnownMassMove,
): boolean {
  if (isLoss(oddity)) return false;
  if (isOfMany(oddity))
    return saysFault(oddity, { believed, before, now }) && !isAccepted(believed, now, massMove.accepted);
  if (massMove.factor !== null && believed.size === 0) return isEachDoubted(massMove);
  return faultOf(believed, now, massMove) !== null;
}

/** Whether a SKU that had such a fault still has it, or another one that occurs in no market. Pure. */
export function saysFault(
  oddity: FaultOfMany,
  { believed, before, now }: Readonly<Record<'believed' | 'before' | 'now', SizePrices>>,
): boolean {
  if (isFar(believed, now)) return true;
  return oddity === 'one-price-of-many' && (hasOnePrice(believed, now) || saysOnePrice(before, now));
}

/**
 * Judges an answer that follows a doubted one and is not odd itself. It ends the doubt if it says about the same, long
 * enough after the doubted one. Other numbers begin the doubt anew, unless the SKU was doubted only because many
 * moved. A loss that the delta has reported since needs no second answer.
 */
function secondAnswer(
  held: HeldDoubt,
  { before, now, losses }: Omit<JudgedAnswer, 'sku'>,
  massMove: KnownMassMove,
): Judgement {
  if (isLoss(held.oddity) && losses === 'told') return { kind: 'ends', back: false };
  const { oddity, believed } = held;
  const isOfNumbers = oddity !== null && !isLoss(oddity);
  const isAnother = isOfNumbers && saysAnother({ doubted: before, believed }, now, massMove.usual ?? 0);
  if (held.minutes < 0 || isAnother) return { kind: 'begins', ...held, isAgain: true };
  return held.minutes >= apartMinutes(massMove) ? { kind: 'ends', back: false } : { kind: 'stays' };
}

/**
 * Whether `now` is as before the doubt. If the doubted numbers were not odd in themselves, this requires equal prices.
 */
function isBack({ oddity, believed }: HeldDoubt, now: SizePrices, usual: number): boolean {
  if (oddity === null || oddity === 'another-product') return samePrices(believed, now);
  if (isLoss(oddity) && lossOf(believed, now, 'all') !== null) return false;
  return oddityOf(believed, now, usual) === null;
}

const isAnotherProduct = ({ before, now, renamed }: Omit<JudgedAnswer, 'sku'>): boolean =>
  renamed && before.size > 0 && !samePrices(before, now);

const NO_PRICES: SizePrices = new Map();

export interface KnownSku {
  /** Whether its prices are this account's. */
  readonly isOurs: boolean;
  /** Its last prices if the mirror no longer holds any, and how long before the request they vanished. */
  readonly vanished: SizePrices;
  readonly vanishedMinutes: number;
  /** Which losses of its prices are doubted. */
  readonly losses?: Losses | undefined;
  /** How many sizes a manifest has counted for a SKU without any record so far; null: none, or there is a record. */
  readonly sizesToCome?: number | null;
}

/**
 * Combines each SKU's answered prices with those held before: the mirror's prices, as reconstructed from the
 * differences, or else those that vanished last; no prices if the held ones are another account's. Pure.
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
      const isUnpriced = result.kind === 'record' && now.size === 0;
      const returned = new Map<string, number>();
      return [
        result.sku,
        { now, before: new Map(now), returned, settled: new Map<string, number>(), isUnpriced },
      ];
    }),
  );
  for (const { sku, size, oldPrice, newPrice, lastPrices } of differences) {
    const { before, returned, settled } = records.get(sku) ?? {};
    if (oldPrice === null) before?.delete(size);
    else before?.set(size, oldPrice);
    if (lastPrices === undefined || newPrice === null) continue;
    const farthest = farthestOf(lastPrices, newPrice);
    returned?.set(size, farthest);
    if (!hasJumped(new Map([[size, Math.min(...lastPrices)]]), new Map([[size, Math.max(...lastPrices)]])))
      settled?.set(size, farthest);
  }
  return [...records].map(([sku, { before, now, returned, settled, isUnpriced }]) => {
    const { isOurs, vanished, vanishedMinutes, losses, sizesToCome } = known(sku);
    const isGone = before.size === 0 && vanished.size > 0;
    const held = isGone ? vanished : before;
    const isReturn = isGone && vanishedMinutes > HOUR_MINUTES;
    return {
      sku,
      before: isOurs ? held : new Map(),
      now,
      ...(isOurs && { returned, settled }),
      renamed: renamed.has(sku),
      isReturn,
      isGone,
      losses,
      isHollow: isUnpriced && (sizesToCome ?? 0) > 0,
    };
  });
}

/** Returns the price furthest from `from`. The latest one will not do, because it may come from a wrong answer. */
const farthestOf = (prices: readonly number[], from: number): number =>
  prices.toSorted((a, b) => Math.abs(Math.log(a / from)) - Math.abs(Math.log(b / from))).at(-1) ?? from;
