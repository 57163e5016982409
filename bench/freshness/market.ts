import { exponential, gauss, seeded } from './random.ts';

export type Weights = 'zipf' | 'watch' | 'uniform';

/** A median SKU changes once in six hours, and rates are spread log-normally about that. Times in minutes. */
const MEDIAN_MINUTES = 360;
const SPREAD = 1.5;

/** Live SKUs as a mirror meets them. Times in minutes. */
export interface LiveMarket {
  readonly size: number;
  readonly weights: Float64Array;
  readonly lastRefresh: Float64Array;
  /** Refresh of a SKU; tells whether its price had moved since the last refresh. */
  refresh(item: number, now: number, accounts: readonly Account[]): boolean;
  /** Whether the price is the one that the last refresh found. */
  isRight(item: number, now: number): boolean;
  /** What the last refresh has found, and the one before it: equal prices are equal numbers. */
  found(item: number): { readonly price: number; readonly before: number };
}

/** Live SKUs with their true rates, and the account of how fresh the mirror's view of them is. */
export class Market implements LiveMarket {
  readonly size: number;
  readonly weights: Float64Array;
  readonly rates: Float64Array;
  readonly lastRefresh: Float64Array;
  readonly #nextChange: Float64Array;
  readonly #moves: Uint32Array;
  readonly #random: () => number;
  readonly #medianMinutes: number;
  readonly #spread: number;

  constructor(
    size: number,
    weights: Weights,
    seed: number,
    medianMinutes: number = MEDIAN_MINUTES,
    spread: number = SPREAD,
  ) {
    this.size = size;
    this.#spread = spread;
    this.#medianMinutes = medianMinutes;
    this.#random = seeded(seed);
    this.rates = this.#drawRates();
    this.weights = drawWeights(size, weights, this.#random);
    this.lastRefresh = new Float64Array(size);
    this.#moves = new Uint32Array(size);
    this.#nextChange = this.rates.map((rate) => exponential(this.#random, rate));
  }

  #drawRates(): Float64Array {
    return Float64Array.from(
      { length: this.size },
      () => Math.exp(this.#spread * gauss(this.#random)) / this.#medianMinutes,
    );
  }

  /** As if every SKU had been refreshed some time in the last `minutes`; some have moved since. */
  refreshedWithin(minutes: number): void {
    for (let i = 0; i < this.size; i += 1) {
      this.lastRefresh[i] = -minutes * this.#random();
      this.#nextChange[i] =
        (this.lastRefresh[i] as number) + exponential(this.#random, this.rates[i] as number);
    }
  }

  /** In how many of `refreshes` refreshes, `apart` minutes one after the other, a SKU's price would have moved. */
  pastMoves(item: number, refreshes: number, apart: number): number {
    const chance = -Math.expm1(-(this.rates[item] as number) * apart);
    let moves = 0;
    for (let refresh = 0; refresh < refreshes; refresh += 1) moves += Number(this.#random() < chance);
    return moves;
  }

  /** The habits of all SKUs change at `now`; what has already changed unseen stays unseen. */
  redraw(now: number): void {
    this.rates.set(this.#drawRates());
    for (let i = 0; i < this.size; i += 1) {
      if ((this.#nextChange[i] as number) > now)
        this.#nextChange[i] = now + exponential(this.#random, this.rates[i] as number);
    }
  }

  /** Refresh of a SKU; tells whether its price had moved since the last refresh, and books the time in between. */
  refresh(item: number, now: number, accounts: readonly Account[]): boolean {
    const changedAt = this.#nextChange[item] as number;
    for (const account of accounts)
      account.book(this.weights[item] as number, this.lastRefresh[item] as number, changedAt, now);
    this.lastRefresh[item] = now;
    if (changedAt > now) return false;
    this.#nextChange[item] = now + exponential(this.#random, this.rates[item] as number);
    this.#moves[item] = (this.#moves[item] as number) + 1;
    return true;
  }

  /** Each move is to another price. */
  found(item: number): { readonly price: number; readonly before: number } {
    const price = this.#moves[item] as number;
    return { price, before: price - 1 };
  }

  /** Whether the price is the one that the last refresh found. */
  isRight(item: number, now: number): boolean {
    return (this.#nextChange[item] as number) > now;
  }

  /** Books the time after each SKU's last refresh. */
  close(now: number, accounts: readonly Account[]): void {
    for (let i = 0; i < this.size; i += 1) {
      for (const account of accounts) {
        account.book(
          this.weights[i] as number,
          this.lastRefresh[i] as number,
          this.#nextChange[i] as number,
          now,
        );
      }
    }
  }
}

/** Weights with a mean of 1, dealt out at random. */
export function drawWeights(size: number, kind: Weights, random: () => number): Float64Array {
  const order = Array.from({ length: size }, (_, i) => i);
  for (let i = size - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  const raw = order.map((rank) =>
    kind === 'zipf' ? 1 / (rank + 1) : kind === 'watch' && rank < size * 0.02 ? 20 : 1,
  );
  const mean = raw.reduce((sum, weight) => sum + weight, 0) / size;
  return Float64Array.from(raw, (weight) => weight / mean);
}

/** Weighted freshness and wrong-price minutes from `since` on; a price is wrong from its change to the next refresh. */
export class Account {
  readonly since: number;
  #fresh = 0;
  #wrongMinutes = 0;
  #weightTime = 0;
  #worst = 0;

  constructor(since: number) {
    this.since = since;
  }

  book(weight: number, refreshedAt: number, changedAt: number, now: number): void {
    if (now <= this.since) return;
    const from = Math.max(refreshedAt, this.since);
    this.#weightTime += weight * (now - from);
    this.#fresh += weight * Math.max(0, Math.min(changedAt, now) - from);
    if (changedAt < now) {
      const wrongFrom = Math.max(changedAt, from);
      this.#wrongMinutes += (weight * ((now - changedAt) ** 2 - (wrongFrom - changedAt) ** 2)) / 2;
    }
    if (refreshedAt >= this.since) this.#worst = Math.max(this.#worst, now - refreshedAt);
  }

  /**
   * Weighted part of the time that prices were right; mean minutes that a price had been wrong; longest wait in
   * minutes.
   */
  result(): { freshness: number; wrongMinutes: number; worstMinutes: number } {
    return {
      freshness: this.#fresh / this.#weightTime,
      wrongMinutes: this.#wrongMinutes / this.#weightTime,
      worstMinutes: this.#worst,
    };
  }
}
