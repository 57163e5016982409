/** Events in a rolling window: an event exactly `windowMs` old no longer counts. */
export class RollingWindow {
  /** The most events that any window held so far. */
  peak = 0;
  readonly #windowMs: number;
  #times: number[] = [];
  #first = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Counts one event at `now` (epoch milliseconds); returns how many the window holds, this one included. */
  add(now: number): number {
    this.#times.push(now);
    const held = this.held(now);
    this.peak = Math.max(this.peak, held);
    return held;
  }

  /** How many events the window that ends at `now` holds. */
  held(now: number): number {
    for (let oldest = this.#times[this.#first]; oldest !== undefined && oldest <= now - this.#windowMs;) {
      this.#first += 1;
      oldest = this.#times[this.#first];
    }
    if (this.#first > 1024 && this.#first * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#first);
      this.#first = 0;
    }
    return this.#times.length - this.#first;
  }
}

/** The server-side ceiling on live computations (partner rule 4.1.3): hidden from clients, over all their calls. */
export class LiveCeiling {
  readonly #perMinute: number | null;
  readonly #window = new RollingWindow(60_000);

  constructor(perMinute: number | null) {
    this.#perMinute = perMinute;
  }

  /** Takes one computation where the ceiling allows; false = refused, nothing taken. */
  take(now: number): boolean {
    if (this.#perMinute !== null && this.#window.held(now) >= this.#perMinute) return false;
    this.#window.add(now);
    return true;
  }
}
