import { styleText } from 'node:util';
import { UNSEEN } from '../lib/json.ts';
import type { MirrorState } from './reason.ts';

export interface Terminal {
  /** Columns; null: lines are not wrapped (a pipe, a file). */
  readonly width: number | null;
  readonly colour: boolean;
  readonly ascii: boolean;
}

export type Tint = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
export const STATE_TINTS: Readonly<Record<MirrorState, Tint>> = {
  healthy: 'green',
  filling: 'cyan',
  degraded: 'yellow',
  paused: 'yellow',
  broken: 'red',
};

export type Paint = (tint: Tint, text: string) => string;

/** Returns a function that colours texts for this terminal, or leaves them unchanged if it takes no colour. */
export function painter({ colour }: Terminal): Paint {
  // terminalOf has decided whether there is colour, and not only for stdout.
  return (tint, text) => (colour && text !== '' ? styleText(tint, text, { validateStream: false }) : text);
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** Draws a bar for `part` of `whole`; anything above zero is visible. `rest` fills it up to its full width. */
export function bar(part: number, whole: number, cells: number, ascii: boolean, rest = ''): string {
  const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  const eighths = share > 0 ? Math.max(1, Math.round(share * cells * 8)) : 0;
  const drawn = ascii
    ? '#'.repeat(Math.ceil(eighths / 8))
    : '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
  return drawn + (rest === '' ? '' : rest.repeat(Math.max(0, cells - drawn.length)));
}

/**
 * Replaces characters that a terminal would take for a command, or that change the reading direction, in others'
 * text.
 */
export function harmless(text: string): string {
  return text.replace(UNSEEN, '\uFFFD');
}

/**
 * Breaks a line between words into pieces of at most `columns` columns (or 8, if that is more); later ones are
 * indented.
 */
export function wrap(line: string, columns: number | null, deep: number): string[] {
  if (columns === null || line.length <= columns) return [line];
  const width = Math.max(columns, 8);
  const indent = Math.min(deep, Math.floor(width / 2));
  const lines: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width);
    const at = space > indent ? space : width;
    lines.push(rest.slice(0, at).trimEnd());
    rest = `${' '.repeat(indent)}${rest.slice(at).trimStart()}`;
  }
  return [...lines, rest];
}
