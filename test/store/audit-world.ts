import { expect } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import type { Claim } from '../../src/store/ledger/due.ts';
import { baseline, line } from './manifest.ts';
import { allDue, empty, found, LEASE_MS, REFRESH, type TestStore } from './support.ts';

const MINUTE = 60_000;

/** What a snapshot froze of a SKU: its price, or that it is live-priced. */
type Frozen = number | 'live';

interface Snapshot {
  readonly id: string;
  readonly lines: ReadonlyMap<string, Frozen>;
  /** How often each SKU's price had moved when the snapshot was built. */
  readonly moves: ReadonlyMap<string, number>;
  builtAt: number;
}

export interface Look {
  claim: Claim;
  readonly prices: ReadonlyMap<string, number | null>;
}

export interface Counts {
  readonly confirmed: number;
  readonly unchanged: number;
  readonly seenFirst: number;
  readonly seconds: number;
  readonly never: number;
  readonly waiting: number;
}

/**
 * A partner whose truth is known (each price, when each snapshot was built, what each delta reports), and a mirror
 * that follows it. Time is the database's: it advances by shifting what the mirror has stored into the past.
 */
export class World {
  readonly prices = new Map<string, number>();
  readonly live = new Set<string>();
  readonly listed = new Set<string>();
  readonly snapshots: Snapshot[] = [];
  /** SKUs whose next report is dropped, and SKUs that are reported although nothing moved. */
  readonly dropNext = new Set<string>();
  readonly noopNext = new Set<string>();
  readonly underWay: Look[] = [];
  /** The number of dropped reports, and of reports of SKUs whose price never moved between the two snapshots. */
  dropped = 0;
  noops = 0;
  /**
   * The number of prices that went back before any snapshot froze them, but that the refresh for a report had
   * seen. The mirror takes such a price for the reported one, so to it the next move is one that no delta reports.
   */
  swung = 0;
  readonly #seenForReports = new Set<string>();
  readonly #before = new Map<string, number>();
  readonly #moves = new Map<string, number>();
  readonly #store: TestStore;
  #fresh = 100;

  constructor(store: TestStore, skus: readonly string[]) {
    this.#store = store;
    for (const sku of skus) {
      this.listed.add(sku);
      this.move(sku);
    }
  }

  get #sql(): Sql {
    return this.#store.sql;
  }

  /** Moves the SKU to a price that no SKU ever had. */
  move(sku: string): void {
    const now = this.prices.get(sku);
    if (now !== undefined) this.#before.set(sku, now);
    this.prices.set(sku, (this.#fresh += 1));
    this.#moves.set(sku, (this.#moves.get(sku) ?? 0) + 1);
  }

  /** Moves back to the price before the last move, as when a bargain is sold; never further back. */
  goBack(sku: string): void {
    const before = this.#before.get(sku);
    if (before === undefined) return;
    const price = this.prices.get(sku);
    const isFrozen = this.snapshots.some(({ lines }) => lines.get(sku) === price);
    if (!isFrozen && this.#seenForReports.has(`${sku} ${price}`)) this.swung += 1;
    this.prices.set(sku, before);
    this.#before.delete(sku);
    this.#moves.set(sku, (this.#moves.get(sku) ?? 0) + 1);
  }

  cross(sku: string): void {
    if (!this.live.delete(sku)) this.live.add(sku);
  }

  /** Withdraws the SKU's market rows, or lists it anew at a fresh price. */
  relist(sku: string): void {
    if (!this.listed.delete(sku)) {
      this.listed.add(sku);
      this.move(sku);
    }
  }

  build(): void {
    const lines = new Map<string, Frozen>();
    for (const sku of this.listed) lines.set(sku, this.live.has(sku) ? 'live' : (this.prices.get(sku) ?? 0));
    const id = `s${this.snapshots.length}`;
    this.snapshots.push({ id, lines, moves: new Map(this.#moves), builtAt: Date.now() });
  }

  /** Polls the delta once, at most `hops` snapshots ahead. Returns whether the token advanced. */
  async poll(hops = 1000): Promise<boolean> {
    const [{ id }] = await this.#sql<[{ id: string }]>`select snapshot_id as id from catalog_internal.sync`;
    const at = this.snapshots.findIndex((snapshot) => snapshot.id === id);
    const to = this.snapshots[Math.min(at + hops, this.snapshots.length - 1)];
    const from = this.snapshots[at];
    if (from === undefined || to === undefined) throw new Error(`no snapshot ${id}`);
    if (from === to) {
      await applyDelta(this.#sql, { since: id, toSnapshot: id, changed: [], removed: [], nowLive: [] });
      return false;
    }
    const changed: string[] = [];
    for (const [sku, frozen] of to.lines) {
      const differs = from.lines.get(sku) !== frozen;
      const covered = frozen !== 'live' && from.lines.has(sku) && from.lines.get(sku) !== 'live';
      if (differs && covered && this.dropNext.delete(sku)) this.dropped += 1;
      else if (differs || (covered && this.noopNext.delete(sku))) changed.push(sku);
      this.noops += Number(covered && changed.at(-1) === sku && from.moves.get(sku) === to.moves.get(sku));
    }
    const removed = [...from.lines.keys()].filter((sku) => !to.lines.has(sku));
    const nowLive = changed.filter((sku) => to.lines.get(sku) === 'live');
    await applyDelta(this.#sql, { since: id, toSnapshot: to.id, changed, removed, nowLive });
    return true;
  }

  async catchUp(): Promise<void> {
    while (await this.poll());
  }

  /** Builds a snapshot, lets time pass, and polls the delta until there is nothing newer. */
  async snapshot(): Promise<void> {
    this.build();
    await this.pass();
    await this.catchUp();
    await this.pass();
  }

  /** Requests what is due now (`owed`), or what the sweep would reach one day, at the prices of now. */
  async ask(what: 'owed' | 'sweep', count = 1000): Promise<Look | null> {
    const sweep = { lane: 'sweep' as const, live: false, count, earlySeconds: 1e6 };
    const live = { lane: 'live' as const, live: true, count, earlySeconds: 1e6 };
    const missed = { ...live, live: false };
    const claim = await claimDue(
      this.#sql,
      { quotas: what === 'owed' ? allDue(count) : [sweep, live, missed] },
      LEASE_MS,
    );
    if (claim === null) return null;
    const prices = claim.skus.map(
      ({ sku }) => [sku, this.listed.has(sku) ? (this.prices.get(sku) ?? null) : null] as const,
    );
    for (const { sku, reason } of claim.skus)
      if (reason === 'changed') this.#seenForReports.add(`${sku} ${this.prices.get(sku)}`);
    const refresh = { claim, prices: new Map(prices) };
    this.underWay.push(refresh);
    return refresh;
  }

  /** Applies the answer to a refresh; `instead` may give another result than a record. */
  async answer(refresh: Look, instead: (sku: string) => SkuResult | null = () => null): Promise<void> {
    this.underWay.splice(this.underWay.indexOf(refresh), 1);
    const results = [...refresh.prices].map(([sku, price]): SkuResult => {
      const other = instead(sku);
      if (other !== null) return other;
      return price === null ? { sku, kind: 'not_found' } : found(sku, { 9: price });
    });
    await applyAnswer(this.#sql, refresh.claim, results, REFRESH);
  }

  /** Requests and answers until nothing of the kind is left; a sweep is one round. */
  async refresh(what: 'owed' | 'sweep'): Promise<void> {
    for (;;) {
      const refresh = await this.ask(what);
      if (refresh !== null) await this.answer(refresh);
      await this.pass();
      if (refresh === null || what === 'sweep') return;
    }
  }

  async manifest(): Promise<void> {
    const snapshot = this.snapshots.at(-1);
    if (snapshot === undefined) throw new Error('no snapshot was built');
    const lines = [...snapshot.lines].map(([sku, frozen]) =>
      line(sku, frozen === 'live' ? { priceSource: 'live' } : { hash: `h${frozen}` }),
    );
    const token = { snapshotId: snapshot.id, generatedAt: new Date(snapshot.builtAt) };
    await baseline(this.#store.url, lines, { token });
  }

  /** Applies a baseline and first prices, and builds enough snapshots that the prices of the current one are known. */
  async settle(): Promise<void> {
    await empty(this.#sql);
    this.build();
    await this.pass();
    await this.manifest();
    await this.pass();
    await this.refresh('owed');
    await this.catchUp();
    for (let i = 0; i < 2; i += 1) await this.snapshot();
  }

  /** Lets time pass. */
  async pass(ms = 10 * MINUTE): Promise<void> {
    const shift = (table: string, ...columns: string[]) =>
      `update ${table} set ${columns.map((c) => `${c} = ${c} - interval '${ms} milliseconds'`).join(', ')};`;
    await this.#sql.unsafe(
      shift(
        'catalog.skus',
        'asked_at',
        'priced_at',
        'first_priced_at',
        'reported_at',
        'removed_at',
        'first_seen_at',
      ) +
        shift('catalog.price_history', 'observed_at') +
        shift('catalog_internal.due', 'due_at', 'held_until', 'again_at') +
        shift('catalog_internal.unreported_moves', 'seen_at', 'reported_at') +
        shift(
          'catalog_internal.sync',
          'token_at',
          'built_after',
          'manifest_applied_at',
          'delta_checked_at',
          'snapshot_moved_at',
        ),
    );
    for (const snapshot of this.snapshots) snapshot.builtAt -= ms;
    for (const refresh of this.underWay)
      refresh.claim = { ...refresh.claim, askedAt: new Date(refresh.claim.askedAt.getTime() - ms) };
  }

  async counts(): Promise<Counts> {
    const [row] = await this.#sql<[Counts]>`
      select reports_confirmed::int as confirmed, reports_unchanged::int as unchanged, moves_seen_first::int as "seenFirst",
        coalesce(seen_first_by_seconds, 0)::float8 as seconds, moves_never_reported::int as never, moves_waiting::int as waiting
      from catalog.delta_audit`;
    return row;
  }
}

export const NOTHING: Counts = { confirmed: 0, unchanged: 0, seenFirst: 0, seconds: 0, never: 0, waiting: 0 };

/** Returns a function that makes worlds whose mirror is filled and has counted nothing yet. */
export function settledIn(store: TestStore): (...skus: readonly string[]) => Promise<World> {
  return async (...skus) => {
    const world = new World(store, skus);
    await world.settle();
    expect(await world.counts()).toEqual(NOTHING);
    return world;
  };
}
