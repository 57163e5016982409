import type { Clock } from '../../src/lib/clock.ts';
import { CONCURRENCY } from '../../src/queues/jobs.ts';
import type { IterationResult } from '../../src/sync/reprice/plan-call.ts';
import { type CallOnce, createSlice, type Slice } from '../../src/sync/reprice/slice.ts';

export const MINUTE = 60_000;
/** The calls a minute of the share. */
export const PACE = 118;
export const WAKE_MS = 1000;

/** A clock that stands still until told to advance. Sleepers wake in order of time. */
class TestClock implements Clock {
  #at = 0;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  now = () => this.#at;
  monotonic = () => this.#at;

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return;
    await new Promise<void>((wake) => {
      this.#sleepers.push({ at: this.#at + ms, wake });
      signal?.addEventListener('abort', () => wake());
    });
  }

  async pass(ms: number): Promise<void> {
    const end = this.#at + ms;
    for (;;) {
      await settled();
      const next = this.#sleepers.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.#sleepers = this.#sleepers.filter((sleeper) => sleeper !== next);
      this.#at = Math.max(this.#at, next.at);
      next.wake();
    }
    this.#at = end;
  }
}

/** Runs everything that does not wait for time. */
const settled = () => new Promise((resolve) => void setImmediate(resolve));

export const CALLED: IterationResult = { kind: 'called', skus: 100 };
export const FOREVER = Infinity;

/** A process: the production slice, its jobs as the queue starts them, and calls that a test decides about. */
export class TestProcess {
  readonly clock: TestClock;
  readonly stopping = new AbortController();
  readonly hard = new AbortController();
  /** When calls were sent, and how slices ended. */
  readonly sentAt: number[] = [];
  readonly ends: (Slice['end'] | Error)[] = [];
  planning = 0;
  mostPlanning = 0;
  underWay = 0;
  mostUnderWay = 0;
  jobs = 0;
  readonly #slice: (stopping: AbortSignal, hard: AbortSignal) => Promise<Slice>;
  #slotAt = 0;

  /** `answer` decides how a sent call ends; `before` what happens instead of a call, if anything. */
  constructor(
    answer: (n: number) => Promise<IterationResult>,
    before: () => IterationResult | Promise<null> | null = () => null,
    clock = new TestClock(),
  ) {
    this.clock = clock;
    const callOnce: CallOnce = async (_, signals, onSent) => {
      this.planning += 1;
      this.mostPlanning = Math.max(this.mostPlanning, this.planning);
      const instead = await this.#plan(before, signals.stopping).finally(() => (this.planning -= 1));
      if (instead !== null) return instead;
      if (signals.stopping.aborted) return { kind: 'wait', forMs: 0, because: 'stopping' };
      this.sentAt.push(this.clock.now());
      this.underWay += 1;
      this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
      onSent();
      return await answer(this.sentAt.length).finally(() => (this.underWay -= 1));
    };
    this.#slice = createSlice(this, callOnce);
  }

  /** Waits for a permit, unless something else is to be done. */
  async #plan(
    before: () => IterationResult | Promise<null> | null,
    stopping: AbortSignal,
  ): Promise<IterationResult | null> {
    const instead = await before();
    if (instead !== null) return instead;
    this.#slotAt = Math.max(this.#slotAt, this.clock.now());
    await this.clock.sleep(this.#slotAt - this.clock.now(), stopping);
    this.#slotAt += MINUTE / PACE;
    return null;
  }

  /** Starts a job, unless as many are running as the queue allows. */
  start(): Promise<void> {
    if (this.jobs >= CONCURRENCY.reprice) return Promise.resolve();
    this.jobs += 1;
    return this.#slice(this.stopping.signal, this.hard.signal)
      .then(
        ({ end }) => this.ends.push(end),
        (error: Error) => this.ends.push(error),
      )
      .then(() => void (this.jobs -= 1));
  }

  /** Lets time pass, with the queue's wake jobs. */
  async run(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += WAKE_MS) {
      void this.start();
      await this.clock.pass(Math.min(WAKE_MS, ms - at));
    }
  }

  /** Returns the calls sent in each whole minute after the first. */
  aMinute(minutes: number): number[] {
    return Array.from(
      { length: minutes - 1 },
      (_, n) => this.sentAt.filter((at) => at >= (n + 1) * MINUTE && at < (n + 2) * MINUTE).length,
    );
  }
}
