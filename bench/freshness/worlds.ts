import { drawWeights, type LiveMarket } from './market.ts';
import { seeded } from './random.ts';
import { Drawing, LINE, type Move, type WorldKind } from './world-moves.ts';

/** The kinds of markets that figures are wanted for. */
export const WORLDS = {
  stationary: { lines: false },
  cycle: { cycle: 0.8 },
  bursts: { bursts: [0.5, 0.8] },
  regimes: { regimes: true },
  releases: { releases: true },
  'heavy tail': { medianMinutes: 120, sigma: 2.25, asleep: 0.6 },
  'flash moves': { flash: true },
  churn: { churn: true },
  clocks: { clocks: true },
  'all of it': {
    sigma: 2,
    asleep: 0.4,
    cycle: 0.8,
    bursts: [0.5, 0.8],
    regimes: true,
    releases: true,
    flash: true,
    churn: true,
    clocks: true,
    popular: 0.3,
  },
} as const satisfies Readonly<Record<string, WorldKind>>;
export type WorldName = keyof typeof WORLDS;

/** Live SKUs of such a market, and what the mirror holds of each. */
export class World implements LiveMarket {
  readonly size: number;
  readonly weights: Float64Array;
  /** Mean moves a minute of each SKU, releases included. */
  readonly rates: Float64Array;
  readonly lastRefresh: Float64Array;
  /** Weighted part of the SKUs that were right, by hour. */
  readonly hours: number[] = [];
  /** Weighted part of the sizes that were wrong, likewise. */
  readonly #wrong: number[] = [];
  #worst = 0;
  #refreshes = 0;
  readonly #moves: readonly (readonly Move[])[];
  readonly #at: Uint32Array;
  readonly #value: Float64Array;
  readonly #held: Float64Array;
  readonly #heldBefore: Float64Array;
  /** The part of its sizes that has moved since its last refresh, and what the last refresh has found of it. */
  readonly #part: Float64Array;
  readonly #found: Float64Array;
  readonly #replaced: { readonly at: number; readonly item: number; readonly rate: number }[];
  #replacedUntil = 0;
  #minutes = 0;

  constructor(size: number, name: WorldName, hours: number, seed: number) {
    const draw = new Drawing(WORLDS[name], hours * 60, seeded(seed));
    this.size = size;
    this.weights = drawWeights(size, 'zipf', draw.random);
    this.rates = draw.rates(this.weights);
    const replaced = draw.replaced(size);
    this.#moves = draw.moves(this.rates, replaced);
    this.#replaced = replaced.map((each) => ({ ...each, rate: draw.withReleases(each.rate) }));
    this.lastRefresh = new Float64Array(size);
    this.#at = new Uint32Array(size);
    this.#value = new Float64Array(size);
    this.#held = new Float64Array(size);
    this.#heldBefore = new Float64Array(size);
    this.#part = new Float64Array(size);
    this.#found = new Float64Array(size);
    for (const [item, rate] of this.rates.entries()) this.rates[item] = draw.withReleases(rate);
  }

  #advance(item: number, now: number): void {
    const moves = this.#moves[item] ?? [];
    let at = this.#at[item] as number;
    for (let next = moves[at]; next !== undefined && next.at <= now; next = moves[at]) {
      this.#value[item] = next.value;
      this.#part[item] = 1 - (1 - (this.#part[item] as number)) * (1 - next.part);
      at += 1;
    }
    this.#at[item] = at;
  }

  /**
   * SKUs that were replaced by new ones since it was last asked: they are refreshed at once, and nothing is known of
   * them.
   */
  replacedUntil(now: number): number[] {
    const items: number[] = [];
    for (
      let next = this.#replaced[this.#replacedUntil];
      next !== undefined && next.at <= now;
      next = this.#replaced[this.#replacedUntil]
    ) {
      this.rates[next.item] = next.rate;
      items.push(next.item);
      this.#replacedUntil += 1;
    }
    return items;
  }

  refresh(item: number, now: number): boolean {
    this.#refreshes += 1;
    this.#worst = Math.max(this.#worst, now - (this.lastRefresh[item] as number));
    this.#advance(item, now);
    this.lastRefresh[item] = now;
    const moved = this.#value[item] !== this.#held[item];
    this.#heldBefore[item] = this.#held[item] as number;
    this.#held[item] = this.#value[item] as number;
    this.#found[item] = moved ? (this.#part[item] as number) : 0;
    this.#part[item] = 0;
    return moved;
  }

  /** All moves of a SKU that last, in order of their times. */
  movesOf(item: number): readonly Move[] {
    return (this.#moves[item] ?? []).filter(({ part }) => part > 0);
  }

  lineOf(item: number): number {
    return Math.floor(item / LINE);
  }

  /** Of how many sizes the last refresh of a SKU has found moved. */
  foundPart(item: number): number {
    return this.#found[item] as number;
  }

  found(item: number): { readonly price: number; readonly before: number } {
    return { price: this.#held[item] as number, before: this.#heldBefore[item] as number };
  }

  isRight(item: number, now: number): boolean {
    this.#advance(item, now);
    return this.#value[item] === this.#held[item];
  }

  /** Looks at all SKUs, once a minute. */
  sample(now: number): void {
    let [right, wrong, all] = [0, 0, 0];
    for (let item = 0; item < this.size; item += 1) {
      const weight = this.weights[item] as number;
      all += weight;
      if (this.isRight(item, now)) right += weight;
      else wrong += weight * (this.#part[item] as number);
    }
    const hour = Math.floor(this.#minutes / 60);
    this.hours[hour] = (this.hours[hour] ?? 0) + right / all / 60;
    this.#wrong[hour] = (this.#wrong[hour] ?? 0) + wrong / all / 60;
    this.#minutes += 1;
  }

  /** Mean of hours, `from` and before `until`. */
  freshness(from: number, until: number): number {
    return mean(this.hours.slice(from, until));
  }

  /** The part of the sizes that were wrong: what prices are wrong by, where each move of one is as far as any other. */
  error(from: number, until: number): number {
    return mean(this.#wrong.slice(from, until));
  }

  /** The longest time between two refreshes of a SKU so far, in rounds of as many refreshes as there are SKUs. */
  worstRounds(now: number): number {
    return (this.#worst * this.#refreshes) / now / this.size;
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
