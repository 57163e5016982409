import type { CallInputs } from '../../src/store/call/bulk-call.ts';
import { type ClaimedLane, DUE_LANES, PROMISED, type Quota } from '../../src/store/ledger/due.ts';
import type { LivePlan } from '../../src/store/live/live.ts';
import { TRIAL_BUDGETS } from '../../src/sync/live/incident.ts';
import { MIN_MINUTES, PRIOR, type RateGroup } from '../../src/sync/live/policy.ts';
import { afterDeferral, type Deferrals, ownOf } from './deferrals.ts';
import { TRIED_OF } from './deferring-partner.ts';
import { deferralLead, liveInterval, shortestPromise } from './promised.ts';
import type { Arrival, Estimate, Scarce } from './scarce-partner.ts';

const MINUTE = 60_000;
const COUNTED = 100;
const CANDIDATES = 3 * TRIAL_BUDGETS * 5;

/** A live SKU in the ledger, and its waits. */
export interface Kept {
  readonly number: number;
  readonly weight: number;
  /** In seconds. */
  readonly maxAge: number | null;
  isFeasible: boolean;
  promisedSince: number;
  /** What was said at the start of each period that an answer ends, and its outcome. */
  readonly said: {
    readonly at: number;
    readonly feasible: boolean;
    readonly cases: number;
    readonly kept: number;
  }[];
  lane: Deferrals['lane'];
  reason: string;
  rank: number;
  dueAt: number;
  /** Infinity while a request is under way. */
  heldUntil: number | null;
  deferrals: number;
  lastError: Deferrals['lastError'];
  generation: number;
  promisedAt: number;
  promisedBy: number;
  /** -Infinity: never. */
  computedAt: number;
  /** Since when it has waited for a computation, and the longest such wait. */
  since: number;
  longest: number;
  readonly waits: number[];
  readonly computedTimes: number[];
  /** How long each refresh by name, or its first price, took. */
  readonly answeredIn: number[];
  askedFor: number | null;
}

/** The live SKUs of the ledger, as store/ledger and store/answer keep them. */
export class ScarceLedger {
  readonly rows: Kept[] = [];
  readonly #partner: Scarce;
  /** Same as catalog_internal.live_rate. */
  rate: number | null = null;
  #listed: readonly Kept[] = [];
  #listedAt = 0;
  #held: Kept[] = [];

  constructor(partner: Scarce, random: () => number) {
    this.#partner = partner;
    for (let number = 0; number < partner.skus; number += 1)
      this.#add(number, 'live', random() * Math.min(partner.everyMs, 10 * MINUTE), 0);
  }

  #add(number: number, reason: string, dueAt: number, now: number): Kept {
    const row: Kept = {
      number,
      weight: this.#partner.weightOf(number),
      maxAge: this.#partner.promiseOf(number),
      isFeasible: false,
      promisedSince: now,
      said: [],
      lane: laneOf(reason),
      reason,
      rank: this.#partner.weightOf(number),
      dueAt,
      heldUntil: null,
      deferrals: 0,
      lastError: null,
      generation: 0,
      promisedAt: Infinity,
      promisedBy: Infinity,
      computedAt: -Infinity,
      since: now,
      longest: 0,
      waits: [],
      computedTimes: [],
      answeredIn: [],
      askedFor: null,
    };
    this.rows[number] = row;
    return row;
  }

  arrive({ at, sku, as }: Arrival): void {
    const row = this.rows[sku] ?? this.#add(sku, as === 'new' ? 'new' : 'changed', at, at);
    row.askedFor ??= at;
    row.generation += 1;
    const lane = laneOf(as === 'refresh' ? 'refresh' : as === 'new' ? 'new' : 'changed');
    row.lane = row.dueAt <= at && DUE_LANES.indexOf(row.lane) < DUE_LANES.indexOf(lane) ? row.lane : lane;
    row.reason = as === 'refresh' ? 'refresh' : as === 'new' ? 'new' : 'changed';
    row.dueAt = Math.min(row.dueAt, at);
    if (as !== 'refresh') return;
    row.rank = Infinity;
    if (row.heldUntil !== Infinity) row.heldUntil = null;
  }

  release(now: number): void {
    if (!this.#held.some(({ heldUntil }) => heldUntil === null || heldUntil <= now)) return;
    for (const row of this.#held) if (row.heldUntil !== null && row.heldUntil <= now) row.heldUntil = null;
    this.#held = this.#held.filter(({ heldUntil }) => heldUntil !== null);
  }

  /** Returns the due rows of a lane that nobody holds. */
  due(lane: ClaimedLane, until: number): Kept[] {
    if (lane === PROMISED)
      return this.rows
        .filter(
          (row) =>
            row.heldUntil === null &&
            row.promisedAt <= until &&
            row.promisedBy <= until + (45 + deferralLead(this.rate)) * 1000,
        )
        .toSorted((a, b) => a.promisedBy - b.promisedBy);
    const rows = this.rows.filter((row) => row.heldUntil === null && row.lane === lane && row.dueAt <= until);
    return rows.toSorted((a, b) => (lane === 'urgent' ? b.rank - a.rank || 0 : 0) || a.dueAt - b.dueAt);
  }

  groups(): RateGroup[] {
    const byWeight = Map.groupBy(this.rows, ({ weight }) => weight);
    return [...byWeight].map(([weight, { length: count }]) => ({
      count,
      lambda: PRIOR.alpha / PRIOR.beta,
      weight,
    }));
  }

  list(rows: readonly Kept[], now: number): void {
    this.#listed = rows;
    this.#listedAt = now;
  }

  /** Reschedules what is due later than `latest`, as selected by putOffLive. */
  bringForward(latest: number, dueAt: (row: Kept) => number): void {
    for (const row of this.rows)
      if (row.heldUntil === null && row.lane === 'live' && row.dueAt > latest) row.dueAt = dueAt(row);
  }

  /** Same as catalog_internal.promises_that_fit and watched_to_ledger. `live` is in refreshes a minute. */
  weighPromises(now: number, live: number): void {
    let left = live;
    const demand = (row: Kept) => 60 / liveInterval(row.maxAge ?? 0, this.rate);
    for (const row of this.rows
      .filter(({ maxAge }) => maxAge !== null)
      .toSorted((a, b) => b.weight - a.weight || demand(a) - demand(b) || a.number - b.number)) {
      const short = (row.maxAge ?? 0) < shortestPromise(this.rate);
      if (!short) left -= demand(row);
      const fits = left >= 0 && !short;
      if (fits === row.isFeasible) continue;
      row.isFeasible = fits;
      if (!fits) {
        row.promisedAt = row.promisedBy = Infinity;
        continue;
      }
      row.promisedSince = now;
      const every = liveInterval(row.maxAge ?? 0, this.rate) * 1000;
      row.promisedAt = Number.isFinite(row.computedAt) ? row.computedAt + every : now;
      row.promisedBy = Math.max(row.promisedAt, now) + (row.maxAge ?? 0) * 1000 - every;
    }
  }

  read(now: number, plan: LivePlan): Pick<CallInputs, 'due' | 'candidates' | 'untried' | 'nextDueMs'> {
    const until = (lane: ClaimedLane) => now + (lane === 'live' ? (plan.earlyMinutes ?? 0) * MINUTE : 0);
    const classes = ([PROMISED, ...DUE_LANES] as const).map((lane) => ({
      lane,
      rows: this.due(lane, until(lane)),
    }));
    const live = classes.find(({ lane }) => lane === 'live')?.rows ?? [];
    const rested = (row: Kept) => row.computedAt <= now - MIN_MINUTES * MINUTE;
    const listed = this.#listed.filter(
      (row) =>
        row.heldUntil === null && row.lane === 'live' && row.dueAt <= now && row.computedAt < this.#listedAt,
    );
    const candidates =
      plan.refreshThreshold === null
        ? []
        : [...listed.filter(rested).slice(0, CANDIDATES), ...live.filter(rested).slice(0, CANDIDATES)];
    const byDeferrals = (rows: readonly Kept[], spared: (row: Kept) => number) =>
      rows.toSorted((a, b) => spared(a) - spared(b) || a.deferrals - b.deferrals || a.dueAt - b.dueAt)[0];
    const byDue = classes
      .filter(({ lane }) => lane !== PROMISED)
      .map(({ rows }) => rows.toSorted((a, b) => a.dueAt - b.dueAt));
    const untried =
      plan.ceiling.blockedAt === null
        ? undefined
        : (byDue
            .map((rows) => byDeferrals(rows.filter((row) => ownOf(row) === 0).slice(0, TRIED_OF), isSpared))
            .filter((row) => row !== undefined)
            .toSorted((a, b) => isSpared(a) - isSpared(b))[0] ?? byDeferrals(byDue.flat(), () => 0));
    const next = this.rows.reduce(
      (least, { heldUntil, dueAt, promisedAt }) =>
        heldUntil === Infinity
          ? least
          : Math.min(least, Math.max(Math.min(dueAt, promisedAt), heldUntil ?? 0)),
      Infinity,
    );
    return {
      due: classes
        .filter(({ rows }) => rows.length > 0)
        .map(({ lane, rows }) => ({ lane, live: true, count: Math.min(COUNTED, rows.length) })),
      candidates: candidates.map(({ number, weight, computedAt }) => ({
        sku: `${number}`,
        weight,
        alpha: null,
        beta: null,
        minutes: Number.isFinite(computedAt) ? (now - computedAt) / MINUTE : null,
      })),
      untried: untried === undefined ? null : `${untried.number}`,
      nextDueMs: Number.isFinite(next) ? Math.max(0, next - now) : null,
    };
  }

  claim(quotas: readonly Quota[], named: readonly string[], now: number): Kept[] {
    const rows = new Set(named.map((sku) => this.rows[Number(sku)] as Kept));
    for (const { live, lane, count, earlySeconds } of quotas)
      if (live) for (const row of this.due(lane, now + earlySeconds * 1000).slice(0, count)) rows.add(row);
    for (const row of rows) row.heldUntil = Infinity;
    return [...rows];
  }

  computed(row: Kept, generation: number, at: number, dueAt: number): void {
    this.close(row, at);
    this.judge(row, at);
    row.since = at;
    row.computedAt = at;
    row.computedTimes.push(at);
    if (row.askedFor !== null) row.answeredIn.push(at - row.askedFor);
    row.askedFor = null;
    row.deferrals = 0;
    row.lastError = null;
    row.heldUntil = null;
    row.promisedAt = row.isFeasible ? at + liveInterval(row.maxAge ?? 0, this.rate) * 1000 : Infinity;
    row.promisedBy = row.isFeasible ? at + (row.maxAge ?? 0) * 1000 : Infinity;
    if (generation !== row.generation) return;
    Object.assign(row, { lane: 'live', reason: 'live', rank: row.weight, dueAt });
  }

  defer(row: Kept, until: number, isTry: boolean): void {
    Object.assign(row, afterDeferral(row, isTry));
    row.heldUntil = until;
    row.dueAt = Math.min(row.dueAt, until);
    this.#held.push(row);
  }

  /** Same as store/sellers/promises.ts. */
  judge(row: Kept, at: number): void {
    if (row.maxAge === null || !Number.isFinite(row.computedAt)) return;
    const ago = (at - Math.max(row.computedAt, row.promisedSince)) / 1000;
    const isKept = ago <= row.maxAge;
    row.said.push({
      at,
      feasible: row.isFeasible,
      cases: isKept ? 1 : Math.floor(ago / row.maxAge),
      kept: Number(isKept),
    });
  }

  /** Records a wait that ends, or that is cut off by the end of the simulation. */
  close(row: Kept, at: number): void {
    row.waits.push(at - row.since);
    row.longest = Math.max(row.longest, at - row.since);
  }

  /** Same as the estimate of the next refresh in catalog.sku_trust. */
  estimates(now: number, perMinute: number): Estimate[] {
    const waiting = this.rows.filter(
      ({ dueAt, heldUntil }) =>
        dueAt <= now && (heldUntil === null || heldUntil === Infinity || heldUntil <= now),
    );
    const ahead = (waiting.length / perMinute) * MINUTE;
    return this.rows.map(({ number, dueAt, heldUntil, promisedAt }) => {
      const held = heldUntil === Infinity ? now : (heldUntil ?? 0);
      if (dueAt > now)
        return { sku: number, at: now, expected: Math.max(Math.min(dueAt, Math.max(promisedAt, now)), held) };
      return { sku: number, at: now, expected: held > now ? held : now + ahead };
    });
  }
}

/** A SKU with a promised age is not tried before others. */
const isSpared = ({ promisedBy, lane }: Kept) => Number(promisedBy < Infinity && lane !== 'urgent');

const laneOf = (reason: string): Deferrals['lane'] =>
  reason === 'live' ? 'live' : reason === 'new' ? 'new' : 'urgent';
