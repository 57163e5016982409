import type { WriteStream } from 'node:tty';
import type { Environment } from '../config/environment.ts';
import type { Terminal } from '../status/paint.ts';

const CSI = '\u001B[';
const OPEN = `${CSI}?1049h${CSI}?25l`;
const CLOSE = `${CSI}?25h${CSI}?1049l`;

type Output = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns' | 'rows'>>;

/** What may be written to this output: colour and a width only where it is a terminal that wants them. */
export function terminalOf(output: Output, env: Environment): Terminal {
  const isTerminal = output.isTTY === true;
  const dumb = env['TERM'] === 'dumb';
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  return {
    width: isTerminal ? (output.columns ?? 80) : null,
    colour: isTerminal && !dumb && (env['NO_COLOR'] ?? '') === '',
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
      const shown = text.split('\n').slice(0, Math.max(1, (output.rows ?? 24) - 1));
      const frame = `${CSI}H${shown.map((line) => `${line}${CSI}K`).join('\n')}\n${CSI}J`;
      output.write(last === null ? OPEN + frame : frame);
      last = text;
    },
    close() {
      // The last look stays where the command was typed.
      if (last !== null) output.write(`${CLOSE}${last}\n`);
    },
  };
}
