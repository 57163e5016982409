import type { Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { stripVTControlCharacters } from 'node:util';
import type { Environment } from '../config/environment.ts';
import { shownJson } from '../lib/json.ts';
import { type Terminal, harmless } from '../status/style.ts';

/** What prints lines, and knows when they are taken. */
export interface Printer {
  readonly print: (line: string) => void;
  /**
   * Resolves once all that was printed is taken: a pipe takes no more than 64 kB before its reader reads, and the rest
   * is in memory.
   */
  readonly printed: () => Promise<void>;
}

/** Prints on a stream. What becomes of one that fails is its listeners' matter. */
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

/** What a terminal has that does not know its size, or says that it is 0 × 0. */
const [COLUMNS, ROWS] = [80, 24];

type Output = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns' | 'rows'>>;

/**
 * What may be written to this output: a width only where it is a terminal, colour where it is one that takes it, unless
 * NO_COLOR says no; FORCE_COLOR takes precedence over both (`0` or `false`: none, else colour), as with Node.js itself.
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

/** A screen that is drawn over and over. Lines are overwritten in place and then cleared, so nothing flickers. */
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
      // The last screen stays where the command was typed.
      if (last !== null) output.write(`${CLOSE}${last}\n`);
    },
  };
}

/** Lines at the end of what is printed that are drawn over and over; what is printed meanwhile stands above them. */
interface Panel {
  draw(lines: readonly string[]): void;
  print(line: string): void;
  /** The last lines stay where they are. */
  close(): void;
}

/**
 * A panel on a terminal. Lines have to be shorter than it is wide. The terminal may be made narrower at any time: it
 * then breaks lines that were drawn before, and more rows have to be drawn over.
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

/** A value as a cell shows it: times in ISO 8601, objects as JSON, nothing for null. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'string') return harmless(value);
  return harmless(shownJson(value));
}

/** `gridOf` for rows as objects: their keys are the columns. */
export function tableOf(rows: readonly object[], width: number | null): string[] {
  return gridOf(
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
    width,
  );
}

/**
 * Rows as lines of text, under their columns' names. Where a line would be longer than `width` columns, each row is
 * shown with a line a column instead, as psql does. `width` null: lines are as long as they are.
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
