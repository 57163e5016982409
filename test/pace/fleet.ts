import type { Clock } from '../../src/lib/clock.ts';
import type { PaceLedger, PaceUpdate, PaceView } from '../../src/pace/ledger.ts';
import type { PaceState } from '../../src/pace/policy.ts';

/** A ledger in memory, on a clock of its own, in which waiters wake in order of time. */
export class Fleet {
  now = 0;
  state: PaceState | null = null;
  readonly sends: number[] = [];
  readonly clock: Clock = {
    now: () => this.now,
    monotonic: () => this.now,
    sleep: (ms) => this.sleep(ms),
  };
  #waiting: { readonly at: number; readonly wake: () => void }[] = [];

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => this.#waiting.push({ at: this.now + ms, wake }));
  }

  async play(until: () => boolean): Promise<void> {
    for (;;) {
      await new Promise(setImmediate);
      if (until()) return;
      const next = this.#waiting.toSorted((one, other) => one.at - other.at)[0];
      if (next === undefined) throw new Error('nobody waits');
      this.#waiting = this.#waiting.filter((each) => each !== next);
      this.now = Math.max(this.now, next.at);
      next.wake();
    }
  }

  /** A process's connection to the ledger, which takes `ms` milliseconds one way. */
  reachedIn(ms: () => number): PaceLedger {
    return {
      withPace: async <T>(spanMs: number, update: (view: PaceView) => PaceUpdate<T>) => {
        await this.sleep(ms());
        const now = Math.floor(this.now);
        while ((this.sends[0] ?? now) <= now - spanMs) this.sends.shift();
        const sends = [...this.sends];
        const { state, send, result } = update({ state: this.state, sends, others: 0, pause: null, now });
        if (state !== undefined) this.state = state;
        if (send !== undefined) this.sends.push(now);
        await this.sleep(ms());
        return { result, sendId: null };
      },
      unsend: async () => Promise.resolve(),
    };
  }
}
