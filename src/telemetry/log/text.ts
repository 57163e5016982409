import { shownJson } from '../../lib/json.ts';
import { harmless, painter, type Tint } from '../../status/style.ts';

const TINTS: Readonly<Record<string, Tint>> = {
  debug: 'dim',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
};
/** Members that have a place of their own, or say nothing to who sees the process's terminal. */
const PLACED = new Set(['level', 'time', 'event', 'msg', 'next', 'err', 'pid', 'hostname', 'mirror']);
const INDENT = ' '.repeat(16);
const DEEPEST_CAUSE = 8;

/**
 * A line of the JSON log as a person reads it: time of day (UTC), level, message, event and members; errors with
 * their causes, and what comes next, on lines of their own. In: one line as it is written, scrubbed. Out: text with a
 * line end. Pure.
 */
export function textLine(json: string, colour: boolean): string {
  const line = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const paint = painter({ colour, width: null, ascii: false });
  const { level, time, event, msg, next, err } = line;
  const name = wordsOf(level);
  const members = Object.entries(line)
    .filter(([member, value]) => !PLACED.has(member) && value !== null)
    .map(([member, value]) => `${harmless(member)}=${valueOf(value)}`);
  const head = [
    paint('dim', `${wordsOf(time).slice(11, 19)}Z`),
    paint(TINTS[name] ?? 'dim', name.padEnd(5)),
    wordsOf(msg),
    paint('dim', [`(${wordsOf(event)})`, ...members].join(' ')),
  ].join(' ');
  const below = [
    ...errorLines(err).map((text) => `because: ${text}`),
    ...(typeof next === 'string' ? [`next: ${wordsOf(next)}`] : []),
  ];
  return `${[head, ...below.map((text) => `${INDENT}${text}`)].join('\n')}\n`;
}

const wordsOf = (value: unknown): string => (typeof value === 'string' ? harmless(value) : '');

function valueOf(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? harmless(value) : shownJson(value);
}

/** An error as the log describes it, and its causes, a line each. Its stack, where there is one, follows the first. */
function errorLines(thrown: unknown, depth = 0): string[] {
  if (typeof thrown !== 'object' || thrown === null || depth > DEEPEST_CAUSE) return [];
  const { type, message, code, hint, stack, cause } = thrown as Readonly<Record<string, unknown>>;
  const known = typeof code === 'string' || typeof code === 'number' ? ` (${harmless(String(code))})` : '';
  const frames =
    typeof stack === 'string'
      ? stack
          .split('\n')
          .filter((line) => /^\s+at /.test(line))
          .map(harmless)
      : [];
  return [
    `${wordsOf(type)}: ${wordsOf(message)}${known}${typeof hint === 'string' ? `; ${wordsOf(hint)}` : ''}`,
    ...frames.map((frame) => `${INDENT}${frame.trimStart()}`),
    ...errorLines(cause, depth + 1),
  ];
}
