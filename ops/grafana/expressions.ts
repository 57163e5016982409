import { type METRICS, PREFIX } from '../../src/telemetry/metrics/metrics.ts';

/*
 * PromQL for the panels, of the mirror that is chosen. What is read from Postgres is the same in every daemon (max); what a process counts is its own
 * (sum). Only raw metrics: the panels work without the recording rules. A metric or label that is not in the table of
 * metrics does not compile.
 */

type Name = keyof typeof METRICS;
type LabelOf<N extends Name> = (typeof METRICS)[N]['labels']['names'][number];
/** Metrics of some kind: those whose declaration has the member. */
type With<Member extends string> = {
  [N in Name]: Member extends keyof (typeof METRICS)[N] ? N : never;
}[Name];

/** A metric's series, all or those that are matched. */
interface Selector<N extends Name> {
  readonly name: N;
  readonly matcher: string;
}

type Selected<N extends Name> = N | Selector<N>;

/** The mirror chosen at the top of the dashboard: a mirror is a job, and another one's series must not be mixed in. */
const MIRROR = 'job="$job"';

/** The daemons chosen at the top of the dashboard, replicas of that mirror. */
export const CHOSEN = `${MIRROR}, instance=~"$instance"`;

const by = (labels: readonly string[]) => (labels.length === 0 ? '' : ` by (${labels.join(', ')})`);

/** A metric's name as Prometheus has it. */
export function named(name: Name): string {
  return PREFIX + name;
}

/** The series whose labels have these values, or, with `!=`, others. */
export function where<N extends Name>(
  name: N,
  values: { readonly [L in LabelOf<N>]?: string },
  is: '=' | '!=' = '=',
): Selector<N> {
  const matchers = Object.entries(values).map(([label, value]) => `${label}${is}"${String(value)}"`);
  return { name, matcher: matchers.join(', ') };
}

function selected<N extends Name>(of: Selected<N>, ...more: readonly string[]): string {
  const { name, matcher } = typeof of === 'string' ? { name: of, matcher: '' } : of;
  const matchers = [...more, matcher].filter((text) => text !== '').join(', ');
  return named(name) + (matchers === '' ? '' : `{${matchers}}`);
}

/** A gauge or counter that is read from Postgres, by labels. */
export function read<N extends With<'read'>>(of: Selected<N>, ...labels: LabelOf<N>[]): string {
  return `max${by(labels)} (${selected(of, MIRROR)})`;
}

/** The same of every mirror that this Prometheus scrapes, by job and labels. */
export function readOfAll<N extends With<'read'>>(of: Selected<N>, ...labels: LabelOf<N>[]): string {
  return `max${by(['job', ...labels])} (${selected(of)})`;
}

/** A recorded series of the chosen mirror. */
export function recorded(name: `catalog_mirror:${string}`): string {
  return `${name}{${MIRROR}}`;
}

/** Seconds since a time that is read from Postgres, by labels. Not below 0: a sample has the time at which its scrape began, and its value may be younger. */
export function since<N extends With<'read'>>(of: Selected<N>, ...labels: LabelOf<N>[]): string {
  return `clamp_min(time() - ${read(of, ...labels)}, 0)`;
}

/** By how much a counter that is read from Postgres rose in a window (`1h`), by labels. */
export function readIncrease<N extends With<'read'>>(
  of: Selected<N>,
  window: string,
  ...labels: LabelOf<N>[]
): string {
  return `max${by(labels)} (increase(${selected(of, MIRROR)}[${window}]))`;
}

/** How often a minute a counter that is read from Postgres rose, by labels. */
export function readPerMinute<N extends With<'read'>>(of: Selected<N>, ...labels: LabelOf<N>[]): string {
  return `60 * max${by(labels)} (rate(${selected(of, MIRROR)}[$__rate_interval]))`;
}

/** How often a minute the chosen daemons counted something, by labels. */
export function perMinute<N extends With<'on'>>(of: Selected<N>, labels: readonly LabelOf<N>[] = []): string {
  return `60 * sum${by(labels)} (rate(${selected(of, CHOSEN)}[$__rate_interval]))`;
}

/** How often the chosen daemons counted something in a window (`1h`), by labels. */
export function countIn<N extends With<'on'>>(
  of: Selected<N>,
  window: string,
  labels: readonly LabelOf<N>[] = [],
): string {
  return `sum${by(labels)} (increase(${selected(of, CHOSEN)}[${window}]))`;
}

/** How many values a histogram of the chosen daemons observed in a window (`1h`). */
export function observedIn(name: With<'on'> & With<'buckets'>, window: string): string {
  return `sum (increase(${named(name)}_count{${CHOSEN}}[${window}]))`;
}

/**
 * A quantile of what the chosen daemons measured within a window. `>= 0` leaves out the moments at which nothing was
 * measured: histogram_quantile gives NaN for them.
 */
export function measured<N extends With<'on'> & With<'buckets'>>(
  q: number,
  name: N,
  window: string,
  labels: readonly LabelOf<N>[] = [],
): string {
  const rates = `sum${by(['le', ...labels])} (rate(${named(name)}_bucket{${CHOSEN}}[${window}]))`;
  return `histogram_quantile(${q}, ${rates}) >= 0`;
}

/** A quantile over the SKUs as they are now: such a histogram is no counter, so there is no rate. NaN as above. */
export function ofSkus<N extends With<'ages'>>(
  q: number,
  name: N,
  labels: readonly LabelOf<N>[] = [],
): string {
  return `histogram_quantile(${q}, max${by(['le', ...labels])} (${named(name)}_bucket{${MIRROR}})) >= 0`;
}
