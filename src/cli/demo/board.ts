import type { Environment } from '../../config/environment.ts';
import { textLine } from '../../telemetry/log/text.ts';
import { createPanel, terminalOf } from '../terminal.ts';
import { demoLine, demoPanel, demoStep, type DemoView } from './panel.ts';

/** Where the demo shows itself: a panel on a terminal, lines anywhere else. */
export interface Board {
  /** `seconds`: since the demo was started. `isFilled`: the initial load was over before. */
  show(view: DemoView, isFilled: boolean, seconds: number): void;
  /** What has its place before there is a view. */
  busy(what: string): void;
  print(line: string): void;
  /** Takes a line of the JSON log. */
  log(json: string): void;
  close(): void;
}

/** Where the demo shows itself: on a terminal a panel that is drawn over, elsewhere lines. */
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
  // Whatever ends the process: a terminal without a cursor is left to nobody.
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
      // A warning is news like any other; what is worse stays on the screen.
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

/** A line of the log, as text unless LOG_FORMAT wants JSON. */
function logText(json: string, stdout: NodeJS.WriteStream, env: Environment): string {
  const isJson = env['LOG_FORMAT']?.trim() === 'json';
  return (isJson ? json : textLine(json, terminalOf(stdout, env).colour)).trimEnd();
}
