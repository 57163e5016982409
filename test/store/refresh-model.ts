import fc from 'fast-check';
import { expect } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, returnClaim, endWaits } from '../../src/store/ledger/due.ts';
import { refreshSkus, takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { allDue, found, HOUR, LEASE_MS, mark, REFRESH } from './support.ts';

export const SKUS = ['A', 'B', 'C'];

type Ending = 'record' | 'not_found' | 'deferred' | 'error' | 'released';
type Step =
  | { readonly kind: 'ask'; readonly skus: readonly string[] }
  | { readonly kind: 'take' | 'release' }
  | { readonly kind: 'mark' | 'command' | 'claim'; readonly sku: string }
  | { readonly kind: 'end'; readonly which: number; readonly ending: Ending };

const sku = fc.constantFrom(...SKUS);
export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('ask' as const), skus: fc.uniqueArray(sku, { minLength: 1 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('take' as const, 'take' as const, 'release' as const) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('mark' as const, 'command' as const, 'claim' as const, 'claim' as const),
      sku,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      which: fc.nat(3),
      ending: fc.constantFrom<Ending[]>('record', 'record', 'not_found', 'deferred', 'error', 'released'),
    }),
  },
);

interface Ticket {
  readonly ticket: { skus: string[] };
  /**
   * The number of steps when it asked, and for each SKU when it was marked for that. `mayBe` holds SKUs answered
   * to a claim after the call, `mustBe` those answered to a claim after the mark.
   */
  readonly at: number;
  readonly marked: Map<string, number>;
  readonly mayBe: Set<string>;
  readonly mustBe: Set<string>;
}

function same(skus: readonly string[], as: readonly string[], what: string): void {
  expect({ what, skus }).toEqual({ what, skus: as });
}

/** Compares what waiters are told with what has happened, step by step; each step is one transaction. */
export class World {
  readonly #store: { readonly sql: Sql };
  readonly #tickets: Ticket[] = [];
  readonly #claims: { readonly claim: Claim; readonly sku: string; readonly at: number }[] = [];
  #at = 0;

  constructor(of: { readonly sql: Sql }) {
    this.#store = of;
  }

  async run(next: Step): Promise<void> {
    const { sql } = this.#store;
    this.#at += 1;
    if (next.kind === 'ask') await this.#ask(next.skus);
    else if (next.kind === 'take') await this.#take();
    else if (next.kind === 'release') await endWaits(sql, 100);
    else if (next.kind === 'mark') await mark(sql, [next.sku]);
    else if (next.kind === 'command') await refreshSkus(sql, [next.sku]);
    else if (next.kind === 'claim') await this.#claim(next.sku);
    else if ('which' in next) await this.#end(next.which, next.ending);
    await this.#compare();
  }

  async #ask(skus: readonly string[]): Promise<void> {
    const [{ ticket }] = await this.#store.sql<[{ ticket: Ticket['ticket'] }]>`
      select catalog.refresh_begin(${skus as string[]}, '0', null) as ticket`;
    this.#tickets.push({ ticket, at: this.#at, marked: new Map(), mayBe: new Set(), mustBe: new Set() });
  }

  async #take(): Promise<void> {
    const before = await this.#requested();
    await takeRefreshes(this.#store.sql);
    const left = await this.#requested();
    for (const taken of before.filter((one) => !left.includes(one)))
      for (const { ticket, marked } of this.#tickets)
        if (ticket.skus.includes(taken) && !marked.has(taken)) marked.set(taken, this.#at);
  }

  async #requested(): Promise<string[]> {
    const rows = await this.#store.sql<
      { sku: string }[]
    >`select distinct sku from catalog_internal.refresh_requests`;
    return rows.map((row) => row.sku);
  }

  /** Holds the other SKUs meanwhile, so that the claim is of this one. */
  async #claim(one: string): Promise<void> {
    const { sql } = this.#store;
    await sql`update catalog_internal.due set held_until = 'infinity' where sku <> ${one} and held_until is null`;
    const claim = await claimDue(sql, { quotas: allDue(1) }, LEASE_MS);
    await sql`update catalog_internal.due set held_until = null where held_until = 'infinity'`;
    if (claim !== null) this.#claims.push({ claim, sku: one, at: this.#at });
  }

  async #end(which: number, ending: Ending): Promise<void> {
    const [ended] = this.#claims.splice(which % Math.max(1, this.#claims.length), 1);
    if (ended === undefined) return;
    const { claim, sku: one, at } = ended;
    if (ending === 'released') return await returnClaim(this.#store.sql, claim, [one]);
    const results: Record<Exclude<Ending, 'released'>, SkuResult> = {
      record: found(one, { 8: at }),
      not_found: { sku: one, kind: 'not_found' },
      deferred: { sku: one, kind: 'deferred', waitMs: HOUR },
      error: { sku: one, kind: 'error', waitMs: HOUR },
    };
    await applyAnswer(this.#store.sql, claim, [results[ending]], REFRESH);
    if (ending === 'deferred' || ending === 'error') return;
    for (const { at: asked, marked, mayBe, mustBe } of this.#tickets) {
      if (at > asked) mayBe.add(one);
      if (at > (marked.get(one) ?? Infinity)) mustBe.add(one);
    }
  }

  async #compare(): Promise<void> {
    for (const { ticket, mayBe, mustBe } of this.#tickets) {
      const [{ left }] = await this.#store.sql<[{ left: string[] }]>`
        select array(select jsonb_array_elements_text(w.ticket -> 'skus')) as left from catalog.refresh_wait(${this.#store.sql.json(ticket)}) w`;
      const answered = ticket.skus.filter((one) => !left.includes(one));
      same(
        answered.filter((one) => !mayBe.has(one)),
        [],
        'answered, but not to a request of after the call',
      );
      same(
        [...mustBe].filter((one) => !answered.includes(one)),
        [],
        'answered, and waited for',
      );
    }
  }

  /** Expects everybody to be answered in the end, whatever has happened. */
  async finish(): Promise<void> {
    while (this.#claims.length > 0) await this.run({ kind: 'end', which: 0, ending: 'released' });
    await this.#store.sql`update catalog_internal.due set held_until = null`;
    await this.run({ kind: 'take' });
    for (const one of SKUS) {
      await this.run({ kind: 'claim', sku: one });
      await this.run({ kind: 'end', which: 0, ending: 'record' });
    }
    for (const { ticket, mustBe } of this.#tickets)
      same([...mustBe].toSorted(), ticket.skus.toSorted(), 'answered in the end');
  }
}
