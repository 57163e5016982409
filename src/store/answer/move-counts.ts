import type { Clock } from '../../lib/clock.ts';
import { commonFactor } from './common-factor.ts';
import { HOUR_MINUTES, type KnownMassMove, type MassMoveKind, OF_FACTOR } from './doubts.ts';
import { type SkuJudgement } from './judgements.ts';

/*
 * Prices that move implausibly in masses: a fault of the partner, or a crash of the market. Nobody can tell these
 * apart by one answer, so while it goes on each move is doubted until a second answer says the same. Where several
 * SKUs move by one and the same factor, it is another unit or currency, and where most of what is implausible is
 * one price for all sizes, sizes are lost: no number of answers that say the same is evidence, that waits for the
 * seller's word. A source of the partner's may have another unit for a few SKUs: these wait alone. What is counted is
 * what one process has seen within an hour; begun factors, what all have (odd-moves.ts).
 */

/** Moves are counted over this time. */
export const WINDOW_MS = HOUR_MINUTES * 60_000;
const SLICES = 60;
const SLICE_MS = WINDOW_MS / SLICES;

/** Before second answers have confirmed those that have begun to move by the other one since. */
const TURNS_AFTER_MS = 120_000;

/** Before a fault that was not over is asked after again. */
const ASKED_AFTER_MS = 60_000;

/** Answered SKUs of the hour, and moved ones among them, from which on a part of them may show a mass move. */
const ENOUGH_SKUS = 200;
/** Moved SKUs of the hour that suffice to show that a mass move goes on; answered ones, that it is over. */
const SOME = 20;
/**
 * Part of the answered SKUs that is implausible, or that has lost all its prices. Of fewer answers than ENOUGH_SKUS,
 * as a catalog of a hundred SKUs has in an hour, it takes so many SKUs: one or two may be chance.
 */
const IMPLAUSIBLE = { part: 0.01, few: 5 } as const;
const LOST = { part: 0.25, few: 10 } as const;
/** SKUs that are still implausible show that it goes on: one or two have moved so far by themselves. */
export const GOING_SKUS = 3;
/** Implausible SKUs that show that all sizes have one price, and the part of all of them. */
const ONE_PRICE = { skus: 8, part: 0.5 } as const;
/** Implausible SKUs, and factors of them, that are kept of each slice: more show nothing more. */
const MOST_KEPT = 64;
/**
 * Prices move far from this many times the usual move on. The least that is taken as usual, and what is far while
 * that is not known (natural logarithms).
 */
const TIMES_USUAL = 8;
const MIN_USUAL = 0.02;
const UNKNOWN_FAR = Math.log(2);

/**
 * Moves are counted by how far they went, in steps of a tenth from 1/10,000 on: their median is known to a twentieth.
 */
const STEPS = 128;
const stepOf = (move: number) =>
  Math.min(STEPS - 1, Math.max(0, Math.floor(Math.log(move / 1e-4) / Math.log(1.1))));
const moveAt = (step: number) => 1e-4 * 1.1 ** (step + 0.5);

/** What answers of the last hour have shown. */
export interface HourOfMoves {
  readonly answers: number;
  readonly implausible: number;
  /** Of how many SKUs these are; a live SKU is asked often. */
  readonly implausibleSkus: number;
  /** Those among them that have one price for all sizes. */
  readonly onePrice: number;
  readonly lost: number;
  /** The same of those SKUs among them whose losses nobody reports: live ones are lost by themselves. */
  readonly untold: { readonly answers: number; readonly lost: number };
  readonly moves: number;
  /** Median; null without any. */
  readonly move: number | null;
  /** What several SKUs have begun to move by, implausibly, a natural logarithm; null: by no common factor. */
  readonly factor: number | null;
  /** SKUs that had been doubted for what no market does, and no longer say so. */
  readonly repairedSkus: number;
}

/** What no market does: no second answer is evidence of anything, it waits for the seller's word. */
export const FAULT_KINDS: readonly MassMoveKind[] = ['factor', 'factor-of-some', 'one-price'];

export const isFault = (kind: MassMoveKind | null): boolean => kind !== null && FAULT_KINDS.includes(kind);

/** Whether moves in masses are a fault, and not the one that is known. Pure. */
export const isAnotherFault = (
  found: Pick<KnownMassMove, 'kind' | 'factor'>,
  known: Pick<KnownMassMove, 'kind' | 'factor'>,
): boolean => isFault(found.kind) && (found.kind !== known.kind || isOfAnother(found.factor ?? 0, known));

/**
 * Whether SKUs have moved by another factor than the known one. Of a fault of some the way back is none: of its SKUs
 * that nobody has found. What so many move by that each move is doubted may be anything.
 */
export function isOfAnother(by: number, { kind, factor }: Pick<KnownMassMove, 'kind' | 'factor'>): boolean {
  const known = factor ?? 0;
  return Math.abs(by - known) > OF_FACTOR && (kind !== 'factor-of-some' || Math.abs(by + known) > OF_FACTOR);
}

/** An hour without any answer. */
export const NO_MOVES: HourOfMoves = {
  answers: 0,
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
 * Whether this is more than chance, or an ordinary market, would bring. `going`: whether it goes on that each move is
 * doubted, which less tells. Pure.
 */
export function isMassMove(hour: HourOfMoves, usual: number | null, going: boolean): MassMoveKind | null {
  const kind = movesOfMany(hour, usual, going);
  if (hour.factor === null) return kind;
  return kind === null ? 'factor-of-some' : 'factor';
}

/** The same, whatever factor some have in common. */
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
  const isFar = moves >= (going ? SOME : ENOUGH_SKUS) && (move ?? 0) > (going ? far / 2 : far);
  return isFar ? 'far' : null;
}

/** What moves in masses begin as, or turn to. */
export interface FoundMassMove {
  readonly kind: MassMoveKind;
  readonly factor: number | null;
}

/**
 * What moves in masses turn to in an hour of this kind; null: they stay what they are known as. A fault of some SKUs is
 * one of all while each move is doubted, whatever for; and each is beside it only after answers enough, as the first
 * that a daemon has after its start may be of such SKUs. Pure.
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

interface Slice {
  at: number;
  answers: number;
  implausible: number;
  onePrice: number;
  lost: number;
  readonly untold: { answers: number; lost: number };
  moves: number;
  readonly steps: Uint32Array;
  readonly factors: Map<string, number>;
  readonly skus: Set<string>;
  readonly repaired: Set<string>;
}

const emptySlice = (at: number): Slice => ({
  at,
  answers: 0,
  implausible: 0,
  onePrice: 0,
  lost: 0,
  untold: { answers: 0, lost: 0 },
  moves: 0,
  steps: new Uint32Array(STEPS),
  factors: new Map(),
  skus: new Set(),
  repaired: new Set(),
});

/** What one process has seen of the moves of the last hour. */
export class MoveCounts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #slices: Slice[] = [];
  #learnedAt: number;
  #known: Pick<KnownMassMove, 'kind' | 'factor'> = { kind: null, factor: null };
  #turnedAt: number;
  #askedAt = -Infinity;
  #isAtWork = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#learnedAt = clock.monotonic();
    this.#turnedAt = this.#learnedAt;
  }

  note(judged: readonly SkuJudgement[]): void {
    const samples = judged.flatMap(({ sku, sample, judgement }) =>
      sample === null ? [] : [{ sku, ...sample, begins: judgement.kind === 'begins' }],
    );
    const repaired = judged.filter(({ judgement }) => judgement.kind === 'ends' && judgement.isRepaired);
    if (samples.length + repaired.length === 0) return;
    const slice = this.#slice();
    for (const { sku } of repaired.slice(0, MOST_KEPT)) slice.repaired.add(sku);
    for (const { sku, odd, onePrice, lost, untold, move, factor, begins } of samples) {
      slice.answers += 1;
      if (odd && slice.skus.size < MOST_KEPT) slice.skus.add(sku);
      slice.implausible += Number(odd);
      slice.onePrice += Number(onePrice);
      slice.lost += Number(lost);
      slice.untold.answers += Number(untold);
      slice.untold.lost += Number(untold && lost);
      if (begins && odd && factor !== null && slice.factors.size < MOST_KEPT) slice.factors.set(sku, factor);
      if (move === null) continue;
      slice.moves += 1;
      slice.steps[stepOf(move)]! += 1;
    }
  }

  /** What SKUs have begun to move by within the hour by the answers of all processes, so many seconds ago. */
  noteBegun(
    begun: readonly { readonly sku: string; readonly factor: number; readonly seconds: number }[],
  ): void {
    const now = Math.floor(this.#clock.monotonic() / SLICE_MS);
    for (const { sku, factor, seconds } of begun) {
      const at = now - Math.floor((seconds * 1000) / SLICE_MS);
      const slice = this.#slices.find((each) => each.at === at) ?? emptySlice(at);
      if (!this.#slices.includes(slice)) this.#slices.push(slice);
      if (slice.factors.size < MOST_KEPT) slice.factors.set(sku, factor);
    }
    this.#slices.sort((a, b) => a.at - b.at);
  }

  #slice(): Slice {
    const at = Math.floor(this.#clock.monotonic() / SLICE_MS);
    const last = this.#slices.at(-1);
    if (last?.at === at) return last;
    this.#slices = this.#slices.filter((slice) => slice.at > at - SLICES);
    const slice = emptySlice(at);
    this.#slices.push(slice);
    return slice;
  }

  hour(): HourOfMoves {
    const from = Math.floor(this.#clock.monotonic() / SLICE_MS) - SLICES;
    const slices = this.#slices.filter(({ at }) => at > from);
    const sum = (of: (slice: Slice) => number) => slices.reduce((total, slice) => total + of(slice), 0);
    const moves = sum((slice) => slice.moves);
    let [step, seen] = [0, sum(({ steps }) => steps[0] ?? 0)];
    while (seen * 2 < moves) {
      step += 1;
      const at = step;
      seen += sum(({ steps }) => steps[at] ?? 0);
    }
    return {
      answers: sum((slice) => slice.answers),
      implausible: sum((slice) => slice.implausible),
      implausibleSkus: new Set(slices.flatMap(({ skus }) => [...skus])).size,
      onePrice: sum((slice) => slice.onePrice),
      lost: sum((slice) => slice.lost),
      untold: {
        answers: sum(({ untold }) => untold.answers),
        lost: sum(({ untold }) => untold.lost),
      },
      moves,
      move: moves === 0 ? null : moveAt(step),
      factor: this.#commonFactor(slices),
      repairedSkus: new Set(slices.flatMap(({ repaired }) => [...repaired])).size,
    };
  }

  /** The one that is known hides no other, of fewer SKUs. */
  #commonFactor(slices: readonly Slice[]): number | null {
    const known = this.#known;
    const factors = [...new Map(slices.flatMap((slice) => [...slice.factors])).values()];
    const others = known.factor === null ? [] : factors.filter((factor) => isOfAnother(factor, known));
    return commonFactor(others) ?? commonFactor(factors);
  }

  /**
   * The moves in masses that go on, as Postgres says: what was counted before they began, turned or ended has led to
   * it. Not so the factors of a few SKUs, where nobody has found yet what these have in common.
   */
  follow({ kind, factor }: Pick<KnownMassMove, 'kind' | 'factor'>): void {
    const known = this.#known;
    this.#known = { kind, factor };
    if ((kind === null) === (known.kind === null) && !isAnotherFault({ kind, factor }, known)) return;
    const isLeft = (by: number) =>
      kind !== null && (factor === null ? !isFault(kind) : isOfAnother(by, { kind, factor }));
    this.#slices = this.#slices.map(({ at, factors }) => ({
      ...emptySlice(at),
      factors: new Map([...factors].filter(([, by]) => isLeft(by))),
    }));
    this.#turnedAt = this.#clock.monotonic();
    this.#askedAt = -Infinity;
  }

  /**
   * Whether answers enough have come since moves in masses began to show that they are over; in a small catalog an
   * hour of them.
   */
  areEnough({ answers }: HourOfMoves): boolean {
    if (answers >= ENOUGH_SKUS) return true;
    return answers >= SOME && this.hasStood();
  }

  /** Whether it is time for another factor to take the place of one: two may take turns. */
  mayTurn(): boolean {
    return this.#clock.monotonic() - this.#turnedAt >= TURNS_AFTER_MS;
  }

  /**
   * Whether it is time to ask once more whether a fault is over, which reads all its SKUs; if so, it is asked now.
   */
  mayAsk(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#askedAt < ASKED_AFTER_MS) return false;
    this.#askedAt = now;
    return true;
  }

  /** Has something done unless it is being done already, by another answer of the process: null. */
  async alone<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.#isAtWork) return null;
    this.#isAtWork = true;
    try {
      return await work();
    } finally {
      this.#isAtWork = false;
    }
  }

  /** Whether nothing has begun, turned or ended for an hour. */
  hasStood(): boolean {
    return this.#clock.monotonic() - this.#turnedAt >= WINDOW_MS;
  }

  /** Once an hour with enough moves: how far they went, for what is usual. */
  usualMove(): number | null {
    const now = this.#clock.monotonic();
    if (now - this.#learnedAt < WINDOW_MS) return null;
    this.#learnedAt = now;
    const { moves, move } = this.hour();
    return moves >= ENOUGH_SKUS ? move : null;
  }
}

/**
 * Prices move implausibly in masses. `implausible`: of so many answers, or those that lost all prices (`lost`); with a
 * common `factor` (natural logarithm) it is of that kind, which may be of some SKUs alone.
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
 * Moves in masses that have begun, with what shows them, or ended after so many seconds; or one of these has failed,
 * and the next answer tries it again.
 */
export type MassMoved =
  | ({ readonly event: 'began'; readonly skus: number } & Omit<MassMove, 'since'>)
  | { readonly event: 'ended'; readonly seconds: number }
  | { readonly event: 'failed'; readonly problem: string };
