export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const MOST = 100;

/** A partner some of whose calls fail as a whole; it says nothing else of them. */
export interface Failing {
  readonly skus: number;
  readonly live: number;
  /** SKUs, by their numbers, with which every call fails. */
  readonly bad: ReadonlySet<number>;
  /** The most SKUs of a call that is answered. */
  readonly limit: number;
  /** Milliseconds from the beginning, in pairs of begin and end, in which nothing is answered. */
  readonly outages: readonly (readonly [number, number])[];
  /** The same, in which every call with a live SKU fails, after `hangMs`. */
  readonly liveOutages: readonly (readonly [number, number])[];
  readonly hangMs: number;
  /** The most live SKUs of a call that is answered. */
  readonly liveLimit: number;
  /** Everything is due when it begins, and not evenly over the time. */
  readonly atOnce: boolean;
  /** Processes, which share the ledger but not what answers have shown; calls under way of each, and how long one takes. */
  readonly daemons: number;
  readonly workers: number;
  readonly latencyMs: number;
}

/** What became of a simulated time. */
export interface Outcome {
  calls: number;
  lost: number;
  /** Of those that were lost, how many for nothing but an outage. */
  lostToOutages: number;
  /** When outages of the live source were told to begin and to end. */
  readonly outages: { readonly began: number; ended: number }[];
  /** For each SKU that can be answered, by how much its price was older than its target at most, and when. */
  readonly late: { readonly sku: string; readonly byMs: number; readonly at: number }[];
}

export const FINE: Failing = {
  skus: 600,
  live: 100,
  bad: new Set(),
  limit: MOST,
  outages: [],
  liveOutages: [],
  hangMs: 29_000,
  liveLimit: MOST,
  atOnce: true,
  daemons: 1,
  workers: 4,
  latencyMs: 2000,
};

/**
 * Whole calls that may be lost: three in a hundred, for each SKU with which all calls fail what finding it takes, and
 * those that are under way as it is found that the partner answers smaller calls only.
 */
export const allowed = ({ calls }: Outcome, bad: number, hours: number, underWay = 0) =>
  Math.ceil(0.03 * calls + Math.log2(100) * bad * Math.max(1, hours / 24)) + underWay;

/**
 * By how much the price of a SKU was too old, after the first load and outside of the outages and what follows them.
 */
export function worst(
  { late }: Outcome,
  outages: Failing['outages'],
  fill: number,
  recovery: number,
): number {
  const isExcused = (at: number) =>
    at < fill || outages.some(([from, to]) => at >= from && at < to + recovery);
  return Math.max(0, ...late.filter(({ at }) => !isExcused(at)).map(({ byMs }) => byMs));
}
