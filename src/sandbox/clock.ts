/** More than this would keep the sandbox from answering for seconds. */
const MAX_TURNS = 20_000;

/** Something that happens on its own at a fixed interval. */
interface Duty {
  readonly everyMs: number;
  readonly act: () => void;
  nextAt: number;
}

/**
 * The sandbox's clock. A stopped clock moves only when told, and whatever is due on the way then happens at its
 * time; so equal calls give equal bytes. A running clock can be advanced in the same way.
 */
export class SandboxClock {
  readonly #source: () => number;
  readonly #startAt: number | null;
  readonly #duties: Duty[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  /** The present moment; null if the clock runs. */
  #at: number | null;
  #aheadMs = 0;

  /** `source` is a wall clock (epoch milliseconds); with `startAt` the clock stands at that time instead. */
  constructor(source: () => number, startAt: number | null) {
    this.#source = source;
    this.#startAt = startAt;
    this.#at = startAt;
  }

  get stands(): boolean {
    return this.#startAt !== null;
  }

  readonly now = (): number => this.#at ?? this.#source() + this.#aheadMs;

  /** Calls `act` at this interval; 0 means never. */
  every(everyMs: number, act: () => void): void {
    if (everyMs <= 0) return;
    const duty = { everyMs, act, nextAt: this.now() + everyMs };
    this.#duties.push(duty);
    if (this.stands) return;
    const timer = setInterval(() => {
      duty.nextAt = this.now() + everyMs;
      act();
    }, everyMs);
    this.#timers.push(timer.unref());
  }

  /** Returns how many scheduled calls an advance by `ms` would contain. */
  turnsWithin(ms: number): number {
    const until = this.now() + ms;
    const turns = this.#duties.map(({ everyMs, nextAt }) => Math.floor((until - nextAt) / everyMs) + 1);
    return turns.reduce((sum, count) => sum + Math.max(0, count), 0);
  }

  /** Advances by `ms`, through everything on the way. Returns false, doing nothing, if that is too much. */
  advance(ms: number): boolean {
    if (this.turnsWithin(ms) > MAX_TURNS) return false;
    const until = this.now() + ms;
    for (let duty = this.#nextUntil(until); duty !== undefined; duty = this.#nextUntil(until)) {
      this.#at = Math.max(this.now(), duty.nextAt);
      duty.nextAt += duty.everyMs;
      duty.act();
    }
    if (this.stands) this.#at = until;
    else {
      this.#at = null;
      this.#aheadMs += ms;
    }
    return true;
  }

  /** Returns to the initial state. */
  reset(): void {
    this.#at = this.#startAt;
    this.#aheadMs = 0;
    for (const duty of this.#duties) duty.nextAt = this.now() + duty.everyMs;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Returns the earliest duty that is due by then; of two at the same time the one that was added first. */
  #nextUntil(until: number): Duty | undefined {
    return this.#duties
      .filter(({ nextAt }) => nextAt <= until)
      .reduce<Duty | undefined>(
        (first, duty) => (first && first.nextAt <= duty.nextAt ? first : duty),
        undefined,
      );
  }
}
