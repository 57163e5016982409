import { type DestinationStream, destination as openDestination, pino, stdTimeFunctions } from 'pino';
import type { Config } from '../config.ts';
import { describeError } from './describe-error.ts';
import { createScrubber } from './scrub.ts';

/** What a log line carries beside its message. `event` is its stable name (`delta.applied`), for programs to look for. */
interface LogFields {
  readonly event: string;
  /** An error, by custom under `err`: any member that is an Error is described with its kind, code and causes. */
  readonly [member: string]: unknown;
}

type Write = (fields: LogFields, message?: string) => void;

export interface Log {
  readonly trace: Write;
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
  readonly fatal: Write;
  /** A log whose every line carries these members as well. */
  child(bindings: Readonly<Record<string, unknown>>): Log;
}

export interface LoggerOptions {
  readonly level: Config['log']['level'];
  /** What must not appear in any line, at the time of the call: plain values; their encodings are seen to here. */
  readonly secrets: () => readonly string[];
  /** Where lines go; default: stdout, written synchronously so that the last line before a crash is there. */
  readonly destination?: DestinationStream;
}

/**
 * A log of JSON lines: `level` (word), `time` (ISO 8601, UTC), `pid`, `hostname`, `event`, `msg` and the call's own members.
 * Each line is scrubbed after it has been serialised (secrets in every usual encoding, Authorization values, query strings
 * of URLs), because what leaks is in messages, causes and nested members that redaction by path does not reach.
 */
export function createLogger(options: LoggerOptions): Log {
  const scrubber = createScrubber(options.secrets);
  const withStacks = options.level === 'debug' || options.level === 'trace';
  const described = (fields: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        value instanceof Error ? describeError(value, withStacks) : value,
      ]),
    );
  return pino(
    {
      level: options.level,
      timestamp: stdTimeFunctions.isoTime,
      // pino's own serialiser for `err` copies every member of the error.
      serializers: { err: (value: unknown) => value },
      formatters: { level: (label) => ({ level: label }), log: described, bindings: described },
      hooks: { streamWrite: (line) => scrubber.line(line) },
    },
    options.destination ?? openDestination({ fd: 1, sync: true }),
  );
}
