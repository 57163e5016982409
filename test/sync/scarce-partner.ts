import { LiveKnowledge } from '../../bench/ceiling/knowledge.ts';
import type { Limiter } from '../../bench/ceiling/limiters.ts';
import { seeded } from '../../bench/freshness/random.ts';
import { CEILING_MET } from '../../src/store/ledger/due.ts';
import type { RefreshThreshold } from '../../src/store/live/live.ts';
import { measuredCeiling } from '../../src/sync/live/ceiling.ts';
import { isBacklog, isBacklogNear, listedSkus } from '../../src/sync/live/choose.ts';
import { waitMinutes } from '../../src/sync/live/learn-refresh.ts';
import {
  earlyMinutes,
  MAX_ROUNDS,
  PRIOR,
  refreshValue,
  roundOf,
  solveThreshold,
} from '../../src/sync/live/policy.ts';
import { ANY_SIZE } from '../../src/sync/reprice/call-size.ts';
import { afterTurn, FIRST_TURNS, planCall } from '../../src/sync/reprice/plan-call.ts';
import { skuResultOf } from '../../src/sync/reprice/reconciliation.ts';
import { QUIET_PLAN } from '../support/live-plan.ts';
import { settingsWith } from '../support/settings.ts';
import { ownOf } from './deferrals.ts';
import { liveCapacity, liveRate } from './promised.ts';
import { type Kept, ScarceLedger } from './scarce-ledger.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
const CALLS_PER_MINUTE = 118;
const BUDGET = 5;

/** What sellers and the catalog do meanwhile. */
export interface Arrival {
  readonly at: number;
  readonly sku: number;
  /** refresh: requested by name; crossed: reported as live by a delta; new: never priced. */
  readonly as: 'refresh' | 'crossed' | 'new';
}

/** A partner that computes few live prices, and never those of some SKUs. */
export interface Scarce {
  /** The number of live SKUs. Those from this number on come as arrivals. */
  readonly skus: number;
  readonly limiter: Limiter;
  /** Decides whether it defers a SKU whatever else it is asked. */
  readonly defers: (sku: number, at: number) => boolean;
  readonly daemons: number;
  readonly everyMs: number;
  readonly answersMs: readonly [number, number];
  readonly weightOf: (sku: number) => number;
  /** Returns the promised maximum age of a SKU's price in seconds, or null without a promise. */
  readonly promiseOf: (sku: number) => number | null;
  readonly arrivals: readonly Arrival[];
  readonly seed: number;
}

export interface Estimate {
  readonly sku: number;
  readonly at: number;
  /** When it should be refreshed, according to catalog.sku_trust. */
  readonly expected: number;
}

export interface Waits {
  readonly rows: readonly Kept[];
  /** The number of computations, and of requested SKUs. */
  readonly computed: number;
  readonly asked: number;
  readonly estimates: readonly Estimate[];
  /** The ceiling at the end of each ten minutes. */
  readonly ceilings: readonly number[];
}

interface UnderWay {
  readonly askedAt: number;
  readonly isTry: boolean;
  readonly answeredAt: number;
  readonly rows: readonly { readonly row: Kept; readonly generation: number }[];
  readonly deferred: ReadonlySet<Kept>;
}

const SOLVE_EVERY = 10 * MINUTE;
/** Same as in sync/live/plan-live.ts. */
const PUT_OFF = 1.5;

/** Simulates the live refreshes that daemons plan with such a partner, for `hours`. */
export function refreshScarce(partner: Scarce, hours: number): Waits {
  const random = seeded(partner.seed);
  const settings = {
    ...settingsWith({ LIVE_INTERVAL: `${partner.everyMs / 1000}s` }),
    callsPerMinute: CALLS_PER_MINUTE,
  };
  const known = new LiveKnowledge({ budget: BUDGET, mostBudget: 100, callsPerMinute: CALLS_PER_MINUTE });
  const ledger = new ScarceLedger(partner, random);
  const turns = Array.from({ length: partner.daemons }, () => FIRST_TURNS);
  const underWay: UnderWay[] = [];
  const estimates: Estimate[] = [];
  const ceilings: number[] = [];
  const arrivals = partner.arrivals.toSorted((a, b) => a.at - b.at);
  let terms: RefreshThreshold = { refreshThreshold: null, maxIntervalMinutes: null, earlyMinutes: null };
  let [solveAt, weighAt, sampleAt, sentAt, arrived, computedSum, askedSum] = [
    0,
    0,
    SOLVE_EVERY,
    -Infinity,
    0,
    0,
    0,
  ];
  const end = hours * HOUR;

  function answer({ askedAt, answeredAt, rows, deferred, isTry }: UnderWay): void {
    const of = (which: (row: Kept) => boolean) => {
      const some = rows.filter(({ row }) => which(row));
      return { asked: some.length, deferred: some.filter(({ row }) => deferred.has(row)).length };
    };
    const again = { second: of((row) => ownOf(row) === 1), later: of((row) => ownOf(row) > 1) };
    const computed = rows.length - deferred.size;
    const computes = known.computed(answeredAt) + computed > 0;
    const seen = { askedAt, answeredAt, asked: rows.length, computed };
    known.learn({ ...seen, deferred: deferred.size, snapshotDeferred: 0, again });
    computedSum += computed;
    for (const { row, generation } of rows) {
      if (!deferred.has(row)) {
        const wait = waitMinutes(terms, settings, row.weight, PRIOR) * MINUTE;
        ledger.computed(row, generation, answeredAt, answeredAt + wait);
        continue;
      }
      const claimed = { sku: `${row.number}`, generation, deferrals: ownOf(row), failures: 0, live: true };
      const result = skuResultOf(
        { ...claimed, dueAt: new Date(row.dueAt), reason: row.reason },
        { kind: 'deferred' },
        settings,
        random,
        { generalErrors: false, computes, ceilingMet: isTry },
      );
      if (result.kind !== 'deferred') throw new Error(result.kind);
      ledger.defer(row, answeredAt + result.waitMs, result.because === CEILING_MET);
    }
  }

  function solve(now: number): void {
    const refreshes = Math.min(CALLS_PER_MINUTE * Math.floor(known.budget), known.ceilingAt(now));
    const groups = ledger.groups();
    const round = roundOf(groups, refreshes);
    const most = MAX_ROUNDS * round;
    terms =
      round * MINUTE <= partner.everyMs
        ? { refreshThreshold: null, maxIntervalMinutes: null, earlyMinutes: null }
        : {
            refreshThreshold: solveThreshold(groups, refreshes, most),
            maxIntervalMinutes: most,
            earlyMinutes: earlyMinutes(round),
          };
    const longest = (perMinute: number) => {
      const minutes = roundOf(groups, perMinute);
      return minutes * MINUTE <= partner.everyMs ? partner.everyMs : MAX_ROUNDS * minutes * MINUTE;
    };
    const measured = Math.min(
      CALLS_PER_MINUTE * Math.floor(known.budget),
      measuredCeiling(known.plan(now).ceiling),
    );
    ledger.bringForward(
      now + PUT_OFF * Math.max(longest(measured), longest(refreshes)),
      (row) => row.computedAt + waitMinutes(terms, settings, row.weight, PRIOR) * MINUTE,
    );
    const due = { due: ledger.due('live', now).length, refreshesPerMinute: refreshes };
    ledger.list(
      terms.refreshThreshold !== null && isBacklog(due)
        ? ledger
            .due('live', now)
            .map((row) => ({ row, tau: (now - row.computedAt) / MINUTE }))
            .map(({ row, tau }) => ({
              row,
              rank: tau >= most ? 1e9 + tau : tau === Infinity ? 1e8 : refreshValue(row.weight, PRIOR, tau),
            }))
            .toSorted((a, b) => b.rank - a.rank)
            .slice(0, listedSkus(due))
            .map(({ row }) => row)
        : [],
      now,
    );
    solveAt = now + (isBacklogNear(due) ? MINUTE : SOLVE_EVERY);
  }

  function send(now: number): number {
    const daemon = Math.floor(random() * partner.daemons);
    const plan = { ...QUIET_PLAN, ...terms, overdueMinutes: terms.maxIntervalMinutes, ...known.plan(now) };
    const planned = planCall(
      {
        pause: { ms: 0, failures: 0, rejections: 0 },
        sync: { liveBudget: known.budget, catalogState: 'ok' },
        livePlan: plan,
        callSize: { step: 0, ...ANY_SIZE },
        suspects: [],
        watchlistMoved: false,
        scopeMoved: false,
        hintsCame: false,
        refreshesCame: false,
        ...ledger.read(now, plan),
      },
      {
        turns: turns[daemon] ?? FIRST_TURNS,
        sinceLastCallMs: now - sentAt,
        recovering: known.recovering,
      },
      settings,
    );
    if (planned.kind !== 'planned')
      return now + Math.max(1, planned.kind === 'idle' ? (planned.nextInMs ?? MINUTE) : planned.forMs);
    turns[daemon] = afterTurn(turns[daemon] ?? FIRST_TURNS, planned);
    const { quotas = [], named = [] } = planned.wanted;
    const rows = ledger.claim(quotas, named, now);
    if (rows.length === 0) return now + 250;
    sentAt = now;
    askedSum += rows.length;
    known.spend(now, rows.length);
    const deferred = new Set<Kept>();
    let left = BUDGET;
    for (const row of rows.toSorted(() => random() - 0.5)) {
      if (partner.defers(row.number, now) || left === 0 || partner.limiter.take(now, 1) === 0)
        deferred.add(row);
      else left -= 1;
    }
    const [from, to] = partner.answersMs;
    underWay.push({
      isTry: plan.ceiling.blockedAt !== null,
      askedAt: now,
      answeredAt: now + from + (to - from) * random(),
      rows: rows.map((row) => ({ row, generation: row.generation })),
      deferred,
    });
    underWay.sort((a, b) => a.answeredAt - b.answeredAt);
    return now + MINUTE / CALLS_PER_MINUTE;
  }

  for (let now = 0, next = 0; now < end; now = next) {
    while ((underWay[0]?.answeredAt ?? Infinity) <= now) answer(underWay.shift() as UnderWay);
    for (; (arrivals[arrived]?.at ?? Infinity) <= now; arrived += 1)
      ledger.arrive(arrivals[arrived] as Arrival);
    ledger.release(now);
    if (now >= solveAt) solve(now);
    if (now >= weighAt) {
      ledger.rate = liveRate(known.plan(now).ceiling, now);
      ledger.weighPromises(now, liveCapacity(ledger.rate, CALLS_PER_MINUTE * known.budget));
      weighAt = now + MINUTE;
    }
    if (now >= sampleAt) {
      const { ceiling } = known.plan(now);
      const rate = Math.min(ceiling.perMinute ?? Infinity, known.budget * CALLS_PER_MINUTE);
      estimates.push(...ledger.estimates(now, rate));
      ceilings.push(known.ceilingAt(now));
      sampleAt += SOLVE_EVERY;
    }
    const again = now >= sentAt + MINUTE / CALLS_PER_MINUTE ? send(now) : sentAt + MINUTE / CALLS_PER_MINUTE;
    // Everything is read again when a call is answered, a wait ends, or something arrives.
    const soonest = Math.min(
      underWay[0]?.answeredAt ?? Infinity,
      arrivals[arrived]?.at ?? Infinity,
      solveAt,
      weighAt,
      sampleAt,
    );
    next = Math.max(now + 1, Math.min(again, Math.max(soonest, sentAt + MINUTE / CALLS_PER_MINUTE)));
  }
  for (const row of ledger.rows) ledger.close(row, end);
  return { rows: ledger.rows, computed: computedSum, asked: askedSum, estimates, ceilings };
}
