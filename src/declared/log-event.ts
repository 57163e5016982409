export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export interface LogEvent<L extends Level = Level, F extends string = string> {
  /** The levels of its lines, its own first. An additional `debug` is for repetitions of a line just logged. */
  readonly levels: readonly [L, ...L[]];
  /** What happened, in words: the line's `msg` unless it has its own. */
  readonly says: string;
  readonly fields: readonly F[];
  /** What happens next by itself, or what to do: the member `next` in lines of `warn` and worse. */
  readonly next: string | null;
  /** Within this time, a sync event is logged once at its own level, otherwise at debug; 0: always at its own level. */
  readonly onceInMs: number;
}

/**
 * Declares an event: its levels, its message, the members that its lines may have, what comes next (required from
 * `warn` on), and how rarely it is logged at its own level.
 */
export function line<const L extends Level, const F extends string = never>(
  levels: L | readonly [L, ...L[]],
  says: string,
  fields: readonly F[] = [],
  next: string | null = null,
  onceInMs = 0,
): LogEvent<L, F> {
  return { levels: typeof levels === 'string' ? [levels] : levels, says, fields, next, onceInMs };
}

/** Members for a recurring condition: how often it has occurred, and since when (ISO 8601). */
export const REPEATED = ['times', 'since'] as const;
/** Members for the end of a condition: how often it occurred, and how long it lasted. */
export const OVER = ['times', 'lastedSeconds'] as const;
/** Members for a run of a task: how long it took, and when the next one comes. */
export const RUN = ['durationMs', 'nextInSeconds'] as const;
/** Members that say why something failed. */
export const FAILURE = ['because', 'httpStatus', 'code', 'problem', 'hint', 'err'] as const;
