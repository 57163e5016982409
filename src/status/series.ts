import type { Sample } from '../store/status/samples.ts';

/* Samples in columns of time, as charts show them. Pure; times in epoch milliseconds. */

const MINUTE_MS = 60_000;

/** What a chart covers: `columns` of `stepMs` each, of which the last one is still running. */
export interface Range {
  readonly name: 'hour' | 'day';
  readonly from: number;
  readonly stepMs: number;
  readonly columns: number;
  /** Between two labels of the axis. */
  readonly tickMs: number;
}

/** The last hour in minutes and the last day in five minutes each, up to now. */
export function rangesAt(now: Date): readonly Range[] {
  return [
    rangeAt(now, { name: 'hour', stepMs: MINUTE_MS, columns: 60, tickMs: 15 * MINUTE_MS }),
    rangeAt(now, { name: 'day', stepMs: 5 * MINUTE_MS, columns: 288, tickMs: 360 * MINUTE_MS }),
  ];
}

function rangeAt(now: Date, range: Omit<Range, 'from'>): Range {
  const end = (Math.floor(now.getTime() / range.stepMs) + 1) * range.stepMs;
  return { ...range, from: end - range.columns * range.stepMs };
}

/** For each column the samples that fall into it. A column without any is a gap, whatever was before and after. */
export function columnsOf(
  samples: readonly Sample[],
  { from, stepMs, columns }: Range,
): readonly (readonly Sample[])[] {
  const filled: Sample[][] = Array.from({ length: columns }, () => []);
  for (const sample of samples) filled[Math.floor((sample.minute.getTime() - from) / stepMs)]?.push(sample);
  return filled;
}

/** Whether there is a number to draw. */
export const isKnown = (value: number | null): value is number => value !== null && Number.isFinite(value);

/** A value for each column, by the worst of its samples; null: nothing is known. */
export function valuesOf(
  columns: readonly (readonly Sample[])[],
  value: (sample: Sample) => number | null,
  worst: (...values: number[]) => number,
): readonly (number | null)[] {
  return columns.map((samples) => {
    const known = samples.map(value).filter(isKnown);
    return known.length === 0 ? null : worst(...known);
  });
}

/** Columns from `start` up to `end`. */
export interface ColumnSpan {
  readonly start: number;
  readonly end: number;
}

/** Where something holds: columns side by side are one span. */
export function spansOf<T>(items: readonly T[], holds: (item: T) => boolean): readonly ColumnSpan[] {
  const spans: ColumnSpan[] = [];
  items.forEach((item, at) => {
    if (!holds(item)) return;
    const last = spans.at(-1);
    if (last?.end === at) spans[spans.length - 1] = { ...last, end: at + 1 };
    else spans.push({ start: at, end: at + 1 });
  });
  return spans;
}

/** Columns of which nothing was kept. The running one may yet be. */
export const gapsOf = (columns: readonly (readonly Sample[])[]): readonly ColumnSpan[] =>
  spansOf(columns.slice(0, -1), (samples) => samples.length === 0);
