import {
  HintBase,
  type HintRecord,
  plusShown,
  shownByPrediction,
  type ShownOfSource,
  type PredictedMove,
  UNTESTED,
  type WaitingHint,
} from '../../src/store/live/hint-state.ts';
import {
  predictionRecheckMinutes,
  hintedMinutes,
  hintHazard,
  isHinted,
  jointHazard,
  jointPull,
  learnHints,
  mostWaiting,
  testHints,
  testPrediction,
  predictedMove,
  undonePart,
} from '../../src/sync/live/hints.ts';
import { earlyAfter, type EarlyRefreshes, setAside } from '../../src/sync/live/product-lines.ts';
import type { LedgerOfLines } from './lines.ts';
import type { LiveMarket } from './market.ts';

/** A hint that a SKU has perhaps moved. Times in minutes. */
export interface Hint {
  readonly at: number;
  readonly item: number;
  readonly source: string;
}

/** Hints as they come: those since it was last asked. */
export interface HintStream {
  readonly until: (minute: number) => Iterable<Hint>;
}

export interface SourceSoFar {
  record: HintRecord;
  waiting: number;
  hints: number;
  /** Hints that have brought a refresh forward. */
  pulled: number;
}

/** All sizes of a SKU are one here. */
const ALL_SIZES = 'all';

/** Counts are written once in so long (store/sellers/hints.ts). */
const WRITTEN_EVERY = 1 / 6;

/** The hints at SKUs of a market, as sync/reprice/take-hints.ts and store/sellers/hints.ts keep them. */
export class Hints {
  readonly hazards: Float64Array;
  readonly sources = new Map<string, SourceSoFar>();
  readonly #market: LiveMarket;
  readonly #stream: HintStream;
  readonly #ledger: LedgerOfLines;
  readonly #waiting = new Map<number, WaitingHint[]>();
  /** What hints had told of, of what the last refresh of an item has found. */
  readonly #predicted = new Map<number, PredictedMove & { readonly hints: readonly WaitingHint[] }>();
  readonly #base = new HintBase();
  #early: EarlyRefreshes = { early: 0, earlyAt: 0 };
  #shown = new Map<string, HintRecord>();
  #moves = 0;
  #writtenAt = 0;

  constructor(market: LiveMarket, stream: HintStream, ledger: LedgerOfLines) {
    this.#market = market;
    this.#stream = stream;
    this.#ledger = ledger;
    this.hazards = new Float64Array(market.size);
  }

  /** Refreshes a minute that a solution leaves to hints. */
  setAside(minute: number): number {
    return setAside(this.#early, minute);
  }

  forget(item: number): void {
    for (const { source } of this.#waiting.get(item) ?? []) this.#source(source).waiting -= 1;
    this.#waiting.delete(item);
    this.hazards[item] = 0;
  }

  #source(name: string): SourceSoFar {
    const known = this.sources.get(name);
    if (known !== undefined) return known;
    const first = { record: UNTESTED, waiting: 0, hints: 0, pulled: 0 };
    this.sources.set(name, first);
    return first;
  }

  take(minute: number): void {
    if (minute - this.#writtenAt >= WRITTEN_EVERY) this.#learn(minute);
    let pulled = 0;
    for (const hint of this.#stream.until(minute)) pulled += Number(this.#taken(hint, minute));
    if (pulled > 0) this.#early = { early: earlyAfter(this.#early, pulled, minute), earlyAt: minute };
  }

  /** Whether a hint brings the refresh of its SKU forward. */
  #taken({ at, item, source }: Hint, minute: number): boolean {
    const from = this.#source(source);
    from.hints += 1;
    const last = this.#market.lastRefresh[item] as number;
    if (at <= last || from.waiting >= mostWaiting(from.record)) return false;
    const waiting = this.#waiting.get(item) ?? [];
    if (waiting.some((other) => other.source === source)) return false;
    const hazard = hintHazard(from.record);
    waiting.push({ source, hazard, undone: undonePart(from.record) });
    this.#waiting.set(item, waiting);
    from.waiting += 1;
    if (hazard === 0) return false;
    this.hazards[item] = jointHazard(waiting);
    const dueIn = this.#ledger.dueAt(item) - minute;
    const known = {
      weight: this.#market.weights[item] as number,
      rate: this.#ledger.rate(item),
      minutes: minute - last,
      dueIn,
    };
    const inMinutes = hintedMinutes(known, jointPull(waiting), this.#ledger);
    if (inMinutes === null) return false;
    this.#ledger.schedule(item, minute + inMinutes);
    from.pulled += 1;
    return true;
  }

  /**
   * A SKU was refreshed; `unmoved`: the probability that nothing has moved by its own rate. Returns whether a hint
   * explains what was found.
   */
  settle(item: number, unmoved: number, moved: boolean): boolean {
    const hints = this.#waiting.get(item) ?? [];
    this.#moves += Number(moved);
    for (const test of this.#base.weigh(testHints(hints, unmoved, moved)))
      this.#show(test.source, { tested: 1, expected: test.expected, unmoved: Number(!moved) });
    const { price, before } = this.#market.found(item);
    const predicted = this.#predicted.get(item);
    const tests =
      predicted === undefined ? [] : testPrediction(predicted, new Map(moved ? [[ALL_SIZES, price]] : []));
    for (const test of tests) this.#show(test.source, shownByPrediction(test));
    this.#predicted.delete(item);
    const now = moved ? predictedMove(hints, unmoved, { [ALL_SIZES]: before }) : null;
    if (now !== null) this.#predicted.set(item, { ...now, hints });
    this.forget(item);
    return moved && (isHinted(hints, unmoved) || tests.some(({ found }) => found === 'undone'));
  }

  /**
   * In how many minutes an item that was refreshed just now is refreshed again, as what hints told of may be undone.
   */
  againIn(item: number, dueIn: number): number {
    const predicted = this.#predicted.get(item);
    if (predicted === undefined) return dueIn;
    const sku = { weight: this.#market.weights[item] as number, rate: this.#ledger.rate(item), dueIn };
    return predictionRecheckMinutes(sku, predicted.hints, this.#ledger) ?? dueIn;
  }

  #show(source: string, more: Partial<ShownOfSource>): void {
    const before = this.#shown.get(source) ?? UNTESTED;
    this.#shown.set(source, { ...plusShown(before, more), moves: 0 });
  }

  #learn(minute: number): void {
    this.#writtenAt = minute;
    for (const [name, source] of this.sources) {
      const shown = this.#shown.get(name) ?? UNTESTED;
      source.record = learnHints(source.record, { ...shown, moves: this.#moves });
    }
    this.#shown = new Map();
    this.#moves = 0;
  }
}
