import { exponential, seeded } from '../../bench/freshness/random.ts';
import type { Raw } from './partner.ts';
import type { Rig } from './rig.ts';

/** A market in which each SKU moves by itself. Times in minutes. */
export interface LivelyMarket {
  /** The mean time between two moves of a SKU differs evenly between these. */
  readonly betweenMoves: readonly [number, number];
  /** The part of its sizes that moves with it, at least. */
  readonly leastPart: number;
  readonly betweenSnapshots: number;
}

interface Item {
  readonly sku: string;
  readonly mean: number;
  readonly part: number;
  readonly sizes: Map<string, number>;
  nextAt: number;
}

/** What was claimed of prices, and how many of them were right. */
export interface Claims {
  readonly prices: number;
  readonly claimed: number;
  readonly right: number;
  readonly actionable: number;
}

const MINUTE = 60_000;

/** The rig's world as such a market, which goes on whenever somebody asks. */
export class Lively {
  readonly #rig: Rig;
  readonly #market: LivelyMarket;
  readonly #random: () => number;
  readonly #items: readonly Item[];
  #builtAt: number;

  constructor(rig: Rig, market: LivelyMarket, seed: number) {
    this.#rig = rig;
    this.#market = market;
    this.#random = seeded(seed);
    this.#builtAt = rig.time.at;
    const [least, most] = market.betweenMoves;
    this.#items = [...rig.partner.world.truth().values()].map(({ sku, sizeMap }) => {
      const mean = least + (most - least) * this.#random();
      const part = market.leastPart + (1 - market.leastPart) * this.#random();
      const sizes = new Map(Object.entries(sizeMap).map(([size, price]) => [size, price ?? 1000]));
      return { sku, mean, part, sizes, nextAt: rig.time.at + this.#wait(mean) };
    });
  }

  /** Weather in which the partner's answers are of this market. */
  readonly answer = (): Raw | null => {
    this.goOn();
    return null;
  };

  /** Up to the present. */
  goOn(): void {
    const { partner, time } = this.#rig;
    const every = this.#market.betweenSnapshots * MINUTE;
    for (; this.#builtAt + every <= time.at; partner.world.buildSnapshot()) {
      this.#builtAt += every;
      this.#moveUntil(this.#builtAt);
    }
    this.#moveUntil(time.at);
  }

  /** What the mirror says of snapshot prices that nothing speaks against, and how many of them are right. */
  async judge(): Promise<Claims> {
    this.goOn();
    const rows = await this.#rig.sql<
      { sku: string; size: string; price: number; claimed: number; actionable: boolean }[]
    >`
      select sku, size, price, p_right as claimed, actionable from catalog.current_prices
      where price is not null and price_source = 'snapshot' and doubt is null`;
    const truth = new Map(this.#items.map(({ sku, sizes }) => [sku, sizes]));
    return {
      prices: rows.length,
      claimed: rows.reduce((sum, { claimed }) => sum + claimed, 0),
      right: rows.filter(({ sku, size, price }) => truth.get(sku)?.get(size) === price).length,
      actionable: rows.filter(({ actionable }) => actionable).length,
    };
  }

  #wait(mean: number): number {
    return exponential(this.#random, 1 / mean) * MINUTE;
  }

  #moveUntil(at: number): void {
    const { world } = this.#rig.partner;
    for (const item of this.#items) {
      if (item.nextAt > at) continue;
      for (; item.nextAt <= at; item.nextAt += this.#wait(item.mean)) this.#move(item);
      for (const [size, price] of item.sizes) world.setPrice(item.sku, size, price);
    }
  }

  /** To other prices near those of before, none of which is implausible. */
  #move({ sizes, part }: Item): void {
    const drawn = [...sizes.keys()].filter(() => this.#random() < part);
    for (const size of drawn.length > 0 ? drawn : [...sizes.keys()].slice(0, 1)) {
      const step = this.#random() < 0.5 ? 1 : -1;
      sizes.set(size, (sizes.get(size) ?? 0) + step * (1 + Math.floor(3 * this.#random())));
    }
  }
}
