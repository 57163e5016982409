/*
 * PromQL for the panels. What is read from Postgres is the same in every daemon (max); what a process counts is its own
 * (sum). Only raw metrics: the panels work without the recording rules.
 */

const PREFIX = 'catalog_mirror_';

/** The daemons chosen at the top of the dashboard. */
export const CHOSEN = 'instance=~"$instance"';

const by = (labels: readonly string[]) => (labels.length === 0 ? '' : ` by (${labels.join(', ')})`);

/** A gauge or counter that is read from Postgres, by labels. */
export function read(name: string, ...labels: string[]): string {
  return `max${by(labels)} (${PREFIX}${name})`;
}

/** Seconds since a time that is read from Postgres, by labels. Not below 0: a sample has the time at which its scrape began, and its value may be younger. */
export function since(name: string, ...labels: string[]): string {
  return `clamp_min(time() - ${read(name, ...labels)}, 0)`;
}

/** By how much a counter that is read from Postgres rose in a window (`1h`), by labels. */
export function readIncrease(name: string, window: string, ...labels: string[]): string {
  return `max${by(labels)} (increase(${PREFIX}${name}[${window}]))`;
}

/** How often a minute the chosen daemons counted something, by labels. `matcher` restricts it further. */
export function perMinute(name: string, labels: readonly string[] = [], matcher = ''): string {
  const matchers = [CHOSEN, matcher].filter((m) => m !== '').join(', ');
  return `60 * sum${by(labels)} (rate(${PREFIX}${name}{${matchers}}[$__rate_interval]))`;
}

/** How often the chosen daemons counted something in a window (`1h`), by labels. */
export function countIn(name: string, window: string, labels: readonly string[] = []): string {
  return `sum${by(labels)} (increase(${PREFIX}${name}{${CHOSEN}}[${window}]))`;
}

/**
 * A quantile of what the chosen daemons measured within a window. `>= 0` leaves out the moments at which nothing was
 * measured: histogram_quantile gives NaN for them.
 */
export function measured(q: number, name: string, window: string, labels: readonly string[] = []): string {
  const rates = `sum${by(['le', ...labels])} (rate(${PREFIX}${name}_bucket{${CHOSEN}}[${window}]))`;
  return `histogram_quantile(${q}, ${rates}) >= 0`;
}

/** A quantile over the SKUs as they are now: such a histogram is no counter, so there is no rate. NaN as above. */
export function ofSkus(q: number, name: string, labels: readonly string[] = []): string {
  return `histogram_quantile(${q}, max${by(['le', ...labels])} (${PREFIX}${name}_bucket)) >= 0`;
}
