/** More would keep the sandbox from answering for seconds. */
const MAX_TURNS = 20_000;

/** Something that happens by itself, every so many milliseconds. */
interface Duty {
  readonly everyMs: number;
  readonly act: () => void;
  nextAt: number;
}

/**
 * The sandbox's clock. One that stands moves only when told, and what happens by itself then happens at its moments;
 * so equal calls give equal bytes. One that runs may be put ahead in the same way.
 */
export class SandboxClock {
  readonly #source: () => number;
  readonly #startAt: number | null;
  readonly #duties: Duty[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  /** The moment that is now; null = it runs. */
  #at: number | null;
  #aheadMs = 0;

  /** `source` is a wall clock (epoch milliseconds); with `startAt` the clock stands there instead. */
  constructor(source: () => number, startAt: number | null) {
    this.#source = source;
    this.#startAt = startAt;
    this.#at = startAt;
  }

  get stands(): boolean {
    return this.#startAt !== null;
  }

  readonly now = (): number => this.#at ?? this.#source() + this.#aheadMs;

  /** Has `act` happen every so often; 0 = never. */
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

  /** How many turns of what happens by itself an advance would hold. */
  turnsWithin(ms: number): number {
    const until = this.now() + ms;
    const turns = this.#duties.map(({ everyMs, nextAt }) => Math.floor((until - nextAt) / everyMs) + 1);
    return turns.reduce((sum, count) => sum + Math.max(0, count), 0);
  }

  /**
   * Goes `ms` ahead, through everything that happens by itself on the way. False = too much of it; nothing was done.
   */
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

  /** Back to how it began. */
  reset(): void {
    this.#at = this.#startAt;
    this.#aheadMs = 0;
    for (const duty of this.#duties) duty.nextAt = this.now() + duty.everyMs;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** The earliest duty that is due until then; of two at one moment the one that was added first. */
  #nextUntil(until: number): Duty | undefined {
    return this.#duties
      .filter(({ nextAt }) => nextAt <= until)
      .reduce<Duty | undefined>(
        (first, duty) => (first && first.nextAt <= duty.nextAt ? first : duty),
        undefined,
      );
  }
}
