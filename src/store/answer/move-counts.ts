import type { Clock } from '../../lib/clock.ts';
import { ENOUGH_SKUS, type HourOfMoves, SOME_SKUS } from './hour-of-moves.ts';
import type { SkuJudgement } from './judgements.ts';
import {
  HOUR_MINUTES,
  type KnownMassMove,
  OF_FACTOR,
  isAnotherFault,
  isFault,
  isOfAnother,
} from './mass-move.ts';
import { median } from './plausibility.ts';

/*
 * Counts the evidence of moves in masses (hour-of-moves.ts): what one process has seen within an hour, and the factors
 * with which SKUs of all processes have begun to move (odd-moves.ts).
 */

/** The time over which moves are counted. */
export const WINDOW_MS = HOUR_MINUTES * 60_000;
const SLICES = 60;
const SLICE_MS = WINDOW_MS / SLICES;

/** Between two turns of a factor; less than second answers take to confirm SKUs that moved by the other one. */
const TURNS_AFTER_MS = 120_000;

/** Between two checks whether a fault is over. */
const ASKED_AFTER_MS = 60_000;

/** Most implausible SKUs, and factors of them, kept per slice: more would show nothing new. */
const MOST_KEPT = 64;

/**
 * Moves are counted by how far they went, in steps of a tenth from 1/10,000 on: their median is known to a twentieth.
 */
const STEPS = 128;
const stepOf = (move: number) =>
  Math.min(STEPS - 1, Math.max(0, Math.floor(Math.log(move / 1e-4) / Math.log(1.1))));
const moveAt = (step: number) => 1e-4 * 1.1 ** (step + 0.5);

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

  /** Takes in the factors by which SKUs began to move within the hour, in answers of all processes, `seconds` ago. */
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
    this.#slices = this.#shown(at - SLICES);
    const slice = emptySlice(at);
    this.#slices.push(slice);
    return slice;
  }

  /**
   * Returns the slices after `from`. While prices move in masses, adds the newest older ones with answers, up to
   * SOME_SKUS in all: a process with fewer answers would never see enough to end the mass move.
   */
  #shown(from: number): Slice[] {
    const recent = this.#slices.filter(({ at }) => at > from);
    let answers = recent.reduce((sum, slice) => sum + slice.answers, 0);
    if (this.#known.kind === null || answers >= SOME_SKUS) return recent;
    const older = this.#slices.filter((slice) => slice.at <= from && slice.answers > 0);
    for (const slice of older.toReversed()) {
      if (answers >= SOME_SKUS) break;
      recent.unshift({ ...slice, factors: new Map(), repaired: new Set() });
      answers += slice.answers;
    }
    return recent;
  }

  hour(): HourOfMoves {
    const from = Math.floor(this.#clock.monotonic() / SLICE_MS) - SLICES;
    const slices = this.#shown(from);
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
      isRecent: sum(({ at, answers }) => (at > from ? answers : 0)) >= SOME_SKUS,
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

  /** Returns another factor than the known one if there is any, even of fewer SKUs. */
  #commonFactor(slices: readonly Slice[]): number | null {
    const known = this.#known;
    const factors = [...new Map(slices.flatMap((slice) => [...slice.factors])).values()];
    const others = known.factor === null ? [] : factors.filter((factor) => isOfAnother(factor, known));
    return commonFactor(others) ?? commonFactor(factors);
  }

  /**
   * Takes over the mass move that Postgres holds. If it began, turned or ended, all earlier counts are dropped,
   * because they have led to it; factors of a few SKUs stay if it is not known yet what these have in common.
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
   * Whether enough answers have come since the mass move began to show that it is over; in a small catalog SOME_SKUS,
   * but not before an hour has passed.
   */
  areEnough({ answers }: HourOfMoves): boolean {
    if (answers >= ENOUGH_SKUS) return true;
    return answers >= SOME_SKUS && this.hasStood();
  }

  /** Whether another factor may already replace the present one: two factors may alternate. */
  mayTurn(): boolean {
    return this.#clock.monotonic() - this.#turnedAt >= TURNS_AFTER_MS;
  }

  /** Whether it is time to ask again whether a fault is over, which reads all its SKUs. If so, the caller asks now. */
  mayAsk(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#askedAt < ASKED_AFTER_MS) return false;
    this.#askedAt = now;
    return true;
  }

  /** Runs the work and returns its result; null if another answer of the process is already doing it. */
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

  /** Once an hour, returns how far prices moved, if there were enough moves; null otherwise. */
  usualMove(): number | null {
    const now = this.#clock.monotonic();
    if (now - this.#learnedAt < WINDOW_MS) return null;
    this.#learnedAt = now;
    const { moves, move } = this.hour();
    return moves >= ENOUGH_SKUS ? move : null;
  }
}

/**
 * When implausible SKUs show a common factor. `near`: how close their factors are (natural logarithm: closer than
 * markets ever move together, wider than the effect of rounding to whole baht); `part`: their part of the SKUs that
 * moved about as far (OF_FACTOR); `least`: the least factor that shows another unit or currency rather than a crash.
 * It does not matter how many other SKUs are implausible.
 */
const FACTOR = { skus: 8, part: 0.8, near: 0.02, least: Math.log(4) } as const;

/**
 * Returns the factor that several of these SKUs have in common, if it is that of another unit; of several such
 * factors, the one that most SKUs have; null if there is none. Pure.
 */
export function commonFactor(factors: readonly number[]): number | null {
  const sorted = factors.toSorted((a, b) => a - b);
  const [near, around] = [countsWithin(sorted, FACTOR.near), countsWithin(sorted, OF_FACTOR)];
  let best: { readonly factor: number; readonly skus: number } | null = null;
  for (const [at, factor] of sorted.entries()) {
    const [skus, all] = [near[at] ?? 0, around[at] ?? 0];
    if (skus < FACTOR.skus || skus < FACTOR.part * all || Math.abs(factor) < FACTOR.least) continue;
    if (skus > (best?.skus ?? 0)) best = { factor, skus };
  }
  const by = best?.factor;
  return by === undefined ? null : median(sorted.filter((each) => Math.abs(each - by) <= FACTOR.near));
}

/** Counts, for each of the sorted numbers, how many are no further from it than `far`. */
function countsWithin(sorted: readonly number[], far: number): number[] {
  let [from, to] = [0, 0];
  return sorted.map((number) => {
    while ((sorted[to] ?? Infinity) <= number + far) to += 1;
    while ((sorted[from] ?? Infinity) < number - far) from += 1;
    return to - from;
  });
}
