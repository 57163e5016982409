import { HintBase, type HintRecord, UNTESTED, type WaitingHint } from '../../src/store/hint-state.ts';
import { earlyAfter, type EarlyRefreshes, setAside } from '../../src/sync/live/boost.ts';
import {
  hintedMinutes,
  hintHazard,
  isHinted,
  jointHazard,
  learnHints,
  mostWaiting,
  testHints,
} from '../../src/sync/live/hints.ts';
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

/** Counts are written once in so long (store/hints.ts). */
const WRITTEN_EVERY = 1 / 6;

/** The hints at SKUs of a market, as sync/reprice/hints.ts and store/hints.ts keep them. */
export class Hints {
  readonly hazards: Float64Array;
  readonly sources = new Map<string, SourceSoFar>();
  readonly #market: LiveMarket;
  readonly #stream: HintStream;
  readonly #ledger: LedgerOfLines;
  readonly #waiting = new Map<number, WaitingHint[]>();
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
    waiting.push({ source, hazard });
    this.#waiting.set(item, waiting);
    from.waiting += 1;
    if (hazard === 0) return false;
    const joint = jointHazard(waiting);
    this.hazards[item] = joint;
    const dueIn = this.#ledger.dueAt(item) - minute;
    const known = {
      weight: this.#market.weights[item] as number,
      rate: this.#ledger.rate(item),
      minutes: minute - last,
      dueIn,
    };
    const inMinutes = hintedMinutes(known, joint, this.#ledger);
    if (inMinutes === null) return false;
    this.#ledger.schedule(item, minute + inMinutes);
    from.pulled += 1;
    return true;
  }

  /** A SKU was refreshed; `unmoved`: the probability that nothing has moved by its own rate. Returns whether a hint explains what was found. */
  settle(item: number, unmoved: number, moved: boolean): boolean {
    const hints = this.#waiting.get(item) ?? [];
    this.#moves += Number(moved);
    for (const test of this.#base.weigh(testHints(hints, unmoved, moved))) {
      const before = this.#shown.get(test.source) ?? UNTESTED;
      this.#shown.set(test.source, {
        tested: before.tested + 1,
        expected: before.expected + test.expected,
        unmoved: before.unmoved + Number(!moved),
        moves: 0,
      });
    }
    const explained = moved && isHinted(hints, unmoved);
    this.forget(item);
    return explained;
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
