import { deepStrictEqual, ok } from 'node:assert/strict';
import fc from 'fast-check';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { type Claim, PROMISED, returnClaim } from '../../src/store/ledger/due.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { FIRST_PACKING, planBatch } from '../../src/sync/reprice/packing.ts';
import { PromiseOracle, SKUS } from './promises-oracle.ts';
import { promising } from './promising.ts';
import {
  allDue,
  answerAsked,
  callInputs,
  found,
  knownSkus,
  LEASE_MS,
  mark,
  NOT_EARLY,
  REFRESH,
  type TestStore,
} from './support.ts';

const anySku = fc.constantFrom(...SKUS);
const someSkus = fc.uniqueArray(anySku, { minLength: 1, maxLength: 3 });
const statement = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      sku: anySku,
      maxAge: fc.constantFrom(null, 50, 130, 610),
      weight: fc.constantFrom(1, 2, 5),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('drop' as const), sku: anySku }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('truncate' as const) }) },
);
export const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('sell' as const),
      statements: fc.array(statement, { minLength: 1, maxLength: 3 }),
      commits: fc.nat(4).map((n) => n > 0),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('read' as const), everything: fc.boolean(), pieces: fc.nat(2) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('mark' as const, 'changed' as const, 'removed' as const, 'refresh' as const),
      skus: someSkus,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), skus: someSkus }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'call' as const,
        'call' as const,
        'claim' as const,
        'wake' as const,
        'wake' as const,
      ),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(2),
      kinds: fc.array(
        fc.constantFrom(
          'record' as const,
          'record' as const,
          'not_found' as const,
          'deferred' as const,
          'error' as const,
        ),
        { minLength: 1, maxLength: 3 },
      ),
      isGivenBack: fc.nat(5).map((n) => n === 0),
    }),
  },
  // No sum of these is within five seconds of a time at which a promise comes first or is broken.
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.constantFrom(30, 60, 150, 600) }),
  },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Statement = typeof statement extends fc.Arbitrary<infer T> ? T : never;

/** One mirror and its sellers, compared with an oracle. */
export class World {
  readonly #store: TestStore;
  readonly #oracle = new PromiseOracle();
  #claims: Claim[] = [];

  constructor(store: TestStore) {
    this.#store = store;
  }

  /** Allows requests for about half of the promises that may be made. */
  async begin(): Promise<void> {
    const { sql } = this.#store;
    await sql`update catalog_internal.settings set rate_share = 2`;
    await sql`update catalog_internal.call_size set size = 8`;
    const [capacity] = await sql<
      [{ live: number; others: number }]
    >`select live, others from catalog_internal.promise_capacity()`;
    this.#oracle.capacity = capacity;
    await knownSkus(sql, SKUS);
    await answerAsked(sql, ...SKUS.map((sku) => found(sku, { 9: 90 })));
    await this.#notice();
    this.#oracle.allPriced();
    const wish = { do: 'put', maxAge: 130, weight: 1 } as const;
    await this.#sell(
      ['A', 'B', 'C'].map((sku) => ({ ...wish, sku })),
      true,
    );
    await this.check();
  }

  async run(step: Step): Promise<void> {
    const { sql } = this.#store;
    const oracle = this.#oracle;
    if (step.do === 'sell') await this.#sell(step.statements, step.commits);
    else if (step.do === 'read') await this.#readSome(step.everything, step.pieces);
    else if (step.do === 'mark')
      await mark(
        sql,
        step.skus.filter((sku) => oracle.skus.has(sku)),
      );
    else if (step.do === 'changed') await this.#delta({ changed: step.skus, removed: [] });
    else if (step.do === 'removed') await this.#delta({ changed: [], removed: step.skus });
    else if (step.do === 'refresh') await refreshSkus(sql, step.skus);
    else if (step.do === 'forget') await sql`delete from catalog.skus where sku in ${sql(step.skus)}`;
    else if (step.do === 'call') await this.#call();
    else if (step.do === 'claim') this.#take(await claimDue(sql, { quotas: allDue(1) }, LEASE_MS));
    else if (step.do === 'wake')
      await sql`update catalog_internal.due set held_until = null where claim is null`;
    else if (step.do === 'end') await this.#end(step);
    else if (step.do === 'pass' && 'seconds' in step) await this.#pass(step.seconds);
    await this.#notice();
  }

  /** Reads everything that was committed, and expects the ledger to match it. */
  async check(): Promise<void> {
    const { sql } = this.#store;
    await this.#notice();
    this.#oracle.read();
    ok(await readWatchlist(sql, { most: 100_000, everything: true }));
    await this.#notice();
    const rows = await sql<{ sku: string; at: number | null; by: number | null }[]>`
      select sku, extract(epoch from promised_at - clock_timestamp())::float8 as at, extract(epoch from promised_by - clock_timestamp())::float8 as by
      from catalog_internal.due order by sku`;
    const seen = rows.map(({ sku, at, by }) => ({ sku, at, by }));
    this.#oracle.checkLedger(seen);
    const cases = await sql<{ sku: string }[]>`select sku from catalog_internal.promise_cases`;
    for (const { sku } of cases)
      ok(this.#oracle.skus.has(sku) && this.#oracle.ageOf(sku) !== null, `cases of ${sku} are left`);
  }

  async #sell(statements: readonly Statement[], commits: boolean): Promise<void> {
    const undone = new Error('rolled back');
    const list = new Map(this.#oracle.list);
    await this.#store.sql
      .begin(async (tx) => {
        for (const one of statements) {
          if (one.do === 'put') {
            await tx`
              insert into catalog.watchlist (sku, weight, max_age) values (${one.sku}, ${one.weight}, make_interval(secs => ${one.maxAge}))
              on conflict (sku) do update set weight = excluded.weight, max_age = excluded.max_age`;
            list.set(one.sku, { weight: one.weight, maxAge: one.maxAge });
          } else if (one.do === 'drop') {
            await tx`delete from catalog.watchlist where sku = ${one.sku}`;
            list.delete(one.sku);
          } else {
            await tx`truncate catalog.watchlist`;
            list.clear();
          }
        }
        if (!commits) throw undone;
      })
      .catch((error: unknown) => {
        if (error !== undone) throw error;
      });
    if (commits) this.#oracle.list = list;
  }

  /** Reads the list, and copies some of it to the ledger. */
  async #readSome(everything: boolean, pieces: number): Promise<void> {
    this.#oracle.read();
    await this.#store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.watching for update`;
      await tx`select catalog_internal.read_watchlist(${everything}, 100000)`;
    });
    for (let n = 0; n < pieces; n += 1) await this.#store.sql`select catalog_internal.watched_to_ledger(1)`;
  }

  async #delta({ changed, removed }: { changed: string[]; removed: string[] }): Promise<void> {
    const { sql } = this.#store;
    await sql`update catalog_internal.sync set snapshot_id = 'token', chain_broken_at = null`;
    await applyDelta(sql, { since: 'token', toSnapshot: 'token', changed, nowLive: [], removed });
  }

  /** Makes a call as the daemon does: promises come first, by the earliest deadline. */
  async #call(): Promise<void> {
    const { sql } = this.#store;
    await this.check();
    const { due } = await callInputs(sql);
    const limits = { callSkus: 3, liveBudget: 2, turns: FIRST_PACKING, spareSeconds: 0 };
    const quotas = planBatch(due, NOT_EARLY, limits)?.quotas ?? null;
    const free = await sql<{ sku: string; live: boolean }[]>`
      select sku, live from catalog_internal.due where held_until is null and largest_call is null`;
    const claim = quotas === null ? null : await claimDue(sql, { quotas }, LEASE_MS);
    const claimed = new Set(claim?.skus.map(({ sku }) => sku));
    const liveSlots = (quotas ?? []).reduce((sum, { live, count }) => sum + (live ? count : 0), 0);
    for (const live of [true, false]) {
      const names = free.filter((row) => row.live === live).map(({ sku }) => sku);
      const waiting = this.#oracle.comeFirst(names);
      const first = Math.min(waiting.length, live ? 2 : 3 - liveSlots);
      const planned = quotas?.find((quota) => quota.lane === PROMISED && quota.live === live)?.count ?? 0;
      deepStrictEqual(planned, first, `promised, live: ${live}`);
      const last = waiting[first - 1]?.by ?? -Infinity;
      ok(waiting.filter(({ sku }) => claimed.has(sku)).length >= first, 'others are claimed before');
      for (const { sku, by } of waiting)
        ok(by >= last - 3 || claimed.has(sku), `${sku} has the earlier deadline`);
    }
    this.#take(claim);
  }

  #take(claim: Claim | null): void {
    if (claim === null) return;
    this.#claims.push(claim);
    for (const { sku } of claim.skus) this.#oracle.claim(sku, claim.number);
  }

  async #end({ which, kinds, isGivenBack }: Extract<Step, { do: 'end' }>): Promise<void> {
    const { sql } = this.#store;
    const claim = this.#claims[which % Math.max(1, this.#claims.length)];
    if (claim === undefined) return await this.#call();
    this.#claims = this.#claims.filter((one) => one !== claim);
    if (isGivenBack) {
      await returnClaim(
        sql,
        claim,
        claim.skus.map(({ sku }) => sku),
      );
      this.#oracle.giveBack(claim.number);
      return;
    }
    const results = claim.skus.map(({ sku }, n): SkuResult => {
      const kind = kinds[n % kinds.length] ?? 'record';
      if (kind === 'record') return found(sku, { 9: 90 });
      return kind === 'not_found' ? { sku, kind } : { sku, kind, waitMs: 3_600_000 };
    });
    const rows = await sql<
      { sku: string; generation: number }[]
    >`select sku, generation from catalog_internal.due`;
    const expected = this.#oracle.answer(
      claim,
      results,
      new Map(rows.map((row) => [row.sku, row.generation])),
    );
    const { promises } = await applyAnswer(sql, claim, results, REFRESH);
    deepStrictEqual(promises, expected);
  }

  async #pass(seconds: number): Promise<void> {
    await promising(this.#store).passSeconds(seconds);
    this.#oracle.passed += seconds;
    this.#claims = this.#claims.map((claim) => ({
      ...claim,
      askedAt: new Date(claim.askedAt.getTime() - seconds * 1000),
    }));
  }

  /** Tells the oracle which SKUs came or went, and which of them count as live. */
  async #notice(): Promise<void> {
    this.#oracle.notice(
      await this.#store.sql<{ sku: string; removed: boolean; live: boolean }[]>`
        select sku, state = 'removed' as removed, live from catalog.skus join catalog_internal.due using (sku)`,
    );
  }
}
