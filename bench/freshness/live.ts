import {
  decide,
  guardMs,
  initialPace,
  type PaceLimits,
  type PaceState,
  sendsPerWindow,
  settled,
} from '../../src/pace/policy.ts';
import type { RequestOutcome } from '../../src/partner/errors.ts';
import type { LineTransition } from '../../src/sync/live/releases.ts';
import { FIRST_PACKING, planBatch } from '../../src/sync/reprice/packing.ts';
import { LiveKnowledge } from '../ceiling/knowledge.ts';
import { CeilingServer } from './ceiling-server.ts';
import type { SourceSoFar } from './hints.ts';
import { Ledger } from './ledger.ts';
import type { LiveRun } from './live-run.ts';
import { type Account, type LiveMarket, Market } from './market.ts';
import type { SharedAccount } from './neighbours.ts';
import { World } from './worlds.ts';

/*
 * Days of live re-pricing in seconds: the production pacer, planner, policy and learning, in the order that
 * sync/reprice/reprice.ts calls them, on a virtual clock. Only the ledger is in memory instead of in Postgres.
 */

export interface LiveRefreshes {
  /** Refreshes answered a minute, over the second half of the run. */
  readonly refreshesPerMinute: number;
  readonly calls: number;
  readonly refused: number;
  readonly deferred: number;
  /** What became of lines, and how many SKUs were refreshed early for it; zero where nobody goes by lines. */
  readonly turns: Readonly<Record<LineTransition, number>>;
  readonly pulled: number;
  /** What is known at the end of each source of hints, and how many of its hints have brought a refresh forward. */
  readonly sources: ReadonlyMap<string, SourceSoFar>;
}

const NO_TURNS = { suspected: 0, confirmed: 0, dismissed: 0 };
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };

export function simulateLive(
  market: LiveMarket,
  run: LiveRun,
  accounts: readonly Account[] = [],
): LiveRefreshes {
  const ledger = new Ledger(market, run);
  const server = new CeilingServer(run.liveBudget, run.liveCeiling);
  const calls = new PacedCalls(run);
  let now = 0;
  let [deferred, half] = [0, 0];
  let redrawAt = (run.redrawEveryMinutes ?? Infinity) * 60_000;
  const end = run.minutes * 60_000;
  const callsPerMinute = (sendsPerWindow(run.limits) * 60_000) / run.limits.windowMs;
  const known = new LiveKnowledge({ budget: run.liveBudget, mostBudget: run.liveBudget, callsPerMinute });

  let minutesPassed = 0;
  const pass = (until: number) => {
    for (; minutesPassed * 60_000 <= until; minutesPassed += 1) run.everyMinute?.(minutesPassed);
  };
  while (now < end) {
    pass(now);
    if (market instanceof Market && now >= redrawAt) {
      market.redraw(now / 60_000);
      redrawAt += (run.redrawEveryMinutes ?? Infinity) * 60_000;
    }
    if (market instanceof World)
      for (const item of market.replacedUntil(now / 60_000)) {
        market.refresh(item, now / 60_000);
        ledger.replace(item, now / 60_000);
      }
    ledger.hint(now / 60_000);
    if (isOut(run, now / 60_000)) {
      now = outageEnd(run) * 60_000;
      continue;
    }
    run.trust?.sample(now / 60_000, market, (item) => ledger.rate(item));
    ledger.plan(now / 60_000, Math.min(callsPerMinute * known.budget, known.ceilingAt(now)));
    const owed = ledger.owed(now / 60_000 + ledger.earlyMinutes, 100);
    const credit = known.credit(now);
    const quota =
      credit.skus < 1 || owed === 0
        ? undefined
        : planBatch([{ lane: 'live', live: true, count: owed }], NOT_EARLY, {
            callSkus: 100,
            liveBudget: Math.min(known.budget, credit.skus),
            turns: FIRST_PACKING,
            spareSeconds: 0,
          })?.quotas.find((q) => q.live);
    if (quota === undefined) {
      now =
        owed > 0
          ? now + Math.max(1, Math.min(250, credit.waitMs))
          : Math.max(now + 100, ledger.nextDue * 60_000);
      continue;
    }
    const call = calls.next(now);
    if (call.waitUntil !== undefined) {
      now = call.waitUntil;
      continue;
    }
    // A refused call gives its claim back: its SKUs keep their places.
    if (call.refused) continue;
    const minute = now / 60_000;
    const chosen = ledger.choose(quota.count, minute);
    known.spend(now, chosen.length);
    const computed = server.compute(chosen.length, now);
    for (const [at, item] of chosen.entries()) {
      if (at < computed) ledger.settle(item, minute, market.refresh(item, minute, accounts));
      else ledger.defer(item, minute);
    }
    const deferredLive = chosen.length - computed;
    deferred += deferredLive;
    if (now > end / 2) half += computed;
    const times = { askedAt: now, answeredAt: now };
    known.learn({ ...times, asked: chosen.length, computed, deferred: deferredLive, snapshotDeferred: 0 });
  }
  pass(end - 1);
  if (market instanceof Market) market.close(run.minutes, accounts);
  return {
    refreshesPerMinute: half / (run.minutes / 2),
    calls: calls.sent,
    refused: calls.refused,
    deferred,
    turns: ledger.lines?.turns ?? NO_TURNS,
    pulled: ledger.lines?.pulled ?? 0,
    sources: ledger.hints?.sources ?? new Map(),
  };
}

const outageEnd = ({ outage }: LiveRun) => (outage === undefined ? 0 : outage.from + outage.minutes);
const isOut = (run: LiveRun, minute: number) =>
  minute >= (run.outage?.from ?? Infinity) && minute < outageEnd(run);

/** The production pacer over its log of sends, and what the partner answers to each of them. */
class PacedCalls {
  sent = 0;
  refused = 0;
  readonly #limits: PaceLimits;
  readonly #shared: SharedAccount | undefined;
  #pace: PaceState;
  readonly #sends: number[] = [];

  constructor({ limits, shared }: Pick<LiveRun, 'limits' | 'shared'>) {
    this.#limits = limits;
    this.#shared = shared;
    this.#pace = { ...initialPace(limits, 0), ceiling: sendsPerWindow(limits) };
  }

  /** Sends a call at `now`, if the pacer lets it. */
  next(
    now: number,
  ): { readonly waitUntil: number } | { readonly waitUntil?: never; readonly refused: boolean } {
    while ((this.#sends[0] ?? Infinity) <= now - this.#limits.windowMs - guardMs(this.#limits))
      this.#sends.shift();
    const decision = decide(this.#limits, this.#pace, this.#sends, now);
    // Whole milliseconds, as the database's clock gives them.
    if (!decision.go) return { waitUntil: Math.max(now + 1, Math.ceil(decision.at)) };
    this.#pace = decision.state;
    this.#sends.push(now);
    this.sent += 1;
    if (this.#shared === undefined) return { refused: false };
    const at = now + this.#shared.wayMs();
    const refused = !this.#shared.arrive(at);
    this.refused += Number(refused);
    const outcome: RequestOutcome = refused ? 'throttled-or-forbidden' : 'ok';
    const request = { sentAt: now, outcome, sendsInWindow: this.#sends.length };
    this.#pace = settled(this.#limits, this.#pace, request, at);
    return { refused };
  }
}
