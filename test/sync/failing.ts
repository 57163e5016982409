export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const MOST = 100;

/** A partner some of whose calls fail as a whole, without any other detail. */
export interface Failing {
  readonly skus: number;
  readonly live: number;
  /** SKUs, by number, that make every call fail. */
  readonly bad: ReadonlySet<number>;
  /** The most SKUs of a call that is answered. */
  readonly limit: number;
  /** Pairs of start and end, in milliseconds from the beginning, between which nothing is answered. */
  readonly outages: readonly (readonly [number, number])[];
  /** The same, but every call with a live SKU fails, after `hangMs`. */
  readonly liveOutages: readonly (readonly [number, number])[];
  readonly hangMs: number;
  /** The most live SKUs of a call that is answered. */
  readonly liveLimit: number;
  /** Whether everything is due at the start, instead of evenly over time. */
  readonly atOnce: boolean;
  /**
   * Processes, which share the ledger but not what answers have shown; the calls under way of each; and how long
   * one takes.
   */
  readonly daemons: number;
  readonly workers: number;
  readonly latencyMs: number;
}

/** The outcome of a simulated time. */
export interface Outcome {
  calls: number;
  lost: number;
  /** The lost calls that failed only because of an outage. */
  lostToOutages: number;
  /** When outages of the live source were reported to begin and end. */
  readonly outages: { readonly began: number; ended: number }[];
  /** For each answerable SKU, by how much its price exceeded its target at most, and when. */
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
 * Returns how many whole calls may be lost: three in a hundred, for each bad SKU what finding it takes, and those
 * under way when it is found that the partner answers only smaller calls.
 */
export const allowed = ({ calls }: Outcome, bad: number, hours: number, underWay = 0) =>
  Math.ceil(0.03 * calls + Math.log2(100) * bad * Math.max(1, hours / 24)) + underWay;

/**
 * Returns by how much the price of a SKU was too old, after the first load and outside of outages and their
 * aftermath.
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
