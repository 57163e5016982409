/** The partner's side: so many live computations a call, and a hidden ceiling on them in any rolling minute. */
export class CeilingServer {
  readonly #budget: number;
  readonly #ceiling: number;
  readonly #log: { readonly at: number; readonly computed: number }[] = [];
  #sum = 0;

  constructor(budget: number, ceiling: number | null) {
    this.#budget = budget;
    this.#ceiling = ceiling ?? Infinity;
  }

  /** Live computations of the last minute. */
  recent(now: number): number {
    while ((this.#log[0]?.at ?? Infinity) <= now - 60_000) this.#sum -= this.#log.shift()?.computed ?? 0;
    return this.#sum;
  }

  /** How many of `asked` live SKUs are computed now. */
  compute(asked: number, now: number): number {
    const computed = Math.max(0, Math.min(asked, this.#budget, this.#ceiling - this.recent(now)));
    this.#log.push({ at: now, computed });
    this.#sum += computed;
    return computed;
  }

  /** Answers a call: those of its live SKUs that come too late in it are deferred. */
  answer<T extends { readonly live: boolean }>(
    asked: readonly T[],
    now: number,
  ): { computed: number; deferred: T[] } {
    const live = asked.filter((sku) => sku.live);
    const computed = this.compute(live.length, now);
    return { computed, deferred: live.slice(computed) };
  }
}
