import type { PaceLimits } from '../../src/pace/policy.ts';
import type { HintSize } from './hint-figures.ts';
import { simulateLive } from './live.ts';
import { Account, Market, type Weights } from './market.ts';
import { type Neighbours, SharedAccount } from './neighbours.ts';
import { knownRatesOptimum } from './optimum.ts';
import { seeded } from './random.ts';
import type { ReleaseSize } from './release-figures.ts';
import { TrustAccount } from './trust.ts';
import type { WorldSize } from './world-figures.ts';

/** Whose SKUs are priced, and for how long. */
export interface ScopeSize {
  /** Live SKUs of the whole catalog, and of the seller. */
  readonly all: number;
  readonly own: number;
  readonly hours: number;
}

export interface BenchSize {
  readonly skus: number;
  /** Length of a run; the first half warms up. */
  readonly hours: number;
  readonly fillSkus: number;
  readonly pacingHours: number;
  /** Everything turns live: how many SKUs, and what is to be reached with them. */
  readonly incident: { readonly skus: number; readonly hours: number; readonly sweptMinutes: number };
  readonly worlds: { readonly large: WorldSize; readonly small: WorldSize };
  readonly releases: ReleaseSize;
  readonly hints: HintSize;
  readonly scope: ScopeSize;
}

export const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };
export const LIVE_BUDGET = 5;

/** A simulated run of the live SKUs alone; of what comes out the first half of its time is left out, but for `cold`. */
export function runLive(
  seed: number,
  size: Pick<BenchSize, 'skus' | 'hours'>,
  run: {
    policy: 'index' | 'round-robin';
    weights: Weights;
    ceiling: number | null;
    redrawHours?: number;
    hours?: number;
    neighbours?: Neighbours;
    trust?: boolean;
    /** How often the median SKU moves, in minutes. */
    medianMinutes?: number;
    /** By how much that differs between SKUs: standard deviation of its logarithm. */
    spread?: number;
    /** The account's pace, where it is not LIMITS. */
    limits?: PaceLimits;
    /** From when on prices are judged, in minutes; the second half where nothing is said. */
    judgedFrom?: number;
  },
) {
  const market = new Market(size.skus, run.weights, seed, run.medianMinutes, run.spread);
  const hours = run.hours ?? size.hours;
  const [cold, warm] = [new Account(0), new Account((hours / 2) * 60)];
  const trust = new TrustAccount(run.judgedFrom ?? (hours / 2) * 60);
  const refreshes = simulateLive(
    market,
    {
      policy: run.policy,
      ...(run.trust === true ? { trust } : {}),
      minutes: hours * 60,
      limits: run.limits ?? LIMITS,
      liveBudget: LIVE_BUDGET,
      liveCeiling: run.ceiling,
      ...(run.redrawHours === undefined ? {} : { redrawEveryMinutes: run.redrawHours * 60 }),
      ...(run.neighbours === undefined
        ? {}
        : { shared: new SharedAccount(run.neighbours, hours * 3_600_000, seeded(seed)) }),
    },
    [cold, warm],
  );
  const optimum = knownRatesOptimum(market.rates, market.weights, refreshes.refreshesPerMinute);
  return {
    cold: cold.result(),
    warm: warm.result(),
    trust: trust.result(),
    refreshes,
    optimum,
    round: size.skus / refreshes.refreshesPerMinute,
  };
}
