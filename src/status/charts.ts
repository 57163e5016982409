import { formatAge } from '../lib/duration.ts';
import { count } from '../lib/format.ts';
import type { Targets } from '../store/setup/sql-settings.ts';
import type { CohortSample, Sample } from '../store/status/samples.ts';
import {
  chart,
  type ChartLine,
  columnsOf,
  gapsOf,
  isKnown,
  type Mark,
  type Range,
  rangesAt,
  spansOf,
  valuesOf,
} from './chart.ts';
import { sum, targetSeconds } from './format.ts';
import { html, type Html } from './html.ts';
import { MIRROR_STATES, type MirrorState } from './reason.ts';

/* The charts of the status page, each for the last hour and for the last day. Pure. */

/** What all charts of a page are drawn from: the samples in columns, by range. */
export interface Course {
  readonly ranges: readonly { readonly range: Range; readonly columns: readonly (readonly Sample[])[] }[];
}

export const courseOf = (samples: readonly Sample[], now: Date): Course => ({
  ranges: rangesAt(now).map((range) => ({ range, columns: columnsOf(samples, range) })),
});

interface Drawn {
  readonly lines: readonly ChartLine[];
  readonly marks?: readonly Mark[];
  readonly least?: number;
  readonly most?: number;
}

/** Returns the newest sample if it is from the current minute or the two before; else null. */
export function latest({ ranges }: Course): Sample | null {
  const [hour] = ranges;
  return hour?.columns.slice(-3).flat().at(-1) ?? null;
}

/** Returns the price changes in the sampled minutes of the last hour. */
export function changesInHour({ ranges }: Course): number {
  const [hour] = ranges;
  const changes = (hour?.columns ?? []).flat().map(({ priceChanges }) => priceChanges);
  return Math.round(sum(changes.filter(isKnown)));
}

type Columns = readonly (readonly Sample[])[];

/** Draws a chart for each range, side by side. */
function both(
  { ranges }: Course,
  { id, title, unit }: { readonly id: string; readonly title: string; readonly unit: (n: number) => string },
  draw: (columns: Columns) => Drawn,
): Html {
  const charts = ranges.map(({ range, columns }) =>
    chart({
      id: `${id}-${range.name}`,
      title,
      unit,
      range,
      gaps: gapsOf(columns),
      marks: [],
      ...draw(columns),
    }),
  );
  return html`<div class="charts">${charts}</div>`;
}

/** Numbers that fit on a phone: 14M for fourteen million. */
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const short = (n: number): string =>
  Math.abs(n) < 10_000 ? count(Math.round(n * 10) / 10) : SHORT.format(n);
const percentText = (n: number): string => `${Math.floor(n * 10) / 10} %`;

const highest = (columns: Columns, value: (sample: Sample) => number | null) =>
  valuesOf(columns, value, Math.max);

const backoffs = (columns: Columns): Mark => ({
  name: 'back-off',
  look: 'backoff',
  spans: spansOf(columns, (samples) => samples.some(({ backingOff }) => backingOff)),
});
const incidents = (columns: Columns): Mark => ({
  name: 'incident',
  look: 'incident',
  spans: spansOf(columns, (samples) => samples.some(({ incident }) => incident)),
});

export const requestsChart = (course: Course): Html =>
  both(
    course,
    { id: 'requests-chart', title: 'Requests a window, against the limit', unit: short },
    (columns) => ({
      lines: [
        { name: 'all requests', look: 'area', values: highest(columns, (s) => s.requests + s.otherRequests) },
        { name: 'of the mirror', look: 'first', values: highest(columns, (s) => s.requests) },
        { name: 'ceiling of the mirror', look: 'target', values: highest(columns, (s) => s.ceiling) },
        { name: 'limit of the account', look: 'limit', values: highest(columns, (s) => s.requestLimit) },
      ],
      marks: [backoffs(columns)],
    }),
  );

export const backlogChart = (course: Course): Html =>
  both(course, { id: 'backlog-chart', title: 'SKUs due for a refresh', unit: short }, (columns) => ({
    lines: [
      { name: 'due', look: 'area', values: highest(columns, (s) => s.due) },
      { name: 'due', look: 'first', values: highest(columns, (s) => s.due) },
      { name: 'never priced', look: 'second', values: highest(columns, (s) => s.pending) },
    ],
    marks: [backoffs(columns)],
  }));

export const changesChart = (course: Course): Html =>
  both(course, { id: 'changes-chart', title: 'Price changes a minute', unit: short }, (columns) => ({
    lines: [{ name: 'price changes', look: 'area', values: highest(columns, (s) => s.priceChanges) }],
  }));

/** The part of a cohort that should be fresh, in percent, which the alerts on freshness also use. */
export const FRESH_OBJECTIVE = 95;
/** Where the scale may begin, so that the last few percent can be told apart. */
const FLOORS = [90, 80, 50, 0];

const share = ({ priced, fresh }: CohortSample): number | null =>
  priced === null || fresh === null || priced === 0 ? null : (100 * fresh) / priced;

export const freshChart = (course: Course): Html =>
  both(
    course,
    { id: 'fresh-chart', title: 'Share of prices that are fresh', unit: percentText },
    (columns) => {
      const lowest = (value: (sample: Sample) => number | null) => valuesOf(columns, value, Math.min);
      const lines: ChartLine[] = [
        { name: 'snapshot-priced', look: 'first', values: lowest((s) => share(s.snapshot)) },
        { name: 'live', look: 'second', values: lowest((s) => share(s.live)) },
      ];
      const least = Math.min(100, ...lines.flatMap(({ values }) => values.filter((value) => value !== null)));
      const hasShares = lines.some(({ values }) => values.some((value) => value !== null));
      const objective = hasShares ? columns.map(() => FRESH_OBJECTIVE) : [];
      return {
        lines: [...lines, { name: 'objective', look: 'target', values: objective }],
        marks: [incidents(columns)],
        least: FLOORS.find((floor) => floor < least) ?? 0,
        most: 100,
      };
    },
  );

export const ageChart = (course: Course, cohort: 'snapshot' | 'live', targets: Targets): Html =>
  both(
    course,
    {
      id: `age-${cohort}-chart`,
      title: `Age of ${cohort === 'live' ? 'live' : 'snapshot-priced'} prices`,
      unit: formatAge,
    },
    (columns) => {
      const p95 = highest(columns, (s) => s[cohort].p95);
      const target = targetSeconds(cohort, targets);
      return {
        lines: [
          { name: '95 of 100 prices are younger than', look: 'second', values: p95 },
          {
            name: 'half of them are younger than',
            look: 'first',
            values: highest(columns, (s) => s[cohort].p50),
          },
          {
            name: 'target',
            look: 'target',
            values: p95.some((age) => age !== null) ? columns.map(() => target) : [],
          },
        ],
        most: ageTop([target, ...p95.filter((age) => age !== null)]),
        marks: [incidents(columns)],
      };
    },
  );

const AGE_TOPS = [60, 300, 600, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 129_600, 172_800];

/** Returns the top of a scale of ages: a time that people name. */
function ageTop(ages: readonly number[]): number {
  const most = 1.1 * Math.max(...ages.filter(Number.isFinite));
  return AGE_TOPS.find((top) => top >= most) ?? Math.ceil(most / 86_400) * 86_400;
}

const isState = (state: string): state is MirrorState => MIRROR_STATES.some((one) => one === state);

/** Draws the worst state of each column, as a strip of colours. */
export function stateStrips({ ranges }: Course): Html {
  return html`<div class="charts">${ranges.map(({ range, columns }) => stateStrip(range, columns))}</div>`;
}

function stateStrip(range: Range, columns: Columns): Html {
  const worst = columns.map((samples) =>
    samples
      .map(({ state }) => state)
      .filter(isState)
      .reduce<MirrorState | null>(
        (a, b) => (a === null || MIRROR_STATES.indexOf(b) > MIRROR_STATES.indexOf(a) ? b : a),
        null,
      ),
  );
  const words = { hour: 'last hour', day: 'last 24 hours' }[range.name];
  const id = `state-${range.name}`;
  const stretches = MIRROR_STATES.map((state) => ({
    state,
    spans: spansOf(worst, (one) => one === state),
  })).filter(({ spans }) => spans.length > 0);
  const minutes = (spans: readonly { start: number; end: number }[]) =>
    (spans.reduce((n, { start, end }) => n + end - start, 0) * range.stepMs) / 60_000;
  const shown = stretches.map(({ state, spans }) => `${state}: ${minutes(spans)} minutes.`);
  return html`<svg class="strip" role="img" aria-labelledby="${id}-t ${id}-d">
    <title id="${id}-t">State, ${words}</title>
    <desc id="${id}-d">${shown.length === 0 ? 'No samples yet.' : shown.join(' ')}</desc>
    <svg width="100%" height="8" viewBox="0 0 ${range.columns} 1" preserveAspectRatio="none">
      <path class="gap" d="M0 0H${range.columns}V1H0Z" />
      ${stretches.map(
        ({ state, spans }) =>
          html`<path
            class="is-${state}"
            d="${spans.map(({ start, end }) => `M${start} 0H${end}V1H${start}Z`).join('')}"
          />`,
      )}
    </svg>
    <text class="range" x="0" y="22">state, ${words}</text>
  </svg>`;
}
