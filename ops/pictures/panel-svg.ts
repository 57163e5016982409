/** A line of a panel: what the legend says, and its samples as seconds and value, ascending. */
export interface Line {
  readonly legend: string;
  readonly values: readonly (readonly [number, number])[];
}

export interface DrawnPanel {
  readonly title: string;
  /** A Grafana unit: short, percentunit, s, cpm, bytes, bool. */
  readonly unit: string;
  /** The present value in place of a course of time. */
  readonly stat: boolean;
  readonly stacked: boolean;
  /** Of 24 columns, as on the dashboard. */
  readonly width: number;
  /** Values at which a dashed line stands. */
  readonly limits: readonly number[];
  readonly lines: readonly Line[];
}

const WIDTH = 1280;
const GAP = 8;
const HEIGHTS = { stat: 84, lines: 232 };
const MARGIN = { left: 64, right: 12, top: 34, bottom: 62 };
export const COLOURS = [
  '#3b82f6',
  '#f59e0b',
  '#10b981',
  '#ef4444',
  '#8b5cf6',
  '#06b6d4',
  '#ec4899',
  '#84cc16',
];

export const STYLE = `text{font:12px system-ui,sans-serif;fill:var(--text)}
.title{font-weight:600;font-size:13px}.quiet{fill:var(--quiet);font-size:11px}.value{font-size:26px;font-weight:600}
.end{text-anchor:end}.middle{text-anchor:middle}.frame{fill:var(--panel);stroke:var(--line)}.grid{stroke:var(--line)}
:root{--page:#f4f5f7;--panel:#fff;--text:#1f2430;--quiet:#667085;--line:#dfe2e8}
@media(prefers-color-scheme:dark){:root{--page:#111217;--panel:#181b1f;--text:#d5d8e0;--quiet:#8b93a5;--line:#2c3038}}`;

export const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
export const rounded = (value: number) => String(Math.round(value * 10) / 10);
export const plain = (value: number) =>
  value >= 10_000 ? `${rounded(value / 1000)} k` : String(Number(value.toPrecision(3)));

/** A value as Grafana would write it. */
export function valueText(value: number, unit: string): string {
  if (unit === 'percentunit') return `${rounded(100 * value)} %`;
  if (unit === 'cpm') return `${plain(value)}/min`;
  if (unit === 'bytes') return `${rounded(value / 2 ** 20)} MiB`;
  if (unit !== 's') return plain(value);
  if (value >= 5400) return `${rounded(value / 3600)} h`;
  if (value >= 60) return `${rounded(value / 60)} min`;
  return value >= 1 || value === 0 ? `${rounded(value)} s` : `${Math.round(value * 1000)} ms`;
}

/** Ticks of an axis from 0 that reaches at least `most`: 1, 2 or 5 times a power of ten, at most five. */
export function ticksUpTo(most: number): number[] {
  const raw = (most > 0 ? most : 1) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  const count = Math.ceil((most > 0 ? most : 1) / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Ticks that are even in the unit in which they are written: seconds, minutes or hours. */
function ticksOf(most: number, unit: string): number[] {
  if (unit !== 's') return ticksUpTo(most);
  const [seconds = 1] = [3600, 60].filter((each) => most >= 1.5 * each);
  return ticksUpTo(most / seconds).map((tick) => tick * seconds);
}

/** A line where it is drawn, and the ground that its area stands on. */
interface Area extends Line {
  readonly ground: Line['values'];
}

/** Each line on top of those before it; a line without a sample at a time adds nothing. */
function stackedUp(lines: readonly Line[]): Area[] {
  const times = new Set(lines.flatMap(({ values }) => values.map(([at]) => at)));
  const below = new Map([...times].toSorted((a, b) => a - b).map((at) => [at, 0]));
  return lines.map(({ legend: name, values }) => {
    const ground = [...below];
    for (const [at, value] of values) below.set(at, (below.get(at) ?? 0) + value);
    return { legend: name, values: [...below], ground };
  });
}

/** An axis of values: ticks with their texts and lines over the whole width. */
function axis(ticks: readonly number[], unit: string, box: Box, yOf: (value: number) => number): string {
  return ticks
    .map((tick) => {
      const y = rounded(yOf(tick));
      return `<line class="grid" x1="${box.x}" x2="${box.x + box.width}" y1="${y}" y2="${y}"/><text class="quiet end" x="${box.x - 6}" y="${rounded(yOf(tick) + 4)}">${escape(valueText(tick, unit))}</text>`;
    })
    .join('');
}

/** Names of the lines with their last values, in up to three rows. */
function legend(lines: readonly Line[], unit: string, box: Box): string {
  let x = box.x;
  let y = box.y;
  return lines
    .map(({ legend: name, values }, at) => {
      const text = `${name} ${valueText(values.at(-1)?.[1] ?? 0, unit)}`;
      const width = 20 + text.length * 6.4;
      if (x + width > box.x + box.width && x > box.x) [x, y] = [box.x, y + 15];
      const entry = `<rect x="${rounded(x)}" y="${y - 8}" width="10" height="3" fill="${COLOURS[at % COLOURS.length]}"/><text class="quiet" x="${rounded(x + 14)}" y="${y - 3}">${escape(text)}</text>`;
      x += width;
      return entry;
    })
    .join('');
}

function course({ unit, lines, stacked, limits }: DrawnPanel, box: Box): string {
  const drawn = stacked ? stackedUp(lines) : lines.map((line) => ({ ...line, ground: [] }));
  const samples = drawn.flatMap(({ values }) => values);
  if (samples.length === 0)
    return `<text class="quiet middle" x="${box.x + box.width / 2}" y="${box.y + box.height / 2}">no data</text>`;
  const times = samples.map(([at]) => at);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const most = Math.max(...samples.map(([, value]) => value));
  const ticks = ticksOf(unit === 'percentunit' ? Math.min(1, most) : most, unit);
  const top = ticks.at(-1) ?? 1;
  const xOf = (at: number) => box.x + ((at - from) / Math.max(1, to - from)) * box.width;
  const yOf = (value: number) => box.y + box.height * (1 - value / top);
  const pointsOf = (values: Line['values']) =>
    values.map(([time, value]) => `${rounded(xOf(time))},${rounded(yOf(value))}`);
  const paths = drawn.map(({ values, ground }, at) => {
    const colour = COLOURS[at % COLOURS.length];
    const points = pointsOf(values).join(' ');
    const area = `<polygon points="${points} ${pointsOf(ground).toReversed().join(' ')}" fill="${colour}" opacity="0.25"/>`;
    return `${stacked ? area : ''}<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"/>`;
  });
  const dashes = limits
    .filter((limit) => limit <= top)
    .map(
      (limit) =>
        `<line x1="${box.x}" x2="${box.x + box.width}" y1="${rounded(yOf(limit))}" y2="${rounded(yOf(limit))}" stroke="#ef4444" stroke-dasharray="4 4"/>`,
    );
  const marks = ticksOf(to - from, 's').filter((seconds) => seconds <= to - from);
  const span = marks.map(
    (seconds) =>
      `<text class="quiet middle" x="${rounded(xOf(from + seconds))}" y="${box.y + box.height + 15}">${escape(valueText(seconds, 's'))}</text>`,
  );
  return [
    axis(ticks, unit, box, yOf),
    ...paths,
    ...dashes,
    ...span,
    legend(lines, unit, { ...box, y: box.y + box.height + 34 }),
  ].join('');
}

function present({ unit, lines }: DrawnPanel, { x, y, width }: Box): string {
  if (lines.length === 0) return `<text class="quiet" x="${x + 12}" y="${y + 58}">no data</text>`;
  const each = (width - 24) / lines.length;
  return lines
    .map(({ legend: name, values }, at) => {
      const value = valueText(values.at(-1)?.[1] ?? 0, unit);
      // A state's name is its legend.
      const [large, small] = unit === 'short' ? [name, ''] : [value, lines.length > 1 ? name : ''];
      const left = rounded(x + 12 + at * each);
      return `<text class="value" x="${left}" y="${y + 58}">${escape(large)}</text><text class="quiet" x="${left}" y="${y + 74}">${escape(small)}</text>`;
    })
    .join('');
}

/** Panels as one picture, in the dashboard's 24 columns, in the reader's light or dark scheme. */
export function drawPanels(panels: readonly DrawnPanel[], caption: string): string {
  const column = (WIDTH - GAP) / 24;
  let [columns, y, tallest] = [0, GAP, 0];
  const drawn = panels.map((panel) => {
    const height = panel.stat ? HEIGHTS.stat : HEIGHTS.lines;
    if (columns + panel.width > 24) [columns, y, tallest] = [0, y + tallest + GAP, 0];
    const box = {
      x: Math.round(GAP + columns * column),
      y,
      width: Math.round(panel.width * column - GAP),
      height,
    };
    [columns, tallest] = [columns + panel.width, Math.max(tallest, height)];
    const inside = {
      x: box.x + MARGIN.left,
      y: box.y + MARGIN.top,
      width: box.width - MARGIN.left - MARGIN.right,
      height: box.height - MARGIN.top - MARGIN.bottom,
    };
    return `<rect class="frame" x="${box.x}" y="${box.y}" width="${box.width}" height="${height}" rx="3"/><text class="title" x="${box.x + 12}" y="${box.y + 20}">${escape(panel.title)}</text>${panel.stat ? present(panel, box) : course(panel, inside)}`;
  });
  const height = y + tallest + 26;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escape(caption)}">
<style>${STYLE}</style>
<rect width="100%" height="100%" style="fill:var(--page)"/>
${drawn.join('\n')}
<text class="quiet" x="${GAP}" y="${height - 9}">${escape(caption)}</text>
</svg>
`;
}
