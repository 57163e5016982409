import type { PacerEvents } from '../../pace/pacer.ts';
import type { RequestObservation } from '../../partner/client.ts';
import type { TaskReport } from '../../queues/task-run.ts';
import type { Health } from '../../status/health.ts';
import type { MirrorStats } from '../../status/status.ts';
import type { StoreFailure } from '../../store/connection/sql-errors.ts';
import type { AgeDistribution } from '../../store/status/counts.ts';
import type { SyncEvent } from '../../sync/events.ts';

/** What a counter or a histogram may count in a daemon. */
export type Observation =
  | SyncEvent
  | ({ readonly event: 'request.ended' } & RequestObservation)
  | ({ readonly event: 'request.waited' } & Parameters<Required<PacerEvents>['waited']>[0])
  | ({ readonly event: 'task.ended' } & TaskReport)
  | {
      readonly event: 'job.ended';
      readonly queue: string;
      readonly outcome: string;
      readonly ms: number;
    };

export interface Scrape {
  /** How this daemon judges the mirror; null before its first judgement. */
  readonly health: Health | null;
  /** Null if Postgres could not be read. */
  readonly stats: MirrorStats | null;
  readonly storeFailure: StoreFailure | null;
  /** Epoch milliseconds of Postgres's clock, like all times of `stats`. */
  readonly now: number;
  readonly version: string;
  /** The mirror's name (MIRROR_NAME). */
  readonly mirror: string;
}

/** A value by label; an empty object for a metric without labels. */
export type LabelSet<L extends string = string> = Readonly<Record<L, string>>;

/** The labels of a metric, and the label sets that are known in advance: these have series from the start. */
export interface Labels<L extends string = string> {
  readonly names: readonly L[];
  readonly sets: readonly LabelSet<L>[];
}

/** One series, which is absent without a finite value. */
export interface MetricSample<L extends string = string> {
  readonly labels?: LabelSet<L>;
  readonly value: number | null;
}

export interface AgeSample<L extends string = string> {
  readonly labels?: LabelSet<L>;
  readonly ages: AgeDistribution;
}

/** A bare number is the only series of a metric without labels. */
type Samples<L extends string> = readonly MetricSample<L>[] | number | null;

/** For each event that a metric counts, by how much or what is observed. */
type On<L extends string> = {
  readonly [E in Observation['event']]?: (event: Extract<Observation, { event: E }>) => Samples<L>;
};

interface Declaration<L extends string> {
  readonly help: string;
  readonly labels?: Labels<L>;
}

interface Declared<L extends string> {
  readonly help: string;
  readonly labels: Labels<L>;
}

/** Counted by this process since its start; to be summed over daemons. */
export interface Counted<L extends string = string> extends Declared<L> {
  readonly type: 'counter';
  readonly on: On<L>;
}

/** Observed by this process since its start. */
export interface Observed<L extends string = string> extends Declared<L> {
  readonly type: 'histogram';
  readonly buckets: readonly number[];
  readonly on: On<L>;
}

/** Read at each scrape. `null`: no series. A known label set that is missing is 0, unless nothing could be read. */
export interface Read<
  T extends 'gauge' | 'counter' = 'gauge' | 'counter',
  L extends string = string,
> extends Declared<L> {
  readonly type: T;
  readonly read: (scrape: Scrape) => readonly MetricSample<L>[] | null;
}

/** A distribution that is read at each scrape. Its numbers may fall, unlike a counter's: do not use `rate`. */
export interface ReadAges<L extends string = string> extends Declared<L> {
  readonly type: 'histogram';
  readonly ages: (stats: MirrorStats) => readonly AgeSample<L>[];
}

export type Metric = Counted | Observed | Read | ReadAges;

const unlabelled = <L extends string>(): Labels<L> => ({ names: [], sets: [] });

/** Returns labels with all combinations of their values. */
export function each<const L extends string>(values: Readonly<Record<L, readonly string[]>>): Labels<L> {
  const names = Object.keys(values) as L[];
  const sets = names.reduce<Record<string, string>[]>(
    (all, name) => all.flatMap((set) => values[name].map((value) => ({ ...set, [name]: value }))),
    [{}],
  );
  return { names, sets: sets as LabelSet<L>[] };
}

/** Returns labels with only these sets of values, for combinations that do not all occur. */
export function only<const L extends string>(names: readonly L[], sets: readonly LabelSet<L>[]): Labels<L> {
  return { names, sets };
}

/** Returns labels whose values are not known in advance. */
export function unlisted<const L extends string>(...names: readonly L[]): Labels<L> {
  return { names, sets: [] };
}

/** Declares a counter of what happens in this process. */
export function counter<L extends string = never>(
  row: Declaration<L> & { readonly on: On<NoInfer<L>> },
): Counted<L> {
  return { labels: unlabelled(), ...row, type: 'counter' };
}

/** Declares a histogram of what happens in this process. `buckets`: upper bounds, ascending. */
export function histogram<L extends string = never>(
  row: Declaration<L> & { readonly buckets: readonly number[]; readonly on: On<NoInfer<L>> },
): Observed<L> {
  return { labels: unlabelled(), ...row, type: 'histogram' };
}

type FromStats<L extends string> = Declaration<L> & {
  readonly read: (stats: MirrorStats, scrape: Scrape) => Samples<NoInfer<L>>;
};

function fromStats<T extends 'gauge' | 'counter', L extends string>(
  type: T,
  { read, ...row }: FromStats<L>,
): Read<T, L> {
  return {
    labels: unlabelled(),
    ...row,
    type,
    read: (scrape) => (scrape.stats === null ? null : samplesOf(read(scrape.stats, scrape))),
  };
}

/** Declares a gauge that is read from the mirror's statistics; without them it has no series. */
export function gauge<L extends string = never>(row: FromStats<L>): Read<'gauge', L> {
  return fromStats('gauge', row);
}

/** Declares a counter that Postgres keeps: it outlives the daemons, and all of them show the same value. */
export function storedCounter<L extends string = never>(row: FromStats<L>): Read<'counter', L> {
  return fromStats('counter', row);
}

/** Declares a gauge of the daemon itself, which is also available while Postgres cannot be read. */
export function ownGauge<L extends string = never>(
  row: Declaration<L> & { readonly read: (scrape: Scrape) => Samples<NoInfer<L>> },
): Read<'gauge', L> {
  const { read } = row;
  return {
    labels: unlabelled(),
    ...row,
    type: 'gauge',
    read: (scrape) => samplesOf(read(scrape)),
  };
}

/** Declares a histogram of the ages of prices, read from the statistics at each scrape. */
export function ages<L extends string = never>(
  row: Declaration<L> & { readonly ages: (stats: MirrorStats) => readonly AgeSample<NoInfer<L>>[] },
): ReadAges<L> {
  return { labels: unlabelled(), ...row, type: 'histogram' };
}

/** Turns a bare value into one sample without labels. */
export function samplesOf<L extends string>(samples: Samples<L>): readonly MetricSample<L>[] {
  return typeof samples === 'object' && samples !== null ? samples : [{ value: samples }];
}

/** Lists every value of a type, in this order. A missing or an unknown one does not compile. */
export const allOf = <T extends string>(values: Readonly<Record<T, true>>): T[] => Object.keys(values) as T[];
