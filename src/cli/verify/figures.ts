import type { AnsweredSku, HeldSku, WrongPrice } from '../../store/trust/verification.ts';

/** One SKU of the sample, asked and answered. */
export interface Verified {
  readonly held: HeldSku;
  /** Probability at the moment of the answer. */
  readonly pRight: number;
  readonly wrong: readonly WrongPrice[];
}

const SOON_MS = 60_000;

/** What was believed of a SKU when it was answered, from what was believed when it was marked `at`. Pure. */
export function verified(held: HeldSku, at: Date, { answeredAt, wrong }: AnsweredSku): Verified {
  const waited = Math.max(0, answeredAt.getTime() - at.getTime()) / SOON_MS;
  const pRight = held.pRight + waited * (held.pRightSoon - held.pRight);
  return { held, wrong, pRight: Math.min(1, Math.max(0, pRight)) };
}

/** A part of the sample. Shares are in [0, 1]. */
export interface Share {
  readonly name: string;
  readonly skus: number;
  readonly right: number;
  /** Where the probability of such a SKU to be right is, with one of 95 %; null where there is none in the sample. */
  readonly interval: readonly [low: number, high: number] | null;
  readonly claimed: number;
  readonly holds: boolean;
}

/** Of the standard normal distribution, 95 % are within so many deviations. */
const Z = 1.959_964;

/**
 * Where the probability is, with one of 95 %, of what was so in `hits` of `drawn` cases: Wilson's score interval. Of
 * a share of all SKUs it is the interval where these are many times as many; of fewer it is wider than it would have
 * to be.
 */
export function intervalOf(hits: number, drawn: number): readonly [low: number, high: number] {
  const share = hits / drawn;
  const middle = (share + Z ** 2 / (2 * drawn)) / (1 + Z ** 2 / drawn);
  const width =
    (Z / (1 + Z ** 2 / drawn)) * Math.sqrt((share * (1 - share)) / drawn + (Z / (2 * drawn)) ** 2);
  return [Math.max(0, middle - width), Math.min(1, middle + width)];
}

/** What a sample says: all of it, what may be acted on, and each price source. Pure. */
export function sharesOf(sample: readonly Verified[]): Share[] {
  const of = (name: string, isIn: (held: HeldSku) => boolean): Share => {
    const part = sample.filter(({ held }) => isIn(held));
    const skus = part.length;
    if (skus === 0) return { name, skus, right: 0, interval: null, claimed: 0, holds: true };
    const hits = part.filter(({ wrong }) => wrong.length === 0).length;
    const claimed = part.reduce((sum, { pRight }) => sum + pRight, 0) / skus;
    const interval = intervalOf(hits, skus);
    const holds = claimed >= interval[0] && claimed <= interval[1];
    return { name, skus, right: hits / skus, interval, claimed, holds };
  };
  const sourceOf = ({ priceSource }: HeldSku) => priceSource ?? 'unknown';
  const sources = [...new Set(sample.map(({ held }) => sourceOf(held)))].toSorted();
  return [
    of('all', () => true),
    of('actionable', ({ actionable }) => actionable),
    ...sources.map((source) => of(source, (held) => sourceOf(held) === source)),
  ];
}
