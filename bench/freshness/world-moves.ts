import { exponential, gauss, poisson, seeded } from './random.ts';

/*
 * How moves of live SKUs come in markets that are not stationary: as events, all drawn beforehand from one source.
 * Mean rates are those of market.ts where nothing else is said, so that what differs is how moves come, not how many.
 * Times in minutes.
 */

const DAY = 24 * 60;
/** SKUs of a line (one brand and model), and the part of the log variance of rates that its SKUs share. */
export const LINE = 200;
const LINE_PART = 0.3;
/** Asleep: one move a month. */
const ASLEEP_RATE = 1 / (30 * DAY);
/** Hot: for four hours on average, 4 % of the time, thirty times as lively as else. */
const HOT = { minutes: 240, part: 0.04, times: 30 };
/** A release moves 70 % of a line, most of it within minutes; every eight hours there is one in each line. */
const RELEASE = { part: 0.7, delay: 3, every: 480 };
/** A flash move is back after four minutes. */
const FLASH_MINUTES = 4;
/** A twentieth of the SKUs are replaced each day; new ones are ten times as lively for six hours. */
const CHURN = { aDay: 0.05, times: 10, minutes: 360 };
/** Clocks: half of the SKUs move at quarters of an hour only, up to three minutes after. */
const TICK = 15;
const TICK_PHASE = 3;

export interface WorldKind {
  readonly medianMinutes?: number;
  readonly sigma?: number;
  /** Part of the SKUs that move once a month. */
  readonly asleep?: number;
  /** Rates go up and down by this part of them in a day. */
  readonly cycle?: number;
  /** Each move brings others about: by so many on average, from and to. */
  readonly bursts?: readonly [number, number];
  readonly regimes?: boolean;
  readonly releases?: boolean;
  readonly flash?: boolean;
  readonly churn?: boolean;
  readonly clocks?: boolean;
  /** Rates go with this power of the weight. */
  readonly popular?: number;
  /** Whether the SKUs of a line are alike. */
  readonly lines?: boolean;
}

export interface Move {
  readonly at: number;
  readonly value: number;
  /** The part of its sizes that move. */
  readonly part: number;
}

/** A release moves most of a SKU's sizes, a flash one; one of four other moves half of them or more. */
const MIN_RELEASED = 0.6;
const FLASH_PART = 1 / 15;
const ownPart = (value: number) => Math.max(FLASH_PART, seeded(value)() ** 2.5);
const releasedPart = (value: number) => MIN_RELEASED + (1 - MIN_RELEASED) * seeded(value)();

/** How a world comes about: everything in it is drawn from one source. */
export class Drawing {
  readonly random: () => number;
  readonly #kind: WorldKind;
  readonly #minutes: number;
  #values = 0;

  constructor(kind: WorldKind, minutes: number, random: () => number) {
    this.#kind = kind;
    this.#minutes = minutes;
    this.random = random;
  }

  rates(weights: Float64Array): Float64Array {
    const { lines = true } = this.#kind;
    const part = lines ? LINE_PART : 0;
    let line = 0;
    return weights.map((weight, item) => {
      if (item % LINE === 0) line = gauss(this.random);
      return this.#rate(Math.sqrt(part) * line + Math.sqrt(1 - part) * gauss(this.random), weight);
    });
  }

  #rate(normal: number, weight: number): number {
    const { medianMinutes = 360, sigma = 1.5, asleep = 0, popular = 0 } = this.#kind;
    if (this.random() < asleep) return ASLEEP_RATE;
    return (Math.exp(sigma * normal) / medianMinutes) * weight ** popular;
  }

  /** Where there are releases, half of the other moves are left. */
  withReleases(rate: number): number {
    return this.#kind.releases === true ? rate / 2 + RELEASE.part / RELEASE.every : rate;
  }

  replaced(size: number): { at: number; item: number; rate: number }[] {
    if (this.#kind.churn !== true) return [];
    const replaced: { at: number; item: number; rate: number }[] = [];
    const rate = (CHURN.aDay * size) / DAY;
    for (let at = exponential(this.random, rate); at < this.#minutes; at += exponential(this.random, rate)) {
      const item = Math.floor(this.random() * size);
      replaced.push({ at, item, rate: this.#rate(gauss(this.random), 1) });
    }
    return replaced;
  }

  moves(
    rates: Float64Array,
    replaced: readonly { readonly at: number; readonly item: number; readonly rate: number }[],
  ): Move[][] {
    const lasting = Array.from(rates, (rate) => this.#own(rate, 0, this.#minutes));
    for (const { at, item, rate } of replaced) {
      const young = Math.min(at + CHURN.minutes, this.#minutes);
      lasting[item] = [
        ...(lasting[item] ?? []).filter((move) => move < at),
        at,
        ...this.#own(rate * CHURN.times, at, young),
        ...this.#own(rate, young, this.#minutes),
      ];
    }
    const released = new Set<number>();
    if (this.#kind.releases === true) this.#release(lasting, released);
    return lasting.map((times, item) =>
      this.#valued(...this.#ticking(times, item, released), rates[item] ?? 0),
    );
  }

  /** Moves that a SKU makes by itself, at a mean of `rate` (releases apart). */
  #own(rate: number, from: number, until: number): number[] {
    const { bursts, regimes = false, releases = false } = this.#kind;
    const own = releases ? rate / 2 : rate;
    const branching = bursts === undefined ? 0 : bursts[0] + this.random() * (bursts[1] - bursts[0]);
    const kernel = 5 * 36 ** this.random();
    const first: number[] = [];
    const usual = 1 / (1 + HOT.part * (HOT.times - 1));
    for (let [at, hot] = [from, this.random() < HOT.part]; at < until; hot = !hot) {
      const length = exponential(
        this.random,
        1 / (hot ? HOT.minutes : (HOT.minutes * (1 - HOT.part)) / HOT.part),
      );
      const end = regimes ? Math.min(until, at + length) : until;
      const times = regimes ? usual * (hot ? HOT.times : 1) : 1;
      this.#poisson(own * times * (1 - branching), at, end, first);
      at = end;
    }
    return this.#excited(first, branching, kernel, until);
  }

  #poisson(rate: number, from: number, until: number, into: number[]): void {
    const { cycle = 0 } = this.#kind;
    const most = rate * (1 + cycle);
    for (let at = from + exponential(this.random, most); at < until; at += exponential(this.random, most)) {
      const now = 1 + cycle * Math.sin((2 * Math.PI * at) / DAY);
      if (this.random() * (1 + cycle) < now) into.push(at);
    }
  }

  #excited(first: readonly number[], branching: number, kernel: number, until: number): number[] {
    const all = [...first];
    if (branching === 0) return all;
    for (let at = 0; at < all.length; at += 1) {
      for (let left = poisson(this.random, branching); left > 0; left -= 1) {
        const time = (all[at] as number) + exponential(this.random, 1 / kernel);
        if (time < until) all.push(time);
      }
    }
    return all.toSorted((a, b) => a - b);
  }

  #release(lasting: number[][], released: Set<number>): void {
    for (let line = 0; line < lasting.length; line += LINE) {
      const every = 1 / RELEASE.every;
      for (
        let at = exponential(this.random, every);
        at < this.#minutes;
        at += exponential(this.random, every)
      )
        for (let item = line; item < Math.min(line + LINE, lasting.length); item += 1)
          if (this.random() < RELEASE.part) {
            const time = at + exponential(this.random, 1 / RELEASE.delay);
            lasting[item]?.push(time);
            released.add(time);
          }
    }
  }

  /** When a SKU moves, and which of these times a release has brought about. */
  #ticking(
    times: readonly number[],
    item: number,
    released: ReadonlySet<number>,
  ): [number[], ReadonlySet<number>] {
    const sorted = times.toSorted((a, b) => a - b);
    if (this.#kind.clocks !== true || item % 2 === 0) return [sorted, released];
    const phase = this.random() * TICK_PHASE;
    const ticked = (time: number) => Math.ceil(time / TICK) * TICK + phase;
    return [
      [...new Set(sorted.map(ticked))],
      new Set(sorted.filter((time) => released.has(time)).map(ticked)),
    ];
  }

  #valued(times: readonly number[], released: ReadonlySet<number>, rate: number): Move[] {
    const moves = times.map((at): Move => {
      const value = (this.#values += 1);
      return { at, value, part: released.has(at) ? releasedPart(value) : ownPart(value) };
    });
    if (this.#kind.flash !== true) return moves;
    const flashes: number[] = [];
    this.#poisson(rate, 0, this.#minutes, flashes);
    const all = [...moves];
    let before = -1;
    for (const at of flashes) {
      while ((times[before + 1] ?? Infinity) <= at) before += 1;
      all.push({ at, value: (this.#values += 1), part: FLASH_PART });
      const back = at + FLASH_MINUTES;
      if ((times[before + 1] ?? Infinity) > back)
        all.push({ at: back, value: moves[before]?.value ?? 0, part: 0 });
    }
    return all.toSorted((a, b) => a.at - b.at);
  }
}
