import type { Item, Market } from './market.ts';
import type { Settings } from './options.ts';
import { createRng, mix, type Rng } from './rng.ts';

/*
 * A source of hints, like a seller's other services: it misses some moves of live SKUs, and reports some false
 * ones.
 */

/** A SKU that has probably moved. */
export interface ToldHint {
  /** Counts up from 1. */
  readonly id: number;
  readonly sku: string;
  /** Epoch milliseconds of the move. */
  readonly at: number;
}

/** The hints after an id. */
export interface ToldHints {
  readonly hints: readonly ToldHint[];
  /** The id to continue after. */
  readonly next: number;
  /** Hints after the asked id that are no longer stored. */
  readonly missed: number;
}

/** Maximum of stored hints, and of hints in one answer. */
const KEPT = 10_000;
const MAX_TOLD = 1000;
/** Random draws in search of a live SKU. If hardly any is live and none is drawn, they are listed instead. */
const TRIES = 1000;

/**
 * Reports moves of live SKUs with probability `hintRecall`, and enough SKUs that did not move that `hintPrecision`
 * of all hints is true. Several moves of one SKU between two reports count as one. Uses its own random generator,
 * so the market is the same without it.
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

  /** Reports what has moved since the last report. */
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

  /** Returns the hints after an id, oldest first. An unknown id (from before a reset) counts as the newest. */
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

  /** Returns whether a mirror contains it as a live SKU. */
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
