import { collectDefaultMetrics, Counter, Histogram, type Metric as Registered, Registry } from 'prom-client';
import type { AgeDistribution } from '../../store/status/counts.ts';
import {
  type AgeSample,
  type Labels,
  type LabelSet,
  type Metric,
  type Observation,
  type MetricSample,
  samplesOf,
  type Scrape,
} from './declaration.ts';
import { MIRROR_METRICS } from './mirror-metrics.ts';
import { PROCESS_METRICS } from './process-metrics.ts';

export const PREFIX = 'catalog_mirror_';

/**
 * Every metric of the daemon, by its name without the prefix. Types, initial series, the table of docs/metrics.md and
 * what a panel may refer to are inferred from it. Names and labels are only ever added, because dashboards and alerts
 * read them.
 */
export const METRICS = { ...PROCESS_METRICS, ...MIRROR_METRICS };

/**
 * Gauges of prom-client that are named like counters. `nodejs_active_handles` and so on have the same numbers, by type.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const;

export type MirrorScrape = Pick<Scrape, 'health' | 'stats' | 'storeFailure' | 'now'>;

export interface Metrics {
  /** Returns the Prometheus text format, with the Node.js runtime's own metrics. */
  text(): Promise<string>;
  /** Counts an observation in every metric that its event increments. */
  count(observation: Observation): void;
  /**
   * Replaces everything that is read from the mirror, so that old numbers do not linger; stats are null if it could not
   * be read.
   */
  setMirror(scrape: MirrorScrape): void;
}

/**
 * Creates the metrics of one daemon in a registry of their own. Takes the program's version and the mirror's name;
 * without a name no label has it.
 */
export function createMetrics(options: { readonly version: string; readonly mirror?: string }): Metrics {
  const { version, mirror = '' } = options;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const counting: ((observation: Observation) => void)[] = [];
  const reading: ((scrape: Scrape) => void)[] = [];
  for (const [name, metric] of Object.entries<Metric>(METRICS)) {
    if ('on' in metric) counting.push(countIn(registry, PREFIX + name, metric));
    else reading.push(readInto(registry, PREFIX + name, metric));
  }
  const setMirror = (scrape: MirrorScrape) => {
    for (const read of reading) read({ ...scrape, version, mirror });
  };
  setMirror({ health: null, stats: null, storeFailure: null, now: 0 });
  return {
    text: () => registry.metrics(),
    count(observation) {
      for (const count of counting) count(observation);
    },
    setMirror,
  };
}

/** Registers a metric that events increment; returns the function that counts them. */
function countIn(
  registry: Registry,
  name: string,
  metric: Extract<Metric, { on: unknown }>,
): (observation: Observation) => void {
  const { help, labels, on } = metric;
  const description = { name, help, labelNames: [...labels.names], registers: [registry] };
  const add =
    metric.type === 'counter'
      ? counterOf(new Counter(description), labels)
      : histogramOf(new Histogram({ ...description, buckets: [...metric.buckets] }), labels);
  return (observation) => {
    const samples = on[observation.event] as
      | ((what: Observation) => ReturnType<typeof samplesOf>)
      | undefined;
    if (samples === undefined) return;
    for (const sample of samplesOf(samples(observation))) add(sample);
  };
}

function counterOf(counter: Counter, { sets }: Labels): (sample: MetricSample) => void {
  for (const set of sets) counter.inc(set, 0);
  return ({ labels = {}, value }) => counter.inc(labels, value ?? 0);
}

function histogramOf(histogram: Histogram, { sets }: Labels): (sample: MetricSample) => void {
  for (const set of sets) histogram.zero(set);
  return ({ labels = {}, value }) => {
    if (value !== null) histogram.observe(labels, value);
  };
}

interface Series {
  readonly labels: LabelSet;
  readonly value: number;
  readonly metricName?: string;
}

/** Registers a metric that is read at each scrape; returns the function that replaces all of its series at once. */
function readInto(
  registry: Registry,
  name: string,
  metric: Exclude<Metric, { on: unknown }>,
): (scrape: Scrape) => void {
  const { help, type, labels } = metric;
  let series: readonly Series[] = [];
  const registered = {
    name,
    help,
    type,
    get: async () => ({ name, help, type, values: series, aggregator: 'first' }),
    reset: () => {
      series = [];
    },
  };
  // A registry asks its metrics for no more than this, but the library's type lists only its own classes.
  registry.registerMetric(registered as unknown as Registered);
  return (scrape) => {
    if ('ages' in metric)
      series = scrape.stats === null ? [] : distributions(name, labels, metric.ages(scrape.stats));
    else series = values(labels, metric.read(scrape));
  };
}

function values(labels: Labels, samples: readonly MetricSample[] | null): Series[] {
  if (samples === null) return [];
  return [...samples, ...missing(labels, samples).map((set) => ({ labels: set, value: 0 }))].flatMap(
    ({ labels: set = {}, value }) =>
      value === null || !Number.isFinite(value) ? [] : [{ labels: set, value }],
  );
}

/** Returns the known label sets that no sample has. */
function missing({ names, sets }: Labels, samples: readonly { readonly labels?: LabelSet }[]): LabelSet[] {
  const keyOf = (set: LabelSet) => JSON.stringify(names.map((name) => set[name]));
  const present = new Set(samples.map(({ labels = {} }) => keyOf(labels)));
  return sets.filter((set) => !present.has(keyOf(set)));
}

const NOTHING: AgeDistribution = { buckets: [], count: 0, sumSeconds: 0 };

/** Returns the series of distributions that were computed elsewhere, whose buckets are already cumulative. */
function distributions(name: string, labels: Labels, samples: readonly AgeSample[]): Series[] {
  const empty = missing(labels, samples).map((set) => ({ labels: set, ages: NOTHING }));
  return [...samples, ...empty].flatMap(({ labels: set = {}, ages }) => [
    ...ages.buckets
      .filter(({ le }) => Number.isFinite(le))
      .toSorted((a, b) => a.le - b.le)
      .map(({ le, count }) => ({
        labels: { ...set, le: String(le) },
        value: count,
        metricName: `${name}_bucket`,
      })),
    { labels: { ...set, le: '+Inf' }, value: ages.count, metricName: `${name}_bucket` },
    { labels: set, value: ages.sumSeconds, metricName: `${name}_sum` },
    { labels: set, value: ages.count, metricName: `${name}_count` },
  ]);
}
