import type { AgeDistribution } from '../../store/catalog-counts.ts';
import type { Metric, Registry } from 'prom-client';

type Labels = Readonly<Record<string, string>>;

/** One series of a gauge or a counter. Without a finite value there is no series. */
export interface GaugeSample {
  readonly labels?: Labels;
  readonly value: number | null;
}

/** One label set's distribution. */
export interface HistogramSample {
  readonly labels?: Labels;
  readonly ages: AgeDistribution;
}

/** A metric whose series are all replaced at once by what was last read: a series that is no longer true does not linger. */
export interface Sampled<Sample> {
  set(samples: readonly Sample[]): void;
}

interface Series {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

interface Description {
  readonly name: string;
  readonly help: string;
}

function register(registry: Registry, description: Description, type: 'gauge' | 'counter' | 'histogram') {
  let series: readonly Series[] = [];
  const metric = {
    ...description,
    type,
    get: async () => ({ ...description, type, values: series, aggregator: 'first' }),
    reset: () => {
      series = [];
    },
  };
  // A registry asks its metrics for no more than this; the library's type lists its own classes only.
  registry.registerMetric(metric as unknown as Metric);
  return (next: readonly Series[]) => {
    series = next;
  };
}

/** A gauge that shows the samples it was last given, and nothing before the first. */
export function sampledGauge(registry: Registry, description: Description): Sampled<GaugeSample> {
  return single(register(registry, description, 'gauge'));
}

/**
 * A counter that shows the samples it was last given. It is counted elsewhere, where every daemon reads the same number
 * and it outlives them: no `sum` over replicas.
 */
export function sampledCounter(registry: Registry, description: Description): Sampled<GaugeSample> {
  return single(register(registry, description, 'counter'));
}

function single(show: (next: readonly Series[]) => void): Sampled<GaugeSample> {
  return {
    set: (samples) =>
      show(
        samples.flatMap(({ labels = {}, value }) =>
          value === null || !Number.isFinite(value) ? [] : [{ labels, value }],
        ),
      ),
  };
}

/**
 * A histogram that shows distributions computed elsewhere: the buckets arrive cumulative, so nothing is observed here.
 * Unlike a counter's, its numbers may fall: read it with histogram_quantile and without rate.
 */
export function sampledHistogram(registry: Registry, description: Description): Sampled<HistogramSample> {
  const show = register(registry, description, 'histogram');
  const { name } = description;
  return {
    set: (samples) =>
      show(
        samples.flatMap(({ labels = {}, ages }) => [
          ...ages.buckets
            .filter(({ le }) => Number.isFinite(le))
            .toSorted((a, b) => a.le - b.le)
            .map(({ le, count }) => ({
              labels: { ...labels, le: String(le) },
              value: count,
              metricName: `${name}_bucket`,
            })),
          { labels: { ...labels, le: '+Inf' }, value: ages.count, metricName: `${name}_bucket` },
          { labels, value: ages.sumSeconds, metricName: `${name}_sum` },
          { labels, value: ages.count, metricName: `${name}_count` },
        ]),
      ),
  };
}
