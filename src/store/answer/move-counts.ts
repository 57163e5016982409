import type { Clock } from '../../lib/clock.ts';
import { HOUR_MINUTES, type SkuJudgement } from './doubts.ts';

/*
 * Prices that move implausibly in masses: a fault of the partner, or a crash of the market. Nobody can tell these
 * apart by one answer, so while it goes on each move is doubted until a second answer says the same. What is counted
 * is what one process has seen within an hour.
 */

/** Moves are counted over this time. */
export const WINDOW_MS = HOUR_MINUTES * 60_000;
const SLICES = 60;
const SLICE_MS = WINDOW_MS / SLICES;

/** Answered SKUs of the hour, and moved ones among them, from which on they may show a mass move. */
export const ENOUGH_SKUS = 200;
/** Moved SKUs of the hour that suffice to show that a mass move goes on. */
const SOME = 20;
/** Part of the answered SKUs that is implausible, or that has lost all its prices. */
const IMPLAUSIBLE_PART = 0.01;
const LOST_PART = 0.25;
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
  readonly lost: number;
  readonly moves: number;
  /** Median; null without any. */
  readonly move: number | null;
}

/**
 * Whether this is more than chance, or an ordinary market, would bring. `going`: whether it goes on, which less
 * tells. Pure.
 */
export function isMassMove(
  { answers, implausible, lost, moves, move }: HourOfMoves,
  usual: number | null,
  going: boolean,
): MassMove['kind'] | null {
  if (answers < ENOUGH_SKUS) return null;
  const share = going ? 0.5 : 1;
  if (implausible > share * IMPLAUSIBLE_PART * answers) return 'implausible';
  if (lost > share * LOST_PART * answers) return 'lost';
  const far = usual === null ? UNKNOWN_FAR : TIMES_USUAL * Math.max(MIN_USUAL, usual);
  const isFar = moves >= (going ? SOME : ENOUGH_SKUS) && (move ?? 0) > (going ? far / 2 : far);
  return isFar ? 'far' : null;
}

interface Slice {
  at: number;
  answers: number;
  implausible: number;
  lost: number;
  moves: number;
  readonly steps: Uint32Array;
}

/** What one process has seen of the moves of the last hour. */
export class MoveCounts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #slices: Slice[] = [];
  #learnedAt: number;
  #going = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#learnedAt = clock.monotonic();
  }

  note(judged: readonly SkuJudgement[]): void {
    const samples = judged.flatMap(({ sample }) => (sample === null ? [] : [sample]));
    if (samples.length === 0) return;
    const slice = this.#slice();
    for (const { odd, lost, move } of samples) {
      slice.answers += 1;
      slice.implausible += Number(odd);
      slice.lost += Number(lost);
      if (move === null) continue;
      slice.moves += 1;
      slice.steps[stepOf(move)]! += 1;
    }
  }

  #slice(): Slice {
    const at = Math.floor(this.#clock.monotonic() / SLICE_MS);
    const last = this.#slices.at(-1);
    if (last?.at === at) return last;
    this.#slices = this.#slices.filter((slice) => slice.at > at - SLICES);
    const slice = { at, answers: 0, implausible: 0, lost: 0, moves: 0, steps: new Uint32Array(STEPS) };
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
      lost: sum((slice) => slice.lost),
      moves,
      move: moves === 0 ? null : moveAt(step),
    };
  }

  /** Whether moves in masses go on, as Postgres says: what was counted before that began, or ended, has led to it. */
  follow(going: boolean): void {
    if (going !== this.#going) this.#slices = [];
    this.#going = going;
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

/** Prices move implausibly in masses. `implausible`: of so many answers, or those that lost all prices (`lost`). */
export interface MassMove {
  readonly since: Date;
  readonly kind: 'implausible' | 'lost' | 'far';
  readonly answers: number;
  readonly implausible: number;
  readonly move: number | null;
}

/** Moves in masses that have begun, with what shows them, or ended after so many seconds. */
export type MassMoved =
  | ({ readonly event: 'began'; readonly skus: number } & Omit<MassMove, 'since'>)
  | { readonly event: 'ended'; readonly seconds: number };
