import type { Environment } from '../config/environment.ts';
import { formatAge } from '../lib/duration.ts';
import { count, plural } from '../lib/format.ts';
import { estimateBacklog, secondsBetween, sum } from '../status/format.ts';
import type { Health } from '../status/health.ts';
import type { ReasonCode } from '../status/reason.ts';
import type { Status } from '../status/status.ts';
import { bar, harmless, painter, STATE_TINTS, type Terminal, type Tint, wrap } from '../status/style.ts';
import type { ChangeRow, RecentChanges } from '../store/status/demo.ts';
import { textLine } from '../telemetry/log/logger.ts';
import { createPanel, terminalOf } from './terminal.ts';

/** What the demo shows of the mirror at one moment. */
export interface DemoView {
  readonly status: Status;
  readonly health: Health;
  readonly now: Date;
  readonly changes: RecentChanges;
}

/** The progress of the initial load. */
interface Load {
  readonly done: number;
  readonly all: number;
  /** Null if there is no estimate. */
  readonly secondsLeft: number | null;
}

const LABEL = 10;
const NARROWEST = 30;
const WIDEST_BAR = 30;
const NARROWEST_BAR = 8;
const MAX_NOTE_LINES = 4;
const LONGEST_SKU = 14;
const LOADING: ReadonlySet<ReasonCode> = new Set(['no-baseline', 'filling']);

/** Returns whether the initial load is under way, according to the mirror's health. */
export const isLoading = ({ health }: Pick<DemoView, 'health'>): boolean =>
  health.reasons.some(({ code }) => LOADING.has(code));

/** Computes the progress of the initial load, from the status at one moment. Pure. */
function loadOf({ status, now }: Pick<DemoView, 'status' | 'now'>): Load {
  const { skus } = status.stats;
  const all = sum(skus.map((row) => row.count));
  const pending = sum(skus.filter(({ state }) => state === 'pending').map((row) => row.count));
  const { minutes } = estimateBacklog(status, now);
  return { done: all - pending, all, secondsLeft: minutes === null ? null : minutes * 60 };
}

const percentOf = ({ done, all }: Load): number => (all === 0 ? 0 : Math.floor((100 * done) / all));

function loadWords(load: Load): string {
  if (load.all === 0) return 'fetching the manifest';
  const left = load.secondsLeft === null ? '' : `, about ${formatAge(load.secondsLeft)} left`;
  return `${count(load.done)} of ${count(load.all)} SKUs${left}`;
}

function mirrorWords({ status, now, changes }: DemoView): string {
  const { skus, due, deltaCheckedAt } = status.stats;
  const checked =
    deltaCheckedAt === null ? '' : `, delta checked ${formatAge(secondsBetween(deltaCheckedAt, now))} ago`;
  return (
    `${count(sum(skus.map((row) => row.count)))} SKUs, ${count(sum(due.map((row) => row.count)))} due, ` +
    `${priceChanges(changes)}${checked}`
  );
}

const priceChanges = ({ count: n }: RecentChanges): string =>
  `${count(n)} ${plural(n, 'price change')} recorded`;

/** Formats one line for a pipe or a file. `isFilled`: the initial load was over before, and is not shown again. */
export function demoLine(view: DemoView, isFilled: boolean): string {
  if (!isFilled) {
    const load = loadOf(view);
    return `filling: ${loadWords(load)}${load.all === 0 ? '' : ` (${percentOf(load)} %)`}`;
  }
  const { state, reasons } = view.health;
  const [worst] = reasons;
  return `${state}: ${mirrorWords(view)}${worst === undefined ? '' : `; ${harmless(worst.text)}`}`;
}

/**
 * Returns a key that changes with each step worth a line of its own: a tenth of the load, another catalog snapshot,
 * another state.
 */
export function demoStep(view: DemoView, isFilled: boolean): string {
  if (!isFilled) return `filling ${Math.floor(percentOf(loadOf(view)) / 10)} ${loadOf(view).all > 0}`;
  return `${view.health.state} ${view.status.stats.snapshotId ?? ''}`;
}

/**
 * Formats the panel of a terminal, with no line longer than the terminal is wide. `note`: the log's last warning. Pure.
 */
export function demoPanel(
  view: DemoView,
  isFilled: boolean,
  note: string | null,
  terminal: Terminal,
): string[] {
  const width = Math.max(NARROWEST, (terminal.width ?? 80) - 1);
  const paint = painter(terminal);
  const { state, reasons } = view.health;
  const row = (label: string, text: string, tint: Tint = 'dim') =>
    wrap(`${label.padEnd(LABEL)}${text}`, width, LABEL).map((line, i) =>
      i === 0 ? paint(tint, line.slice(0, LABEL)) + line.slice(LABEL) : line,
    );
  const first = isFilled
    ? row(state, harmless(reasons[0]?.text ?? mirrorWords(view)), STATE_TINTS[state])
    : loadRows(loadOf(view), width, terminal);
  const { pace } = view.status.stats;
  return [
    ...first,
    ...(isFilled && reasons.length > 0 ? row('mirror', mirrorWords(view)) : []),
    ...row('requests', `${count(pace.usedInWindow)} of ${count(pace.mostInWindow)} in the last minute`),
    ...view.changes.newest.flatMap((change, i) =>
      row(i === 0 ? 'just now' : '', changeWords(change, view.now, width - LABEL, terminal)).slice(0, 1),
    ),
    ...(note === null ? [] : row('log', harmless(note)).slice(0, MAX_NOTE_LINES)),
    ...row('', 'press Ctrl-C to stop; the mirror is kept'),
  ].map((line) => line.trimEnd());
}

function loadRows(load: Load, width: number, terminal: Terminal): string[] {
  const paint = painter(terminal);
  const words = loadWords(load);
  const part = ` ${String(percentOf(load)).padStart(3)} %  `;
  const cells = Math.min(WIDEST_BAR, width - LABEL - part.length - words.length);
  const label = paint('cyan', 'filling'.padEnd(LABEL));
  if (load.all === 0)
    return wrap(`${' '.repeat(LABEL)}${words}`, width, LABEL).map((line, i) =>
      i === 0 ? label + line.slice(LABEL) : line,
    );
  const drawn = (n: number) => {
    const full = bar(load.done, load.all, n, terminal.ascii);
    return paint('cyan', full) + paint('dim', (terminal.ascii ? '.' : '░').repeat(n - full.length));
  };
  if (cells >= NARROWEST_BAR) return [label + drawn(cells) + part + words];
  const narrow = Math.max(4, Math.min(WIDEST_BAR, width - LABEL - part.length));
  return [(label + drawn(narrow) + part).trimEnd(), ...wrap(`${' '.repeat(LABEL)}${words}`, width, LABEL)];
}

function changeWords(change: ChangeRow, now: Date, width: number, { ascii }: Terminal): string {
  const { sku, size, old_price: from, new_price: to, observed_at: at } = change;
  const price = (value: number | null) => (value === null ? 'none' : count(value));
  const arrow = ascii ? '->' : '→';
  const name = harmless(sku);
  const shown = name.length > LONGEST_SKU ? `${name.slice(0, LONGEST_SKU - 1)}${ascii ? '~' : '…'}` : name;
  const move = `${price(from).padStart(6)} ${arrow} ${price(to)}`;
  const whole =
    `${shown.padEnd(LONGEST_SKU)} ${harmless(size).padEnd(8)} ${move.padEnd(16)} ` +
    `${formatAge(Math.max(0, secondsBetween(at, now)))} ago`;
  return whole.length <= width ? whole : `${shown} ${harmless(size)} ${price(from)} ${arrow} ${price(to)}`;
}

/** Where the demo shows itself. */
export interface Board {
  /** `seconds`: since the start of the demo. `isFilled`: the initial load was over before. */
  show(view: DemoView, isFilled: boolean, seconds: number): void;
  /** Shows what is being done until there is a view. */
  busy(what: string): void;
  print(line: string): void;
  /** Takes a line of the JSON log. */
  log(json: string): void;
  close(): void;
}

/** Creates a board: on a terminal a panel that is redrawn, elsewhere lines. */
export function createBoard(stdout: NodeJS.WriteStream, env: Environment): Board {
  const isPanel = stdout.isTTY && env['TERM'] !== 'dumb';
  return isPanel ? panelBoard(stdout, env) : lineBoard(stdout, env);
}

function lineBoard(stdout: NodeJS.WriteStream, env: Environment): Board {
  let step = '';
  const print = (line: string) => void stdout.write(`${line}\n`);
  return {
    show(view, isFilled, seconds) {
      const next = demoStep(view, isFilled);
      if (next !== step) print(`${String(Math.round(seconds)).padStart(4)}s  ${demoLine(view, isFilled)}`);
      step = next;
    },
    busy: print,
    print,
    log: (json) => print(logText(json, stdout, env)),
    close() {},
  };
}

function panelBoard(stdout: NodeJS.WriteStream, env: Environment): Board {
  const panel = createPanel(stdout);
  const close = () => panel.close();
  // Also when something else ends the process: no terminal may be left without a cursor.
  process.once('exit', close);
  let note: string | null = null;
  return {
    show(view, isFilled) {
      panel.draw(demoPanel(view, isFilled, note, terminalOf(stdout, env)));
    },
    busy: (what) => panel.draw([what]),
    print: (line) => panel.print(line),
    log(json) {
      const { level, msg, sku, next } = JSON.parse(json) as Readonly<Record<string, unknown>>;
      // Each warning replaces the previous one; any other line stays on the screen.
      if (level !== 'warn') return panel.print(logText(json, stdout, env));
      const about = typeof sku === 'string' ? ` (${sku})` : '';
      const remedy = typeof next === 'string' ? `; ${next}` : '';
      note = `${String(msg)}${about}${remedy}`;
    },
    close() {
      process.off('exit', close);
      close();
    },
  };
}

/** Formats a line of the log, as text unless LOG_FORMAT is JSON. */
function logText(json: string, stdout: NodeJS.WriteStream, env: Environment): string {
  const isJson = env['LOG_FORMAT']?.trim() === 'json';
  return (isJson ? json : textLine(json, terminalOf(stdout, env).colour)).trimEnd();
}
