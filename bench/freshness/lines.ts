import {
  type Line,
  QUIET_LINE,
  type Releases,
  type Wholesale,
} from '../../src/store/live/product-line-state.ts';
import type { Rate } from '../../src/store/live/rate-prior.ts';
import {
  releaseRecheckMinutes,
  earlyAfter,
  type LineMember,
  panelOf,
  type Pulled,
  releasedMembers,
  setAside,
} from '../../src/sync/live/product-lines.ts';
import {
  dismissed,
  isWholesale,
  learnWholesale,
  type LineTransition,
  NO_RELEASES,
  thresholdAfter,
  weighRefresh,
  wholesaleRate,
} from '../../src/sync/live/releases.ts';
import type { World } from './worlds.ts';

/** What the lines do with the ledger. Times in minutes. */
export interface LedgerOfLines {
  readonly refreshThreshold: number;
  readonly maxIntervalMinutes: number;
  rate(item: number): Rate;
  dueAt(item: number): number;
  /** Usual minutes from one refresh of a SKU to the next. */
  wait(item: number): number;
  schedule(item: number, due: number): void;
}

const SIZES = 15;

/** The lines of a market, as sync/reprice/product-lines.ts and store/live/product-lines.ts keep them. */
export class Lines {
  readonly #world: World;
  readonly #ledger: LedgerOfLines;
  readonly #lines: Line[] = [];
  readonly #members: number[][] = [];
  readonly #wholesale: Wholesale[];
  readonly hazards: Float64Array;
  readonly turns: Record<LineTransition, number> = { suspected: 0, confirmed: 0, dismissed: 0 };
  pulled = 0;
  #releases: Releases = NO_RELEASES;

  constructor(world: World, ledger: LedgerOfLines) {
    this.#world = world;
    this.#ledger = ledger;
    this.hazards = new Float64Array(world.size);
    this.#wholesale = Array.from({ length: world.size }, () => ({ moves: 0, minutes: 0 }));
    for (let item = 0; item < world.size; item += 1) {
      const line = world.lineOf(item);
      (this.#members[line] ??= []).push(item);
      this.#lines[line] = QUIET_LINE;
    }
  }

  /** Refreshes a minute that a solution leaves to releases. */
  setAside(minute: number): number {
    const all = this.#wholesale.reduce((sum, { moves, minutes }) => ({
      moves: sum.moves + moves,
      minutes: sum.minutes + minutes,
    }));
    this.#releases = { ...this.#releases, wholesaleRate: wholesaleRate(all) };
    return setAside(this.#releases, minute);
  }

  forget(item: number): void {
    this.#wholesale[item] = { moves: 0, minutes: 0 };
    this.hazards[item] = 0;
  }

  /**
   * A SKU was refreshed, so long after the time before: whether its line's release explains what was found, so that
   * it teaches nothing, and in how many minutes it is to be refreshed again for it.
   */
  settle(item: number, minute: number, minutes: number): { explained: boolean; again: number | null } {
    const at = this.#world.lineOf(item);
    const sizes = { held: SIZES, moved: Math.round(this.#world.foundPart(item) * SIZES) };
    const wholesale = this.#wholesale[item] as Wholesale;
    const refresh = { at: minute, minutes, sizes, wholesale };
    const { line, turn, explained } = weighRefresh(this.#lines[at] as Line, refresh, this.#releases);
    this.#lines[at] = line;
    this.hazards[item] = 0;
    if (!explained) this.#wholesale[item] = learnWholesale(wholesale, minutes, isWholesale(sizes));
    if (turn !== null) this.#turn(at, turn, minute);
    const known = { weight: this.#world.weights[item] as number, rate: this.#ledger.rate(item) };
    return { explained, again: releaseRecheckMinutes(line, refresh, known, this.#ledger) };
  }

  #turn(at: number, turn: LineTransition, minute: number): void {
    this.turns[turn] += 1;
    const line = this.#lines[at] as Line;
    if (turn === 'suspected') {
      const panel = panelOf(line, this.#others(at, minute), this.#ledger, minute);
      if (panel.length === 0) this.#lines[at] = dismissed(line);
      this.#pull(panel, minute);
      return;
    }
    this.#releases = { ...this.#releases, threshold: thresholdAfter(this.#releases.threshold, turn) };
    if (turn === 'confirmed')
      this.#pull(releasedMembers(line, this.#others(at, minute), this.#ledger, minute), minute);
    else this.#putBack(at, minute);
  }

  #others(at: number, minute: number): LineMember[] {
    return (this.#members[at] ?? []).map((item) => ({
      sku: String(item),
      weight: this.#world.weights[item] as number,
      rate: this.#ledger.rate(item),
      minutes: minute - (this.#world.lastRefresh[item] as number),
      dueIn: this.#ledger.dueAt(item) - minute,
    }));
  }

  #pull(pulled: readonly Pulled[], minute: number): void {
    for (const { sku, inMinutes, hazard } of pulled) {
      const item = Number(sku);
      this.hazards[item] = hazard;
      if (inMinutes !== null)
        this.#ledger.schedule(item, Math.min(this.#ledger.dueAt(item), minute + inMinutes));
    }
    const sooner = pulled.filter(({ inMinutes }) => inMinutes !== null).length;
    this.pulled += sooner;
    const early = earlyAfter(this.#releases, sooner, minute);
    this.#releases = { ...this.#releases, early, earlyAt: minute };
  }

  #putBack(at: number, minute: number): void {
    for (const item of this.#members[at] ?? []) {
      if (this.hazards[item] === 0) continue;
      this.hazards[item] = 0;
      const due = (this.#world.lastRefresh[item] as number) + this.#ledger.wait(item);
      this.#ledger.schedule(item, Math.max(minute, due));
    }
  }
}
