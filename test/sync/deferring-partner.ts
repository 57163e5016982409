import { LiveKnowledge } from '../../bench/ceiling/knowledge.ts';
import type { Limiter } from '../../bench/ceiling/limiters.ts';
import { Heap } from '../../bench/freshness/heap.ts';
import { seeded } from '../../bench/freshness/random.ts';
import type { CallInputs } from '../../src/store/call/bulk-call.ts';
import type { ClaimedSku, Quota } from '../../src/store/ledger/due.ts';
import { CEILING_MET } from '../../src/store/ledger/due.ts';
import { ANY_SIZE } from '../../src/sync/reprice/call-size.ts';
import { afterTurn, FIRST_TURNS, planCall } from '../../src/sync/reprice/plan-call.ts';
import { skuResultOf } from '../../src/sync/reprice/reconciliation.ts';
import { QUIET_PLAN } from '../support/live-plan.ts';
import { settingsWith } from '../support/settings.ts';
import { afterDeferral, type Deferrals, ownOf, UNDEFERRED } from './deferrals.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

/**
 * A partner that defers some live SKUs for reasons of their own, besides whatever it defers because of a ceiling
 * on live computations.
 */
export interface Deferring {
  /** The number of live SKUs. Nothing else is refreshed. */
  readonly skus: number;
  /** Decides whether it defers a SKU, given by number, at this time whatever else it is asked. */
  readonly defers: (sku: number, at: number) => boolean;
  readonly ceiling?: Limiter;
  /** Live computations of a call, including SKUs that it defers for their own reasons. */
  readonly budget: number;
  readonly answersMs: readonly [number, number];
  readonly everyMs: number;
  /** SKUs are chosen by value: overdue ones first, and then the oldest. */
  readonly byValue: boolean;
  readonly seed: number;
}

/** The outcome of a simulated time, minute by minute. */
export interface Refreshed {
  /** How many SKUs were computed in each minute, and how many were deferred. */
  readonly computed: readonly number[];
  readonly deferred: readonly number[];
  /** The deferred SKUs that the partner would have computed without a ceiling or its budget. */
  readonly deferredForLimits: readonly number[];
  /** The ceiling at the end of each minute, in computations a minute. Infinity if none was met. */
  readonly ceilings: readonly number[];
  /** When each SKU was last computed, and last deferred after that. -Infinity for never. */
  readonly computedAt: readonly number[];
  readonly deferredAt: readonly number[];
}

interface Row {
  readonly number: number;
  dueAt: number;
  isFree: boolean;
  deferrals: number;
  lastError: Deferrals['lastError'];
  lane: Deferrals['lane'];
  computedAt: number;
  deferredAt: number;
}

interface UnderWay {
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly ceilingMet: boolean;
  readonly rows: readonly Row[];
  readonly deferred: ReadonlySet<Row>;
}

const CALLS_PER_MINUTE = 118;
/** SKUs that are read before a call. */
const MAX_READ = 60;
/** The SKU that tries the ceiling is chosen from this many. */
export const TRIED_OF = 100;

/**
 * Simulates refreshes of live SKUs that the daemon plans with such a partner. The plan, what is learned and the
 * waits are the production code's.
 */
export function refresh(partner: Deferring, hours: number): Refreshed {
  const random = seeded(partner.seed);
  const settings = { ...settingsWith(), callsPerMinute: CALLS_PER_MINUTE };
  const known = new LiveKnowledge({ budget: 5, mostBudget: 100, callsPerMinute: CALLS_PER_MINUTE });
  const ledger = new LiveLedger(partner, random);
  const minutes = hours * 60;
  const counts = {
    computed: Array<number>(minutes).fill(0),
    deferred: Array<number>(minutes).fill(0),
    deferredForLimits: Array<number>(minutes).fill(0),
    ceilings: Array<number>(minutes).fill(Infinity),
  };
  const add = (which: keyof typeof counts, at: number, n: number) => {
    const minute = Math.min(minutes - 1, Math.floor(at / MINUTE));
    counts[which][minute] = (counts[which][minute] ?? 0) + n;
  };
  const underWay: UnderWay[] = [];
  let sentAt = -Infinity;
  let turns = FIRST_TURNS;

  function answer({ askedAt, answeredAt, ceilingMet, rows, deferred }: UnderWay): void {
    const of = (which: (row: Row) => boolean) => {
      const some = rows.filter(which);
      return { asked: some.length, deferred: some.filter((row) => deferred.has(row)).length };
    };
    const again = { second: of((row) => ownOf(row) === 1), later: of((row) => ownOf(row) > 1) };
    const computed = rows.length - deferred.size;
    const computes = known.computed(answeredAt) + computed > 0;
    known.learn({
      askedAt,
      answeredAt,
      asked: rows.length,
      computed,
      deferred: deferred.size,
      snapshotDeferred: 0,
      again,
    });
    for (const row of rows) {
      if (!deferred.has(row)) {
        ledger.computed(row, answeredAt);
        continue;
      }
      const due = { dueAt: new Date(row.dueAt), reason: 'live' };
      const claimed: ClaimedSku = {
        sku: `S${row.number}`,
        generation: 0,
        failures: 0,
        live: true,
        ...row,
        ...due,
        deferrals: ownOf(row),
      };
      const meanwhile = { generalErrors: false, computes, ceilingMet };
      const result = skuResultOf(claimed, { kind: 'deferred' }, settings, random, meanwhile);
      if (result.kind !== 'deferred') throw new Error(result.kind);
      ledger.defer(row, answeredAt, answeredAt + result.waitMs, result.because === CEILING_MET);
    }
    add('computed', answeredAt, computed);
    add('deferred', answeredAt, deferred.size);
    add(
      'deferredForLimits',
      answeredAt,
      [...deferred].filter((row) => !partner.defers(row.number, askedAt)).length,
    );
  }

  for (let now = 0; now < hours * HOUR; now += MINUTE / CALLS_PER_MINUTE) {
    const ended = underWay
      .filter(({ answeredAt }) => answeredAt <= now)
      .toSorted((a, b) => a.answeredAt - b.answeredAt);
    for (const call of ended) {
      answer(call);
      underWay.splice(underWay.indexOf(call), 1);
    }
    counts.ceilings[Math.floor(now / MINUTE)] = known.ceilingAt(now);
    const inputs = ledger.inputs(now, known);
    const planned = planCall(
      inputs,
      { turns, sinceLastCallMs: now - sentAt, recovering: known.recovering },
      settings,
    );
    if (planned.kind !== 'planned') continue;
    turns = afterTurn(turns, planned);
    const { quotas = [], named = [] } = planned.wanted;
    const rows = ledger.claim(quotas, named, now);
    if (rows.length === 0) continue;
    sentAt = now;
    known.spend(now, rows.length);
    const deferred = new Set<Row>();
    let left = partner.budget;
    for (const row of shuffled(rows, random)) {
      if (partner.defers(row.number, now) || left === 0 || (partner.ceiling?.take(now, 1) ?? 1) === 0)
        deferred.add(row);
      else left -= 1;
    }
    const [from, to] = partner.answersMs;
    const answeredAt = now + from + (to - from) * random();
    const ceilingMet = inputs.livePlan.ceiling.blockedAt !== null;
    underWay.push({ askedAt: now, answeredAt, ceilingMet, rows, deferred });
  }
  const of = (time: 'computedAt' | 'deferredAt') => ledger.rows.map((row) => row[time]);
  return { ...counts, computedAt: of('computedAt'), deferredAt: of('deferredAt') };
}

/** The lane of errors has a part of the slots. */
const laneOf = ({ lane }: Row) => (lane === 'error' ? lane : 'live');

interface DueEntry {
  readonly dueAt: number;
  readonly number: number;
}

/**
 * Rows by due time. The first ones are read before each call, so they are kept in order. Entries of rows that are
 * no longer free, or are due at another time, are dropped when they are met.
 */
class DueRows {
  #ordered: DueEntry[] = [];
  readonly #later = new Heap();

  push({ dueAt, number }: Row): void {
    const last = this.#ordered.at(-1);
    if (last === undefined || dueAt >= last.dueAt) {
      this.#later.push(dueAt, number);
      return;
    }
    const at = this.#ordered.findIndex((entry) => entry.dueAt > dueAt);
    this.#ordered.splice(at, 0, { dueAt, number });
  }

  first(
    count: number,
    now: number,
    rowOf: (number: number) => Row,
    isHere: (row: Row) => boolean,
    which: (row: Row) => boolean,
  ): Row[] {
    const kept: DueEntry[] = [];
    const found: Row[] = [];
    const seen = new Set<number>();
    let at = 0;
    for (; found.length < count; at += 1) {
      if (at === this.#ordered.length) {
        if (this.#later.first > now) break;
        this.#ordered.push({ dueAt: this.#later.first, number: this.#later.pop() });
      }
      const entry = this.#ordered[at]!;
      if (entry.dueAt > now) break;
      const row = rowOf(entry.number);
      if (!row.isFree || row.dueAt !== entry.dueAt || !isHere(row) || seen.has(entry.number)) continue;
      seen.add(entry.number);
      kept.push(entry);
      if (which(row)) found.push(row);
    }
    this.#ordered = [...kept, ...this.#ordered.slice(at)];
    return found;
  }
}

/** The live SKUs of the ledger. */
class LiveLedger {
  readonly rows: Row[];
  readonly #everyMs: number;
  readonly #byValue: boolean;
  readonly #free = { live: new DueRows(), error: new DueRows() };
  readonly #held = new Heap();

  constructor({ skus, everyMs, byValue }: Deferring, random: () => number) {
    this.#everyMs = everyMs;
    this.#byValue = byValue;
    this.rows = Array.from({ length: skus }, (_, number) => ({
      number,
      dueAt: random() * Math.min(everyMs, (skus / CALLS_PER_MINUTE) * MINUTE),
      isFree: true,
      ...UNDEFERRED,
      computedAt: -Infinity,
      deferredAt: -Infinity,
    }));
    for (const row of this.rows) this.#release(row);
  }

  /** Returns what is read before a call. */
  inputs(now: number, known: LiveKnowledge): CallInputs {
    while (this.#held.first <= now) this.#release(this.#row(this.#held.pop()));
    const [first, last] = [this.#first('live', MAX_READ, now), this.#first('error', MAX_READ, now)];
    const due = (
      [
        ['live', first],
        ['error', last],
      ] as const
    ).filter(([, rows]) => rows.length > 0);
    const scarce = { refreshThreshold: 1e-3, maxIntervalMinutes: 120, earlyMinutes: 0, overdueMinutes: 120 };
    const candidates = first.map(({ number, computedAt }) => ({
      sku: `${number}`,
      weight: 1,
      alpha: null,
      beta: null,
      minutes: Number.isFinite(computedAt) ? (now - computedAt) / MINUTE : null,
    }));
    return {
      pause: { ms: 0, failures: 0, rejections: 0 },
      sync: { liveBudget: known.budget, catalogState: 'ok' },
      livePlan: { ...QUIET_PLAN, ...known.plan(now), ...(this.#byValue ? scarce : {}) },
      callSize: { step: 0, ...ANY_SIZE },
      due: due.map(([lane, { length: count }]) => ({ lane, live: true, count })),
      suspects: [],
      nextDueMs: null,
      candidates: this.#byValue ? candidates : [],
      untried: known.plan(now).ceiling.blockedAt === null ? null : this.#untried(now),
      watchlistMoved: false,
      scopeMoved: false,
      hintsCame: false,
      refreshesCame: false,
    };
  }

  claim(quotas: readonly Quota[], named: readonly string[], now: number): Row[] {
    const rows = named.map((sku) => this.#row(Number(sku)));
    for (const { live, lane, count } of quotas)
      if (live) rows.push(...this.#first(lane === 'error' ? lane : 'live', count, now));
    for (const row of rows) row.isFree = false;
    return rows;
  }

  computed(row: Row, at: number): void {
    Object.assign(row, { computedAt: at, deferredAt: -Infinity, dueAt: at + this.#everyMs, ...UNDEFERRED });
    this.#release(row);
  }

  defer(row: Row, at: number, until: number, isCeilingMet: boolean): void {
    Object.assign(row, afterDeferral(row, isCeilingMet));
    row.deferredAt = at;
    this.#held.push(until, row.number);
  }

  #release(row: Row): void {
    row.isFree = true;
    this.#free[laneOf(row)].push(row);
  }

  /** Returns the first due rows of a lane in order, without removing them. */
  #first(
    lane: 'live' | 'error',
    count: number,
    now: number,
    which: (row: Row) => boolean = () => true,
  ): Row[] {
    return this.#free[lane].first(
      count,
      now,
      (number) => this.#row(number),
      (row) => laneOf(row) === lane,
      which,
    );
  }

  #untried(now: number): string | null {
    const [row] = this.#first('live', TRIED_OF, now, (each) => ownOf(each) === 0).toSorted(
      (a, b) => a.deferrals - b.deferrals,
    );
    return row === undefined ? null : `${row.number}`;
  }

  #row(number: number): Row {
    return this.rows[number] as Row;
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, key: random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
