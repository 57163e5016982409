import { hostname } from 'node:os';
import { type DestinationStream, pino, stdTimeFunctions } from 'pino';
import type { Config } from '../../config/config.ts';
import type { Level } from '../../declared/log-event.ts';
import {
  type AnyLine,
  declared,
  type EventAt,
  type EventLine,
  type EventName,
} from '../../declared/log-events.ts';
import { mirrorName } from '../../lib/host-name.ts';
import { shownJson } from '../../lib/json.ts';
import { harmless, painter, type Tint } from '../../status/style.ts';
import { type Destination, openDestination } from './destination.ts';
import { createScrubber } from './scrub.ts';

/**
 * Writes a line. `event` is its stable name (`delta.applied`), one that declared/log-events.ts declares for the level,
 * with the members that it declares. An error goes, by convention, under `err`: any member that is an Error is
 * described with its kind, code and causes. Without a message the line has the declared one.
 */
type Write<L extends Level> = <E extends EventAt<L>>(fields: EventLine<E>, message?: string) => void;

export interface Log {
  readonly debug: Write<'debug'>;
  readonly info: Write<'info'>;
  readonly warn: Write<'warn'>;
  readonly error: Write<'error'>;
  readonly fatal: Write<'fatal'>;
}

/** Writes a line at its level if `say`, else at debug. For what recurs. */
export function throttled<L extends 'info' | 'warn', E extends EventAt<L> & EventAt<'debug'>>(
  log: Log,
  level: L,
  say: boolean,
  fields: EventLine<E>,
  message?: string,
): void {
  const write = (say ? log[level] : log.debug) as (fields: EventLine<E>, message?: string) => void;
  write(fields, message);
}

/** Writes a line at its event's own level if `say`, else at debug. */
export function emitLine(log: Log, fields: AnyLine, say = true): void {
  const level = say ? declared(fields.event).levels[0] : 'debug';
  (log[level] as (fields: AnyLine) => void)(fields);
}

/** How a line is written. */
type LogForm = { readonly as: 'json' } | { readonly as: 'text'; readonly colour: boolean };

const STDOUT = 1;
const JSON_FORM: LogForm = { as: 'json' };

/** Returns the form that LOG_FORMAT asks for, depending on whether stdout is a terminal. */
export function logFormOf(
  format: Config['log']['format'],
  stdout: { readonly isTerminal: boolean; readonly colour: boolean },
): LogForm {
  const isText = format === 'text' || (format === 'auto' && stdout.isTerminal);
  return isText ? { as: 'text', colour: stdout.colour } : JSON_FORM;
}

export interface LoggerOptions {
  readonly level: Config['log']['level'];
  /** MIRROR_NAME, or null: the host's name. */
  readonly mirrorName?: string | null;
  /** What must not appear in any line, at the time of the call. Plain values: their encodings are handled here. */
  readonly secrets: () => readonly string[];
  /** JSON by default; `colour` for text on a terminal that supports it. */
  readonly form?: LogForm;
  /** Where lines go; stdout by default. */
  readonly destination?: DestinationStream & Partial<Destination>;
}

/**
 * Creates a log of JSON lines, or of the same as text: `level` (word), `time` (ISO 8601, UTC), `pid`, `hostname`,
 * `mirror`, `event`, `msg`, the call's own members, and from `warn` on what its declaration says comes next. Each line
 * is scrubbed after it is serialised (secrets in every usual encoding, Authorization values, query strings of URLs),
 * because leaks are in messages, causes and nested members that redaction by path does not reach.
 */
export function createLogger(options: LoggerOptions): Log {
  const form = options.form ?? JSON_FORM;
  const written = (json: string) => (form.as === 'text' ? textLine(json, form.colour) : json);
  const scrubber = createScrubber(options.secrets);
  const withStacks = options.level === 'debug' || options.level === 'trace';
  const described = (fields: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        value instanceof Error ? describeError(value, withStacks) : value,
      ]),
    );
  const destination: DestinationStream & Partial<Destination> =
    options.destination ?? openDestination(STDOUT);
  const log = pino(
    {
      level: options.level,
      base: { pid: process.pid, hostname: hostname(), mirror: mirrorName(options.mirrorName ?? null) },
      timestamp: stdTimeFunctions.isoTime,
      // pino's own serialiser for `err` copies every member of the error.
      serializers: { err: (value: unknown) => value },
      formatters: { level: (label) => ({ level: label }), log: described, bindings: described },
      hooks: { streamWrite: (line) => written(scrubber.line(line)) },
    },
    destination,
  );
  const write =
    (level: 'debug' | 'info') =>
    (fields: { readonly event: EventName }, message?: string): void =>
      log[level](fields, message ?? declared(fields.event).says);
  const alarm =
    (level: 'warn' | 'error' | 'fatal') =>
    (fields: { readonly event: EventName }, message?: string): void => {
      const { says, next } = declared(fields.event);
      log[level]({ ...fields, next }, message ?? says);
    };
  const warn = alarm('warn');
  destination.onLoss?.((loss) => warn({ event: 'log.lost', ...loss }));
  return {
    debug: write('debug'),
    info: write('info'),
    warn,
    error: alarm('error'),
    fatal: alarm('fatal'),
  };
}

/** An error in a log line. It has a `stack` only if that says more than the kind. */
interface DescribedError {
  readonly type: string;
  readonly message: string;
  readonly kind?: string;
  readonly code?: string | number;
  readonly hint?: string;
  readonly stack?: string;
  /** What was thrown, if it was neither an Error nor text. */
  readonly value?: unknown;
  readonly cause?: DescribedError;
  readonly errors?: readonly DescribedError[];
}

const DEEPEST_CAUSE = 8;
const MAX_ERRORS = 5;

/**
 * Describes anything that was thrown: type and message, and if present kind, code, hint, cause chain and the errors of
 * an AggregateError. Omits the stack of errors with a kind, which are expected, unless `withStacks`. Copies no other
 * members (a query's parameters, a request's options). Never throws; cuts a circular chain.
 */
export function describeError(thrown: unknown, withStacks: boolean, depth = 0): DescribedError {
  try {
    return describe(thrown, withStacks, depth);
  } catch {
    return { type: 'unknown', message: 'an error that cannot be read' };
  }
}

function describe(thrown: unknown, withStacks: boolean, depth: number): DescribedError {
  if (!(thrown instanceof Error)) {
    return typeof thrown === 'string'
      ? { type: 'string', message: thrown }
      : { type: typeof thrown, message: 'something that is not an Error was thrown', value: thrown };
  }
  const { name, message, stack, cause } = thrown;
  const kind = 'kind' in thrown && typeof thrown.kind === 'string' ? thrown.kind : undefined;
  const code =
    'code' in thrown && (typeof thrown.code === 'string' || typeof thrown.code === 'number')
      ? thrown.code
      : undefined;
  const hint = 'hint' in thrown && typeof thrown.hint === 'string' ? thrown.hint : undefined;
  const deeper = depth < DEEPEST_CAUSE;
  const errors = deeper && thrown instanceof AggregateError ? thrown.errors.slice(0, MAX_ERRORS) : [];
  return {
    type: name,
    message,
    ...(kind !== undefined && { kind }),
    ...(code !== undefined && { code }),
    ...(hint !== undefined && { hint }),
    ...((withStacks || kind === undefined) && stack !== undefined && { stack }),
    ...(deeper && cause !== undefined && { cause: describeError(cause, withStacks, depth + 1) }),
    ...(errors.length > 0 && { errors: errors.map((error) => describeError(error, withStacks, depth + 1)) }),
  };
}

/** Returns the ids of the caller's current span, or null if there is none. */
export type PresentSpan = () => { readonly traceId: string; readonly spanId: string } | null;

/** Wraps a log: lines written within a span get `trace_id` and `span_id`, the names that log collectors look for. */
export function withTraceIds(log: Log, present: PresentSpan): Log {
  const within = <L extends keyof Log>(level: L): Log[L] => {
    const write = log[level] as (fields: object, message?: string) => void;
    return (fields: object, message?: string) => {
      const span = present();
      if (span === null) return write(fields, message);
      write({ ...fields, trace_id: span.traceId, span_id: span.spanId }, message);
    };
  };
  return {
    debug: within('debug'),
    info: within('info'),
    warn: within('warn'),
    error: within('error'),
    fatal: within('fatal'),
  };
}

const TINTS: Readonly<Record<string, Tint>> = {
  debug: 'dim',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
};
/** Members that have a place of their own, or are of no use to someone at the process's terminal. */
const PLACED = new Set(['level', 'time', 'event', 'msg', 'next', 'err', 'pid', 'hostname', 'mirror']);
const INDENT = ' '.repeat(16);

/**
 * Formats a line of the JSON log for people: time of day (UTC), level, message, event and members; errors with their
 * causes, and what comes next, on lines of their own. Takes one scrubbed line; returns text with a line end. Pure.
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

/** Formats an error as the log describes it, and its causes, one per line. A stack follows the line of its error. */
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
