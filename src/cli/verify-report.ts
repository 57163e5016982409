import { formatAge } from '../lib/duration.ts';
import { count, percent } from '../lib/format.ts';
import type { AnsweredSku, HeldSku, WrongPrice } from '../store/trust/verification.ts';

/** One SKU of the sample that was answered. */
export interface Verified {
  readonly held: HeldSku;
  /** The probability at the moment of the answer. */
  readonly pRight: number;
  readonly wrong: readonly WrongPrice[];
}

const SOON_MS = 60_000;

/** Returns what was believed of a SKU when it was answered, from what was believed when it was marked `at`. Pure. */
export function verified(held: HeldSku, at: Date, { answeredAt, wrong }: AnsweredSku): Verified {
  const waited = Math.max(0, answeredAt.getTime() - at.getTime()) / SOON_MS;
  const pRight = held.pRight + waited * (held.pRightSoon - held.pRight);
  return { held, wrong, pRight: Math.min(1, Math.max(0, pRight)) };
}

/** A part of the sample. Shares are in [0, 1]. */
interface Share {
  readonly name: string;
  readonly skus: number;
  readonly right: number;
  /** The 95 % interval of the probability that such a SKU is right; null if the sample has none. */
  readonly interval: readonly [low: number, high: number] | null;
  readonly claimed: number;
  readonly holds: boolean;
}

/** 95 % of a standard normal distribution are within this many deviations. */
const Z = 1.959_964;

/**
 * Returns the 95 % interval of a probability, given `hits` in `drawn` cases: Wilson's score interval. It suits a share
 * of all SKUs if these are many times as many as were drawn; otherwise it is wider than necessary.
 */
export function intervalOf(hits: number, drawn: number): readonly [low: number, high: number] {
  const share = hits / drawn;
  const middle = (share + Z ** 2 / (2 * drawn)) / (1 + Z ** 2 / drawn);
  const width =
    (Z / (1 + Z ** 2 / drawn)) * Math.sqrt((share * (1 - share)) / drawn + (Z / (2 * drawn)) ** 2);
  return [Math.max(0, middle - width), Math.min(1, middle + width)];
}

/** Returns the results of a sample: of all, of what is actionable, and of each price source. Pure. */
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

/** The results of a verification. */
export interface Verification {
  readonly seed: number;
  /** How many priced SKUs the sample was drawn from. */
  readonly population: number;
  readonly asked: number;
  readonly answered: number;
  readonly seconds: number;
  /** `all` first. */
  readonly shares: readonly Share[];
  readonly wrong: readonly WrongSku[];
}

/** A SKU that was wrong, and what had been known of it. Times in seconds. */
interface WrongSku {
  readonly sku: string;
  readonly priceSource: string | null;
  readonly cohort: string;
  readonly pRight: number;
  readonly actionable: boolean;
  readonly doubt: string | null;
  readonly owedReason: string | null;
  readonly ageSeconds: number;
  readonly sizes: Verified['wrong'];
}

/** Sums up a sample. Wrong SKUs that were actionable come first, then the most certain ones. Pure. */
export function verificationOf(
  sample: readonly Verified[],
  about: Pick<Verification, 'seed' | 'population' | 'asked' | 'seconds'>,
): Verification {
  const wrong = sample
    .filter(({ wrong: sizes }) => sizes.length > 0)
    .map(({ held, pRight, wrong: sizes }): WrongSku => {
      const { sku, priceSource, cohort, actionable, doubt, owedReason, ageSeconds } = held;
      return { sku, priceSource, cohort, pRight, actionable, doubt, owedReason, ageSeconds, sizes };
    })
    .toSorted((a, b) => Number(b.actionable) - Number(a.actionable) || b.pRight - a.pRight);
  return { ...about, answered: sample.length, shares: sharesOf(sample), wrong };
}

const LISTED = 30;
const SIZES_LISTED = 3;
const price = (value: number | null) => (value === null ? 'none' : count(value));

/** Formats the results for people. Pure. */
export function reportOf({ population, asked, answered, seconds, shares, wrong }: Verification): string[] {
  const silent = asked - answered;
  return [
    `${count(answered)} of ${count(population)} priced SKUs, drawn at random, were asked about in ` +
      `${formatAge(seconds)}${silent > 0 ? `; ${count(silent)} more were not answered` : ''}`,
    '',
    `${'SKUs'.padEnd(12)}${'asked'.padStart(7)}${'right'.padStart(10)}${'95 % interval'.padStart(21)}${'claimed'.padStart(10)}`,
    ...shares.map(shareLine),
    '',
    conclusionLine(shares),
    ...(wrong.length === 0 ? [] : ['', 'wrong, those first that were actionable:']),
    ...wrong.slice(0, LISTED).flatMap(storyOf),
    ...(wrong.length > LISTED ? [`and ${count(wrong.length - LISTED)} more: --json lists all`] : []),
  ];
}

function shareLine({ name, skus, right, interval, claimed, holds }: Share): string {
  if (interval === null) return `${name.padEnd(12)}${'0'.padStart(7)}`;
  const between = `${percent(interval[0])} to ${percent(interval[1])}`;
  return [
    name.padEnd(12),
    count(skus).padStart(7),
    percent(right).padStart(10),
    between.padStart(21),
    percent(claimed).padStart(10),
    holds ? '' : '  outside',
  ].join('');
}

function conclusionLine([all]: readonly Share[]): string {
  if (all === undefined || all.interval === null) return 'nothing was answered, so nothing is known';
  if (all.holds) return 'the claim is within the interval: prices are as likely right as p_right says';
  return all.claimed > all.right
    ? 'the claim is above the interval: prices are wrong more often than p_right says; see ops/runbooks/miscalibrated.md'
    : 'the claim is below the interval: prices are right more often than p_right says; see ops/runbooks/miscalibrated.md';
}

/** Why a price was believed, by cohort. */
const WHY: Readonly<Record<string, string>> = {
  live: 'live: nobody reports its changes',
  unlisted: 'in no manifest: nobody reports its changes',
  snapshot: 'snapshot-priced: no delta had reported this change',
  reported: 'snapshot-priced: the delta had reported it, and its refresh was due',
};

function storyOf(sku: WrongSku): string[] {
  const trusted = sku.actionable
    ? 'actionable'
    : sku.doubt === null
      ? 'not actionable: too unlikely'
      : `not actionable: ${sku.doubt}`;
  const sizes = sku.sizes
    .slice(0, SIZES_LISTED)
    .map(({ size, held, partner }) => `size ${size} ${price(held)} → ${price(partner)}`);
  const more = sku.sizes.length > SIZES_LISTED ? [`${sku.sizes.length - SIZES_LISTED} sizes more`] : [];
  return [
    `${sku.sku}: ${[...sizes, ...more].join(', ')}`,
    `  ${formatAge(sku.ageSeconds)} old, p_right ${sku.pRight.toFixed(3)}, ${trusted}; ${WHY[sku.cohort] ?? sku.cohort}`,
  ];
}
