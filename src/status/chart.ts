import { MINUTE_MS } from '../lib/duration.ts';
import type { Sample } from '../store/status/samples.ts';
import { html, type Html } from './html.ts';

/* Sorts samples into columns of time, as charts show them. Pure; times in epoch milliseconds. */

/** What a chart covers: `columns` of `stepMs` each, of which the last one is still running. */
export interface Range {
  readonly name: 'hour' | 'day';
  readonly from: number;
  readonly stepMs: number;
  readonly columns: number;
  /** Milliseconds between two labels of the axis. */
  readonly tickMs: number;
}

/** Returns the last hour in minutes and the last day in steps of five minutes, up to now. */
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

/** Returns the samples of each column. A column without any is a gap, whatever came before and after. */
export function columnsOf(
  samples: readonly Sample[],
  { from, stepMs, columns }: Range,
): readonly (readonly Sample[])[] {
  const filled: Sample[][] = Array.from({ length: columns }, () => []);
  for (const sample of samples) filled[Math.floor((sample.minute.getTime() - from) / stepMs)]?.push(sample);
  return filled;
}

/** Returns whether there is a number to draw. */
export const isKnown = (value: number | null): value is number => value !== null && Number.isFinite(value);

/** Returns a value for each column, by the worst of its samples; null: nothing is known. */
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
interface ColumnSpan {
  readonly start: number;
  readonly end: number;
}

/** Returns the spans in which something holds; adjacent columns form one span. */
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

/** Returns the columns without samples, except the running one, which may still get one. */
export const gapsOf = (columns: readonly (readonly Sample[])[]): readonly ColumnSpan[] =>
  spansOf(columns.slice(0, -1), (samples) => samples.length === 0);

/*
 * Draws charts as SVG, without a library. Each column is a step as wide as its time: nothing is drawn between two
 * samples that was not sampled, and the line ends if there is none. The plot stretches with the page, its texts do
 * not. Pure.
 */

export interface ChartLine {
  readonly name: string;
  /** How it is drawn: a class of the style sheet. */
  readonly look: 'first' | 'second' | 'limit' | 'target' | 'area';
  readonly values: readonly (number | null)[];
}

export interface Mark {
  readonly name: string;
  readonly look: 'backoff' | 'incident';
  readonly spans: readonly ColumnSpan[];
}

export interface Chart {
  /** Prefix of element ids: unique on the page. */
  readonly id: string;
  readonly title: string;
  readonly range: Range;
  readonly lines: readonly ChartLine[];
  readonly marks: readonly Mark[];
  readonly gaps: readonly ColumnSpan[];
  /** The lowest value on the scale; 0 if absent. */
  readonly least?: number;
  /** The highest; that of the lines if absent. */
  readonly most?: number;
  readonly unit: (value: number) => string;
}

/** Height of the plot in its own units. */
const HIGH = 100;
const RANGE_NAMES = { hour: 'last hour', day: 'last 24 hours' } as const;

/**
 * Returns the top of the scale: a round number (1, 1.5, 2, 3, 5 or 7.5 times a power of ten), so that it does not
 * move with each sample; never 0.
 */
export function topOf(values: readonly number[]): number {
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 1.5, 2, 3, 5, 7.5, 10].find((step) => step * power >= most) ?? 10) * power;
}

/** Returns a line as the path of its steps: pieces that begin and end with the known values. */
export function stepsOf(values: readonly (number | null)[], yOf: (value: number) => number): string {
  let path = '';
  let previous: number | null = null;
  values.forEach((value, at) => {
    const y = !isKnown(value) ? null : Math.round(yOf(value) * 10) / 10;
    if (previous !== null && y !== previous) path += `H${at}`;
    if (y !== null && y !== previous) path += previous === null ? `M${at} ${y}` : `V${y}`;
    previous = y;
  });
  return previous === null ? path : `${path}H${values.length}`;
}

/** Returns the area below such a line. */
function areaOf(values: readonly (number | null)[], yOf: (value: number) => number): string {
  return stepsOf(values, yOf).replace(
    /M(\d+) ([\d.]+)([^M]*?)H(\d+)(?=M|$)/g,
    (_, start: string, y: string, steps: string, end: string) =>
      `M${start} ${HIGH}V${y}${steps}H${end}V${HIGH}Z`,
  );
}

const bandsOf = (spans: readonly ColumnSpan[]): string =>
  spans.map(({ start, end }) => `M${start} 0H${end}V${HIGH}H${start}Z`).join('');

/** Returns the times of the axis, multiples of the tick, as percentages of the width. */
function ticksOf({ from, stepMs, columns, tickMs }: Range): readonly { at: Date; percent: number }[] {
  const width = columns * stepMs;
  const first = Math.ceil(from / tickMs) * tickMs;
  return Array.from({ length: Math.floor((from + width - first) / tickMs) + 1 }, (_, i) => first + i * tickMs)
    .map((at) => ({ at: new Date(at), percent: (100 * (at - from)) / width }))
    .filter(({ percent }) => percent >= 4 && percent <= 96);
}

const clockOf = (at: Date): string => at.toISOString().slice(11, 16);

/** Draws a chart with its title and, for those who cannot see it, its figures in words. */
export function chart(drawn: Chart): Html {
  const { id, title, range, lines, marks, gaps, least = 0, unit } = drawn;
  const values = lines.flatMap((line) => line.values.filter(isKnown));
  const top = drawn.most ?? topOf(values);
  const yOf = (value: number) => HIGH - HIGH * Math.min(1, Math.max(0, (value - least) / (top - least)));
  const isEmpty = values.length === 0;
  const scale = `${least === 0 ? 'to' : `${unit(least)} to`} ${unit(top)}`;
  const ticks = ticksOf(range);
  return html`<svg class="chart" role="img" aria-labelledby="${id}-t ${id}-d">
    <title id="${id}-t">${title}, ${RANGE_NAMES[range.name]}</title>
    <desc id="${id}-d">${inWords(drawn)}</desc>
    <svg
      class="plot"
      y="16"
      width="100%"
      height="76"
      viewBox="0 0 ${range.columns} ${HIGH}"
      preserveAspectRatio="none"
    >
      ${gaps.length === 0 ? null : html`<path class="gap" d="${bandsOf(gaps)}" />`}
      ${marks
        .filter(({ spans }) => spans.length > 0)
        .map(({ look, spans }) => html`<path class="mark ${look}" d="${bandsOf(spans)}" />`)}
      ${lines.map(({ look, values: of }) =>
        look === 'area'
          ? html`<path class="area" d="${areaOf(of, yOf)}" />`
          : html`<path class="line ${look}" d="${stepsOf(of, yOf)}" />`,
      )}
      <path class="axis" d="M0 ${HIGH}H${range.columns}" />
    </svg>
    <text class="range" x="0" y="11">${RANGE_NAMES[range.name]}</text>
    ${
      isEmpty
        ? html`<text class="none" x="50%" y="58">${emptyText(drawn)}</text>`
        : html`<text class="top" x="100%" y="11">${scale}</text>`
    }
    ${ticks.map(({ at, percent }) => {
      const [place, iso] = [percent.toFixed(1), at.toISOString()];
      return html`<text class="tick" x="${place}%" y="106" data-at="${iso}">${clockOf(at)}</text>`;
    })}
  </svg>`;
}

function emptyText({ gaps, range }: Chart): string {
  return columnsIn(gaps) >= range.columns - 1
    ? 'no samples yet: one is taken each minute'
    : 'nothing to show';
}

const columnsIn = (spans: readonly ColumnSpan[]): number =>
  spans.reduce((n, { start, end }) => n + end - start, 0);

function inWords({ lines, marks, gaps, range, unit }: Chart): string {
  const minutes = (spans: readonly ColumnSpan[]) => (columnsIn(spans) * range.stepMs) / 60_000;
  const shown = lines.flatMap(({ name, values }, i) => {
    // A line and the area below it are one.
    if (lines.findIndex((line) => line.name === name) < i) return [];
    const numbers = values.filter(isKnown);
    const last = numbers.at(-1);
    if (last === undefined) return [];
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    return [
      `${name}: ${unit(last)} at last${low === high ? '' : `, between ${unit(low)} and ${unit(high)}`}.`,
    ];
  });
  const marked = marks.flatMap(({ name, spans }) =>
    spans.length === 0 ? [] : [`${name}: ${minutes(spans)} minutes.`],
  );
  const missing = gaps.length === 0 ? [] : [`No samples: ${minutes(gaps)} minutes.`];
  return [...(shown.length === 0 ? ['No figures yet.'] : shown), ...marked, ...missing].join(' ');
}
