import { ok, strictEqual } from 'node:assert/strict';
import type { SkuResult } from '../../src/store/answer/types.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import type { PromiseCounts } from '../../src/store/sellers/promises.ts';

export const SKUS = ['A', 'B', 'C', 'D', 'E', 'F'];

interface Wish {
  readonly weight: number;
  readonly maxAge: number | null;
}

interface Promised extends Wish {
  since: number;
  feasible: boolean;
}

interface Known {
  state: 'pending' | 'priced' | 'not_found' | 'removed';
  live: boolean;
  asked: number;
  troubled: boolean;
  owner: string | null;
}

/** Returns how many seconds before it is broken a promise comes first. */
const leadOf = (maxAge: number) => Math.max(8, Math.min(45, maxAge / 5));

/** A model of what becomes of promises, without a database. */
export class PromiseOracle {
  /** What sellers have committed. */
  list = new Map<string, Wish>();
  /** What the mirror has read of it. */
  readonly #read = new Map<string, Promised>();
  readonly skus = new Map<string, Known>();
  capacity = { live: 0, others: 0 };
  passed = 0;

  get #now(): number {
    return performance.now() / 1000 + this.passed;
  }

  ageOf(sku: string): number | null {
    return this.#read.get(sku)?.maxAge ?? null;
  }

  notice(rows: readonly { sku: string; removed: boolean; live: boolean }[]): void {
    const present = new Set(rows.map(({ sku }) => sku));
    for (const sku of this.skus.keys()) if (!present.has(sku)) this.skus.delete(sku);
    for (const { sku, removed, live } of rows) {
      const known: Omit<Known, 'live'> = this.skus.get(sku) ?? {
        state: 'pending',
        asked: 0,
        troubled: false,
        owner: null,
      };
      this.skus.set(sku, Object.assign(known, { live, state: removed ? 'removed' : known.state }));
    }
  }

  allPriced(): void {
    for (const known of this.skus.values()) Object.assign(known, { state: 'priced', asked: this.#now });
  }

  /** Reads the list, and weighs the promises. */
  read(): void {
    for (const sku of this.#read.keys()) if (!this.list.has(sku)) this.#read.delete(sku);
    for (const [sku, wish] of this.list) {
      const before = this.#read.get(sku);
      const isSame = before !== undefined && before.maxAge === wish.maxAge;
      const feasible = before !== undefined && before.feasible && wish.maxAge !== null;
      this.#read.set(sku, { ...wish, since: isSame ? before.since : this.#now, feasible });
    }
    const fitting = this.#fitting();
    for (const [sku, promised] of this.#read) {
      if (promised.feasible === fitting.has(sku)) continue;
      promised.feasible = !promised.feasible;
      if (promised.feasible) promised.since = this.#now;
    }
  }

  #fitting(): ReadonlySet<string> {
    const left = { ...this.capacity };
    const asking = [...this.#read]
      .flatMap(([sku, { weight, maxAge }]) =>
        maxAge === null ? [] : [{ sku, weight, demand: 60 / (maxAge - leadOf(maxAge)) }],
      )
      .filter(({ sku }) => ['pending', 'priced'].includes(this.skus.get(sku)?.state ?? 'pending'))
      .toSorted((a, b) => b.weight - a.weight || a.demand - b.demand || (a.sku < b.sku ? -1 : 1));
    return new Set(
      asking.flatMap(({ sku, demand }) => {
        const side = this.skus.get(sku)?.live === true ? 'live' : 'others';
        left[side] -= demand;
        return left[side] >= 0 ? [sku] : [];
      }),
    );
  }

  /** Returns when a SKU comes first, and when its promise is broken. */
  #promiseOf(sku: string): { at: number; by: number } | null {
    const [promised, known] = [this.#read.get(sku), this.skus.get(sku)];
    if (promised === undefined || known === undefined || promised.maxAge === null || !promised.feasible)
      return null;
    const lead = leadOf(promised.maxAge);
    const at = known.state === 'pending' ? promised.since : known.asked + promised.maxAge - lead;
    return { at, by: Math.max(at, promised.since) + lead };
  }

  checkLedger(rows: readonly { sku: string; at: number | null; by: number | null }[]): void {
    for (const { sku, at, by } of rows) {
      const expected = this.#promiseOf(sku);
      const where = `${sku} (${this.skus.get(sku)?.state})`;
      strictEqual(at !== null, expected !== null, `${where} is promised: ${at !== null}`);
      strictEqual(by !== null, expected !== null, where);
      if (expected === null || at === null || by === null) continue;
      ok(
        Math.abs(at - (expected.at - this.#now)) < 3,
        `${where} comes in ${at}, not ${expected.at - this.#now}`,
      );
      // If it was requested before it was promised and answered since, the deadline counts from its age.
      const lead = leadOf(this.ageOf(sku) ?? 0);
      ok(
        [expected.by, expected.at + lead].some((moment) => Math.abs(by - (moment - this.#now)) < 3),
        `${where} is broken in ${by}, not ${expected.by - this.#now}`,
      );
    }
  }

  /** Returns which of these are to be claimed before all others, the earliest deadline first. */
  comeFirst(skus: readonly string[]): { sku: string; by: number }[] {
    return skus
      .flatMap((sku) => {
        const promise = this.#promiseOf(sku);
        return promise === null || promise.at > this.#now ? [] : [{ sku, by: promise.by }];
      })
      .toSorted((a, b) => a.by - b.by);
  }

  claim(sku: string, owner: string): void {
    const known = this.skus.get(sku);
    ok(known !== undefined && known.owner === null, `${sku} is claimed twice`);
    known.owner = owner;
    this.#askedAt.set(owner, this.#now);
  }

  readonly #askedAt = new Map<string, number>();

  giveBack(owner: string): void {
    for (const known of this.skus.values()) if (known.owner === owner) known.owner = null;
  }

  /** Returns what the answer to a claim makes of promises. */
  answer(
    claim: Claim,
    results: readonly SkuResult[],
    generations: ReadonlyMap<string, number>,
  ): PromiseCounts {
    const counts = { kept: 0, hindered: 0, broken: 0 };
    for (const [n, { sku, generation }] of claim.skus.entries()) {
      const known = this.skus.get(sku);
      if (known === undefined || known.owner !== claim.number) continue;
      known.owner = null;
      const kind = results[n]?.kind;
      if (kind === 'deferred' || kind === 'error') known.troubled = true;
      else if (known.state !== 'removed' || generations.get(sku) === generation) {
        this.#count(sku, known, counts);
        known.asked = this.#askedAt.get(claim.number) ?? 0;
        known.troubled = false;
        if (kind === 'record') known.state = 'priced';
        else if (known.state !== 'removed') known.state = 'not_found';
      }
    }
    return counts;
  }

  #count(sku: string, known: Known, counts: { kept: number; hindered: number; broken: number }): void {
    const promised = this.#read.get(sku);
    if (promised === undefined || promised.maxAge === null || known.state !== 'priced') return;
    const seconds = this.#now - Math.max(known.asked, promised.since);
    if (seconds <= promised.maxAge) counts.kept += 1;
    else
      counts[known.troubled || !promised.feasible ? 'hindered' : 'broken'] += Math.floor(
        seconds / promised.maxAge,
      );
  }
}
