/*
 * Recognises numbers that are not prices although the partner sends them. An answer is judged against what the mirror
 * held of the SKU before, or else by its own sizes. The mirror shows what the partner says; the judgement is whether
 * to act on it before a second answer, some time later, has said the same.
 */

/** Prices by size, in whole baht; sizes without a readable price are left out. */
export type SizePrices = ReadonlyMap<string, number>;

export type Oddity =
  /** Hardly any of its sizes was there before. */
  | 'other-sizes'
  /** One number stands for many sizes. */
  | 'one-price'
  /** A price is a multiple, or a fraction, of the previous one. */
  | 'jump'
  /** The same for the SKU's prices as a whole. */
  | 'another-level'
  /** The same prices are on other sizes. */
  | 'shuffled'
  /** Three sizes in ten have moved far from the others, as prices of another product would. */
  | 'another-profile'
  /** A price is far from those of all other sizes. */
  | 'unlike-siblings'
  /** Name and model are those of another product. */
  | 'another-product'
  /** All prices are gone, and nothing has reported it (lossOf). */
  | 'no-prices'
  /** The prices of most sizes are gone, and nothing has reported it (lossOf). */
  | 'few-sizes'
  | FaultOfMany;

/**
 * What no market does: the SKU has moved by the factor by which nearly all SKUs move, or, like most, to one price for
 * all sizes. A second answer that says the same is no evidence, whatever other SKUs do in the meantime.
 */
export type FaultOfMany = 'unit-of-many' | 'one-price-of-many';

/**
 * Which losses are worth a second answer: `all` if the delta would report each; only `unusual` ones if it would report
 * none; none if the delta has `told` of the loss.
 */
export type Losses = 'all' | 'unusual' | 'told';

/** Whether the oddity is missing prices, not a number. */
export const isLoss = (oddity: Oddity | null): boolean => oddity !== null && LOSSES.includes(oddity);
export const LOSSES: readonly Oddity[] = ['no-prices', 'few-sizes'];

/** Whether it is an oddity that many SKUs have and no market does. */
export const isOfMany = (oddity: Oddity | null): oddity is FaultOfMany =>
  (OF_MANY as readonly (Oddity | null)[]).includes(oddity);
export const OF_MANY: readonly FaultOfMany[] = ['unit-of-many', 'one-price-of-many'];

/** Factor between a price and the previous one, up or down, from which it is a `jump`. */
const JUMP = 3;
/** The same for the median over a SKU's sizes: all prices together seldom move this far between two refreshes. */
const LEVEL = 2.1;
/** A size seldom differs from the median of its product's sizes by this factor. */
const UNLIKE = 3.5;
/** Number of sizes from which there is something to compare. */
const FEW = 3;
/** Two swapped prices are at least this far apart (natural logarithm); closer ones may coincide by chance. */
const SWAPPED = 0.1;
/**
 * With at least `sizes` sizes in both answers, three in ten of them have hardly ever moved further from the median
 * move than `far` (natural logarithm), or than TIMES_USUAL times what is usual in the catalog.
 */
const PROFILES = [
  { sizes: 10, far: 0.12 },
  { sizes: 6, far: 0.15 },
] as const;
const TIMES_USUAL = 3;
/** A second answer says the same if no size is further (natural logarithm, or TIMES_USUAL) from what was doubted. */
const SAME = 0.12;

/**
 * Factors from which a size is still in another unit. `known`: from the size's own former price; a little less than
 * the least factor of another unit (FACTOR of move-counts.ts), because prices move in the meantime. `rare`: from the
 * median of the former prices if the size had none, because a rare size may cost a few times as much as the others.
 */
const STILL_FAR = { known: 3.5, rare: 8 } as const;

/** Returns the median: with two middle numbers their mean, without numbers null. Pure. */
export function median(numbers: readonly number[]): number | null {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  if (upper === undefined) return null;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/**
 * Returns what is odd about `now` after `before`; null if nothing. `usual`: how far prices of this catalog move when
 * they do (a median of natural logarithms), 0 if not known yet. Pure.
 */
export function oddityOf(before: SizePrices, now: SizePrices, usual = 0): Oddity | null {
  // The most frequent case.
  if (samePrices(before, now)) return null;
  const kept = [...now].flatMap(([size, price]) => {
    const old = before.get(size);
    return old === undefined ? [] : [{ old, price, log: Math.log(price / old) }];
  });
  const logs = kept.map(({ log }) => log);
  if (otherSizes(before, now, kept.length)) return 'other-sizes';
  if (hasOnePrice(before, now)) return 'one-price';
  if (hasJumped(before, now)) return 'jump';
  if (Math.abs(median(logs) ?? 0) >= Math.log(LEVEL)) return 'another-level';
  if (shuffled(kept)) return 'shuffled';
  if (anotherProfile(logs, usual)) return 'another-profile';
  return unlikeSiblings(before, now) ? 'unlike-siblings' : null;
}

/** Whether a size costs at least three times as much as before, or at most a third. */
export const hasJumped = (before: SizePrices, now: SizePrices): boolean =>
  [...now].some(([size, price]) => Math.abs(Math.log(price / (before.get(size) ?? price))) >= Math.log(JUMP));

/** Whether a size has jumped by another factor than about this one (natural logarithm). */
export const hasMovedApart = (before: SizePrices, now: SizePrices, factor: number): boolean =>
  [...now].some(([size, price]) => {
    const moved = Math.log(price / (before.get(size) ?? price));
    return Math.min(Math.abs(moved), Math.abs(moved - factor)) >= Math.log(JUMP);
  });

/**
 * Returns whether `now` has lost all prices of `before` (`no-prices`), or those of most sizes (`few-sizes`); null if
 * neither. If no delta reports losses (`unusual`), single sold offers are usual: then it takes all of three or more,
 * or three quarters. Pure.
 */
export function lossOf(before: SizePrices, now: SizePrices, losses: Losses): Oddity | null {
  if (losses === 'told' || before.size === 0) return null;
  const isUnusual = losses === 'unusual';
  if (now.size === 0) return isUnusual && before.size < FEW ? null : 'no-prices';
  const lost = [...before.keys()].filter((size) => !now.has(size)).length;
  const isMost = isUnusual ? lost >= 0.75 * before.size : lost > 0.5 * before.size;
  return before.size >= FEW && isMost ? 'few-sizes' : null;
}

const otherSizes = (before: SizePrices, now: SizePrices, kept: number): boolean =>
  Math.min(before.size, now.size) >= FEW && kept * 3 < Math.min(before.size, now.size);

/** Whether all sizes have one number, and there were several numbers before. */
export const hasOnePrice = (before: SizePrices, now: SizePrices): boolean =>
  now.size >= FEW && new Set(now.values()).size === 1 && new Set(before.values()).size >= FEW;

/** Whether all sizes have the very number that all had before, some of which may be sold by now. */
export const saysOnePrice = (before: SizePrices, now: SizePrices): boolean =>
  now.size > 0 && new Set([...before.values(), ...now.values()]).size === 1;

interface Kept {
  readonly old: number;
  readonly price: number;
  readonly log: number;
}

function shuffled(kept: readonly Kept[]): boolean {
  const moved = kept.filter(({ old, price }) => old !== price);
  if (moved.length < 2) return false;
  const sorted = (of: 'old' | 'price') => moved.map((each) => each[of]).toSorted((a, b) => a - b);
  const olds = sorted('old');
  return (
    sorted('price').every((price, at) => price === olds[at]) &&
    (moved.length >= FEW || moved.every(({ log }) => Math.abs(log) >= SWAPPED))
  );
}

function anotherProfile(logs: readonly number[], usual: number): boolean {
  const profile = PROFILES.find(({ sizes }) => logs.length >= sizes);
  if (profile === undefined) return false;
  const level = median(logs) ?? 0;
  const off = logs.map((log) => Math.abs(log - level)).toSorted((a, b) => a - b);
  return (off[Math.floor(off.length * 0.7)] ?? 0) >= Math.max(profile.far, TIMES_USUAL * usual);
}

/** A size without a former price is judged by the sizes of `now`, or if these are few by those of `before`. */
function unlikeSiblings(before: SizePrices, now: SizePrices): boolean {
  const level = median([...(now.size < FEW ? before : now).values()]);
  if (level === null) return false;
  return [...now].some(
    ([size, price]) => !before.has(size) && Math.abs(Math.log(price / level)) >= Math.log(UNLIKE),
  );
}

export function samePrices(one: SizePrices, other: SizePrices): boolean {
  return one.size === other.size && [...one].every(([size, price]) => other.get(size) === price);
}

/** Returns how far sizes in both have moved (natural logarithms): `all`, and `far` those now in another unit. */
function movesOf(before: SizePrices, now: SizePrices): Readonly<Record<'all' | 'far', readonly number[]>> {
  const all = [...now].flatMap(([size, price]) => {
    const old = before.get(size);
    return old === undefined ? [] : [Math.log(price / old)];
  });
  return { all, far: all.filter((log) => Math.abs(log) >= Math.log(STILL_FAR.known)) };
}

/**
 * Returns how far the sizes in both have moved: the median of natural logarithms; null if no size is in both. If some
 * have moved as far as into another unit, the median of these, because the others may have stayed in theirs.
 */
export function factorOf(before: SizePrices, now: SizePrices): number | null {
  const { all, far } = movesOf(before, now);
  return median(far.length > 0 ? far : all);
}

/** Whether only some of the sizes, at most half of them, have moved as far as into another unit. */
export function isOfSomeSizes(before: SizePrices, now: SizePrices): boolean {
  const { all, far } = movesOf(before, now);
  return far.length > 0 && far.length * 2 <= all.length;
}

/** Returns the median move of all sizes; if none is in both, how far their medians have moved; null without prices. */
export function levelOf(before: SizePrices, now: SizePrices): number | null {
  const [old, present] = [median([...before.values()]), median([...now.values()])];
  const moved = median(movesOf(before, now).all);
  return moved ?? (old === null || present === null ? null : Math.log(present / old));
}

/** Whether a size is as far from what was believed as another unit would be. Pure. */
export function isFar(before: SizePrices, now: SizePrices): boolean {
  const level = median([...before.values()]);
  return [...now].some(([size, price]) => {
    const old = before.get(size);
    const [from, far] = old === undefined ? [level, STILL_FAR.rare] : [old, STILL_FAR.known];
    return from !== null && Math.abs(Math.log(price / from)) >= Math.log(far);
  });
}

/**
 * Whether `now` has a price that was not said before: of a size in `doubted`, and close neither to its doubted price
 * nor to its believed one. Pure.
 */
export function saysAnother(
  { doubted, believed }: Readonly<Record<'doubted' | 'believed', SizePrices>>,
  now: SizePrices,
  usual: number,
): boolean {
  const far = Math.max(SAME, TIMES_USUAL * usual);
  const isFrom = (price: number, other: number) => Math.abs(Math.log(price / other)) > far;
  return [...now].some(([size, price]) => {
    const [said, old] = [doubted.get(size), believed.get(size)];
    return said !== undefined && isFrom(price, said) && (old === undefined || isFrom(price, old));
  });
}

/** Returns the median of how far the sizes that moved have moved; null if none has. */
export function moveOf(before: SizePrices, now: SizePrices): number | null {
  const logs = [...now].flatMap(([size, price]) => {
    const old = before.get(size);
    return old === undefined || old === price ? [] : [Math.abs(Math.log(price / old))];
  });
  return median(logs);
}
