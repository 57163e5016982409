import type { Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { stripVTControlCharacters } from 'node:util';
import type { Environment } from '../config/environment.ts';
import { shownJson } from '../lib/json.ts';
import { type Terminal, harmless } from '../status/style.ts';

/** Prints lines, and knows when they have been taken. */
export interface Printer {
  readonly print: (line: string) => void;
  /**
   * Resolves once everything that was printed is taken: a pipe takes only 64 kB before its reader reads, and the rest
   * stays in memory.
   */
  readonly printed: () => Promise<void>;
}

/** Creates a printer on a stream. Errors of the stream are left to its listeners. */
export function createPrinter(stream: Pick<Writable, 'write'>): Printer {
  let last = Promise.resolve();
  return {
    print(line) {
      const { promise, resolve } = Promise.withResolvers<void>();
      stream.write(`${line}\n`, () => resolve());
      last = promise;
    },
    printed: () => last,
  };
}

const CSI = '\u001B[';
const OPEN = `${CSI}?1049h${CSI}?25l`;
const CLOSE = `${CSI}?25h${CSI}?1049l`;

/** The size assumed for a terminal that does not know its own, or says that it is 0 × 0. */
const [COLUMNS, ROWS] = [80, 24];

type Output = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns' | 'rows'>>;

/**
 * Returns what may be written to this output: a width only if it is a terminal, colour only if the terminal supports it
 * and NO_COLOR allows it. FORCE_COLOR takes precedence (`0` or `false`: none, else colour), as in Node.js itself.
 */
export function terminalOf(output: Output, env: Environment): Terminal {
  const isTerminal = output.isTTY === true;
  const forced = env['FORCE_COLOR'] ?? '';
  const dumb = env['TERM'] === 'dumb';
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  return {
    width: isTerminal ? output.columns || COLUMNS : null,
    colour:
      forced === '' ? isTerminal && !dumb && (env['NO_COLOR'] ?? '') === '' : !/^(?:0|false)$/.test(forced),
    ascii: dumb || (locale !== '' && !/utf-?8/i.test(locale)),
  };
}

/** Creates a screen that is redrawn repeatedly. Lines are overwritten in place and then cleared, to avoid flicker. */
export function createCanvas(output: Output): { draw: (text: string) => void; close: () => void } {
  let last: string | null = null;
  const isTerminal = output.isTTY === true;
  return {
    draw(text) {
      if (!isTerminal) {
        output.write(`${text}\n`);
        return;
      }
      const shown = text.split('\n').slice(0, Math.max(1, (output.rows || ROWS) - 1));
      const frame = `${CSI}H${shown.map((line) => `${line}${CSI}K`).join('\n')}\n${CSI}J`;
      output.write(last === null ? OPEN + frame : frame);
      last = text;
    },
    close() {
      // Leaves the last screen where the command was typed.
      if (last !== null) output.write(`${CLOSE}${last}\n`);
    },
  };
}

/** Lines at the end of the output that are redrawn repeatedly. What is printed meanwhile appears above them. */
interface Panel {
  draw(lines: readonly string[]): void;
  print(line: string): void;
  /** Leaves the last lines where they are. */
  close(): void;
}

/**
 * Creates a panel on a terminal. Lines have to be shorter than the terminal is wide. It may be made narrower at any
 * time, which breaks lines that were drawn before, so that more rows have to be overwritten.
 */
export function createPanel(output: Output): Panel {
  let drawn: readonly string[] = [];
  let isOpen = false;
  const rowsOf = (line: string) =>
    Math.max(1, Math.ceil(stripVTControlCharacters(line).length / (output.columns || COLUMNS)));
  const back = () => {
    const rows = drawn.reduce((sum, line) => sum + rowsOf(line), 0);
    return rows === 0 ? '' : `\r${CSI}${rows}A`;
  };
  const frame = (lines: readonly string[]) => `${lines.map((line) => `${line}${CSI}K\n`).join('')}${CSI}J`;
  return {
    draw(lines) {
      const shown = lines.slice(0, Math.max(1, (output.rows || ROWS) - 1));
      output.write(`${isOpen ? '' : `${CSI}?25l`}${back()}${frame(shown)}`);
      isOpen = true;
      drawn = shown;
    },
    print(line) {
      output.write(`${back()}${frame([...line.split('\n'), ...drawn])}`);
    },
    close() {
      if (isOpen) output.write(`${CSI}?25h`);
      isOpen = false;
      drawn = [];
    },
  };
}

/** Formats a value for a cell: times in ISO 8601, objects as JSON, nothing for null. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'string') return harmless(value);
  return harmless(shownJson(value));
}

/** Formats rows given as objects, whose keys are the columns; see `gridOf`. */
export function tableOf(rows: readonly object[], width: number | null): string[] {
  return gridOf(
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
    width,
  );
}

/**
 * Formats rows as lines of text under the names of their columns. If a line would be longer than `width` columns, each
 * row is shown with one line per column instead, as in psql. With `width` null, lines have any length.
 */
export function gridOf(
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
  width: number | null,
): string[] {
  const names = columns.map(harmless);
  const cells = rows.map((row) => row.map(cellOf));
  const widths = names.map((name, i) => Math.max(name.length, ...cells.map((row) => row[i]?.length ?? 0)));
  const length = widths.reduce((sum, w) => sum + w + 2, 0) - 2;
  if (width !== null && length > width) return expanded(names, cells);
  const lineOf = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [names, widths.map((w) => '-'.repeat(w)), ...cells].map(lineOf);
}

function expanded(names: readonly string[], cells: readonly (readonly string[])[]): string[] {
  const widest = Math.max(...names.map(({ length }) => length));
  return cells.flatMap((row, at) => [
    `- row ${at + 1}`,
    ...row.map((cell, i) => `${(names[i] ?? '').padEnd(widest)}  ${cell}`.trimEnd()),
  ]);
}
