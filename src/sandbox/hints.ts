import type { Item, Market } from './market.ts';
import type { Settings } from './options.ts';
import { createRng, mix, type Rng } from './rng.ts';

/*
 * Somebody who sees signs of moves, as a seller's other services do: of some moves of live SKUs, and of some that are
 * none.
 */

/** A SKU that has probably moved. */
export interface ToldHint {
  /** Counts up from 1. */
  readonly id: number;
  readonly sku: string;
  /** Epoch milliseconds of the move. */
  readonly at: number;
}

/** What is told after an id. */
export interface ToldHints {
  readonly hints: readonly ToldHint[];
  /** The id to go on after. */
  readonly next: number;
  /** Hints after the asked id that are not kept any longer. */
  readonly missed: number;
}

/** Most hints that are kept, and that one answer has. */
const KEPT = 10_000;
const MAX_TOLD = 1000;
/** Draws by which a live SKU is looked for; where so few are live that none is drawn, they are listed. */
const TRIES = 1000;

/**
 * Tells of moves of live SKUs with a probability of `hintRecall`, and beside each of so many SKUs that did not move
 * that `hintPrecision` of all that it tells is true. Moves of one SKU between two tellings are one move. Has a
 * generator of its own: the market is the same without it.
 */
export class HintTeller {
  readonly #market: Market;
  readonly #recall: number;
  readonly #wrong: number;
  readonly #rng: Rng;
  #kept: ToldHint[] = [];
  #last = 0;

  constructor(
    market: Market,
    { seed, hintRecall, hintPrecision }: Pick<Settings, 'seed' | 'hintRecall' | 'hintPrecision'>,
  ) {
    this.#market = market;
    this.#recall = hintRecall;
    this.#wrong = (1 - hintPrecision) / hintPrecision;
    this.#rng = createRng(mix(seed, 33));
  }

  /** Tells of what has moved since it told last. */
  tell(): void {
    const { moved } = this.#market;
    for (const item of moved) {
      if (!this.#isSeen(item) || !this.#rng.chance(this.#recall)) continue;
      const at = item.market?.changedAt ?? 0;
      this.#keep(item, at);
      for (let left = this.#wrong; left > 0; left -= 1) {
        if (!this.#rng.chance(left)) continue;
        const other = this.#unmoved();
        if (other !== null) this.#keep(other, at);
      }
    }
    moved.clear();
    if (this.#kept.length > 2 * KEPT) this.#kept = this.#kept.slice(-KEPT);
  }

  /**
   * What was told after an id, the oldest first. One that is not known yet (of before a reset) is taken for the newest.
   */
  after(id: number): ToldHints {
    this.tell();
    const kept = this.#kept.slice(-KEPT);
    const first = this.#last - kept.length + 1;
    const hints = id > this.#last ? [] : kept.slice(Math.max(0, id + 1 - first)).slice(0, MAX_TOLD);
    return { hints, next: hints.at(-1)?.id ?? this.#last, missed: Math.max(0, first - 1 - id) };
  }

  #keep({ sku }: Item, at: number): void {
    this.#last += 1;
    this.#kept.push({ id: this.#last, sku, at });
  }

  /** Whether the mirror of somebody has it, as a live SKU. */
  #isSeen(item: Item): boolean {
    return item.rows && item.priceable && this.#market.isLive(item);
  }

  #unmoved(): Item | null {
    const { items, moved } = this.#market;
    const fits = (item: Item | undefined): item is Item =>
      item !== undefined && !moved.has(item) && this.#isSeen(item);
    for (let tryNumber = 0; tryNumber < TRIES; tryNumber += 1) {
      const item = items[this.#rng.int(items.length)];
      if (fits(item)) return item;
    }
    const all = items.filter(fits);
    return all[this.#rng.int(all.length)] ?? null;
  }
}
