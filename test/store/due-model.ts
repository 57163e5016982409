import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { SkuResult } from '../../src/store/answer/types.ts';
import type { Claim, Quota } from '../../src/store/ledger/due.ts';
import { type DueRow, LEASE_MS, HOUR, REFRESH } from './support.ts';

const LANE_NAMES = ['urgent', 'live', 'new', 'error', 'metadata', 'sweep'];
const LANE_OF: Readonly<Record<string, number>> = {
  changed: 1,
  refresh: 1,
  live: 2,
  unlisted: 2,
  missed: 2,
  new: 3,
  absent: 3,
  error: 4,
  metadata: 5,
  again: 5,
  sweep: 6,
};
/** LONGEST_CACHED_SECONDS, after `rounded`. */
const AGAIN_HOURS = 0.3;
/** APART_MINUTES, after `rounded`. */
const APART_HOURS = 0.1;

/** A row of the ledger as it should be. Times are hours on the model's own clock. */
interface Row {
  lane: number;
  reason: string;
  live: boolean;
  /**
   * For a SKU that is not listed as live: how often deferrals have made it count as live, and for how many more
   * answers it does.
   */
  liveMarks: number;
  liveLeft: number;
  dueAt: number;
  generation: number;
  claim: string | null;
  /** Whether it was answered before. */
  answered: boolean;
  heldUntil: number | null;
  deferrals: number;
  failures: number;
  /** A change that no answer to a later request has settled yet: the promise that must survive everything. */
  unsettled: boolean;
  /** The partner deferred it, so no refresh comes before this time. */
  notBefore: number;
  /** When it is requested again, after an answer to a report that contained nothing new. */
  againAt: number | null;
  /** When the doubt about the loss of its price began. */
  doubtedAt: number | null;
}

/** What the due ledger promises, without SQL: rows in a map, and a clock that only the test moves. */
export class LedgerModel {
  readonly rows = new Map<string, Row>();
  /** Null: no list contains it. */
  readonly priceSource: ReadonlyMap<string, 'snapshot' | 'live' | null>;
  readonly #notFound = new Set<string>();
  readonly #priced = new Set<string>();
  now = 0;

  constructor(priceSource: ReadonlyMap<string, 'snapshot' | 'live' | null>) {
    this.priceSource = priceSource;
  }

  mark(skus: readonly string[], reason: string, live: boolean | null): void {
    const lane = LANE_OF[reason] ?? 6;
    for (const sku of skus) {
      const row = this.rows.get(sku);
      if (row === undefined) {
        const fresh = {
          claim: null,
          answered: false,
          heldUntil: null,
          deferrals: 0,
          failures: 0,
          notBefore: 0,
          againAt: null,
          doubtedAt: null,
          unsettled: true,
          liveMarks: 0,
          liveLeft: 0,
        };
        this.rows.set(sku, { lane, reason, live: live ?? false, dueAt: this.now, generation: 1, ...fresh });
        continue;
      }
      const owed = row.dueAt <= this.now;
      row.reason = reasonOf(row, owed, reason);
      row.lane = owed ? Math.min(row.lane, lane) : lane;
      row.live = live ?? row.live;
      if (live !== null) row.liveLeft = 0;
      row.dueAt = Math.min(row.dueAt, this.now);
      row.generation += 1;
      row.unsettled = true;
      const isFreed = row.failures > 0 || row.doubtedAt !== null;
      if (row.claim === null && row.deferrals === 0 && isFreed) row.heldUntil = null;
    }
  }

  /** Takes over the real claim, after checking that a worker may have exactly those SKUs. */
  claimed(quotas: readonly Quota[], claim: Claim | null): void {
    const taken = new Set(claim?.skus.map(({ sku }) => sku));
    strictEqual(taken.size, claim?.skus.length ?? 0, 'a SKU claimed twice in one claim');
    let expected = 0;
    for (const { lane, live, count, earlySeconds } of quotas) {
      const free = [...this.rows].filter(
        ([, row]) =>
          row.heldUntil === null &&
          LANE_NAMES[row.lane - 1] === lane &&
          row.live === live &&
          row.dueAt <= this.now + earlySeconds / 3600,
      );
      const got = free.filter(([sku]) => taken.has(sku));
      const left = free.filter(([sku]) => !taken.has(sku));
      strictEqual(got.length, Math.min(count, free.length), `count of ${lane}`);
      const newest = Math.max(...got.map(([, row]) => row.dueAt));
      ok(
        left.every(([, row]) => newest <= row.dueAt),
        'not the oldest',
      );
      expected += got.length;
    }
    strictEqual(taken.size, expected, 'something held or not due was claimed');
    for (const { sku, generation, deferrals, failures, live } of claim?.skus ?? []) {
      const row = this.#row(sku);
      deepStrictEqual(
        { generation, deferrals, failures, live },
        { generation: row.generation, deferrals: row.deferrals, failures: row.failures, live: row.live },
      );
      ok(this.now >= row.notBefore, 'a deferred SKU did not wait its time');
      row.claim = claim?.number ?? null;
      row.heldUntil = this.now + LEASE_MS / HOUR;
    }
  }

  released(claim: Claim): void {
    for (const [, row] of this.#stillHeldBy(claim)) Object.assign(row, { claim: null, heldUntil: null });
  }

  answered(claim: Claim, results: readonly SkuResult[], accepted: number): void {
    const ours = new Map(this.#stillHeldBy(claim));
    for (const result of results) {
      const row = ours.get(result.sku);
      const asked = claim.skus.find(({ sku }) => sku === result.sku);
      if (row === undefined || asked === undefined) continue;
      row.claim = null;
      if (result.kind === 'deferred') {
        if (!row.live) {
          row.liveLeft = 2 ** row.liveMarks;
          row.liveMarks = Math.min(6, row.liveMarks + 1);
        }
        if (row.deferrals > 0) row.lane = LANE_OF['error'] ?? 0;
        Object.assign(row, { live: true, deferrals: row.deferrals + 1 });
        row.heldUntil = row.notBefore = this.now + result.waitMs / HOUR;
        // A spare slot may have requested it before its time.
        row.dueAt = Math.min(row.dueAt, row.heldUntil);
      } else if (result.kind === 'error') {
        this.#erred(result, row, row.generation !== asked.generation);
      } else {
        this.#looked(result, row, asked.generation);
      }
    }
    strictEqual(accepted, ours.size, 'accepted');
  }

  /** A SKU in `errors` says nothing about its price; an unreadable one says that it differs from what is known. */
  #erred(result: Extract<SkuResult, { kind: 'error' }>, row: Row, isMarkedMeanwhile: boolean): void {
    if (result.because === 'unreadable') {
      row.dueAt = Math.min(row.dueAt, this.now);
      const isJudged = ['live', 'again', 'metadata'].includes(row.reason);
      if (isJudged && this.#priced.has(result.sku)) row.reason = 'missed';
    }
    if (row.dueAt <= this.now) row.lane = LANE_OF['error'] ?? 0;
    row.failures += 1;
    row.heldUntil = isMarkedMeanwhile && row.deferrals === 0 ? null : this.now + result.waitMs / HOUR;
  }

  waitsOver(count: number): void {
    const over = [...this.rows.values()].filter(
      ({ heldUntil }) => heldUntil !== null && heldUntil <= this.now,
    );
    for (const row of over) Object.assign(row, { claim: null, heldUntil: null });
    strictEqual(count, over.length, 'released');
  }

  /** Compares the whole table with the model, and checks the promises that need no model. */
  compare(table: ReadonlyMap<string, DueRow>): void {
    const wanted = new Map([...this.rows].map(([sku, row]) => [sku, rounded({ sku, ...this.#seen(row) })]));
    const actual = new Map([...table].map(([sku, row]) => [sku, rounded(row)]));
    deepStrictEqual(actual, wanted);
    for (const [sku, { unsettled }] of this.rows) {
      ok(!unsettled || (table.get(sku)?.dueIn ?? 1) <= 0.001, `the change of ${sku} is lost`);
    }
  }

  #looked(result: SkuResult, row: Row, generation: number): void {
    const source = this.priceSource.get(result.sku);
    const isListed = source !== null;
    const wasKnown = this.#priced.has(result.sku) || this.#notFound.has(result.sku);
    if (result.kind === 'not_found') this.#notFound.add(result.sku);
    else this.#notFound.delete(result.sku);
    row.doubtedAt = this.#doubted(result, row);
    Object.assign(row, { answered: true, heldUntil: null, deferrals: 0, failures: 0 });
    if (!row.live) row.liveMarks = Math.max(0, row.liveMarks - 1);
    row.live &&= this.priceSource.get(result.sku) === 'live' || row.liveLeft > 1;
    row.liveLeft = Math.max(0, row.liveLeft - 1);
    row.againAt = this.#secondLook(result, row, wasKnown);
    if (result.kind === 'record') this.#priced.add(result.sku);
    else this.#priced.delete(result.sku);
    if (row.generation !== generation) return;
    row.unsettled = false;
    if (row.doubtedAt !== null) row.heldUntil = row.doubtedAt + APART_HOURS;
    const live = source === 'live';
    const next = this.#notFound.has(result.sku)
      ? (['metadata', isListed ? REFRESH.lostMs : REFRESH.notFoundMs] as const)
      : live
        ? (['live', REFRESH.liveMs] as const)
        : source === null
          ? (['unlisted', REFRESH.liveMs] as const)
          : row.againAt !== null
            ? (['again', (row.againAt - this.now) * HOUR] as const)
            : (['sweep', REFRESH.snapshotMs] as const);
    Object.assign(row, { reason: next[0], lane: LANE_OF[next[0]], dueAt: this.now + next[1] / HOUR });
  }

  /**
   * All answers here have the same price, so a report of a priced SKU is answered with nothing new; and the first
   * record of a SKU that was not found may come from a cache.
   */
  #secondLook({ sku, kind }: SkuResult, { reason, againAt }: Row, wasKnown: boolean): number | null {
    if (kind !== 'record' || this.priceSource.get(sku) !== 'snapshot' || !wasKnown) return null;
    if (reason === 'changed') return this.now + AGAIN_HOURS;
    return againAt !== null && againAt > this.now ? againAt : null;
  }

  /** An unreported loss of a price counts once a second answer, minutes later, confirms it. */
  #doubted({ sku, kind }: SkuResult, { live, reason, doubtedAt }: Row): number | null {
    if (kind === 'record') return null;
    const isUntold = this.priceSource.get(sku) === 'snapshot' && !live && reason !== 'changed';
    if (doubtedAt === null) return isUntold && this.#priced.has(sku) ? this.now : null;
    const isOver = reason === 'changed' || this.now > doubtedAt;
    return isOver ? null : doubtedAt;
  }

  #stillHeldBy(claim: Claim): [string, Row][] {
    return [...this.rows].filter(([, row]) => row.claim === claim.number);
  }

  #row(sku: string): Row {
    const row = this.rows.get(sku);
    if (row === undefined) throw new Error(`${sku} was never marked`);
    return row;
  }

  #seen(row: Row): Seen {
    const { lane, reason, live, generation, claim, deferrals, failures } = row;
    const heldFor = row.heldUntil === null ? null : row.heldUntil - this.now;
    return {
      lane,
      reason,
      live,
      generation,
      claim,
      deferrals,
      failures,
      dueIn: row.dueAt - this.now,
      heldFor,
    };
  }
}

type Seen = Omit<DueRow, 'sku'>;

/** Returns why a row is due once it is marked: a report is remembered until an answer to a later request. */
function reasonOf({ lane, reason, claim, answered }: Row, owed: boolean, marked: string): string {
  const atOnce = LANE_OF['changed'];
  if (marked === 'changed') return marked;
  if (marked === 'new') return owed && lane === atOnce ? 'changed' : marked;
  const markedLane = LANE_OF[marked] ?? 6;
  if (owed && reason === 'new' && markedLane < lane && (claim !== null || answered)) return 'changed';
  return owed && (reason === 'changed' || lane <= markedLane) ? reason : marked;
}

/** Rounds hours to three minutes; the test itself takes less. */
function rounded(row: DueRow): Seen {
  const { lane, reason, live, generation, claim, deferrals, failures, dueIn, heldFor } = row;
  const hours = (h: number) => Math.round(h * 20) / 20 + 0;
  const rest = { dueIn: hours(dueIn), heldFor: heldFor === null ? null : hours(heldFor) };
  return { lane, reason, live, generation, claim, deferrals, failures, ...rest };
}
