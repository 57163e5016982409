export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export interface LogEvent<L extends Level = Level, F extends string = string> {
  /** The levels of its lines, its own first. An additional `debug` is for repetitions of a line just logged. */
  readonly levels: readonly [L, ...L[]];
  /** What happened, in words: the line's `msg` where it has no own. */
  readonly says: string;
  readonly fields: readonly F[];
  /** What happens next by itself, or what to do: in lines of `warn` and worse the member `next`. */
  readonly next: string | null;
  /**
   * The time in which it comes once at its own level, and else at debug, where it is emitted by its name alone; 0:
   * always.
   */
  readonly onceInMs: number;
}

/**
 * Declares an event: its levels, its message, the members that its lines may carry, what comes next (required from
 * `warn` on), and how seldom it comes at its own level.
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

/** When a condition was met before: how often, since when (ISO 8601). */
export const REPEATED = ['times', 'since'] as const;
/** When a condition is over: how often it was met, how long it lasted. */
export const OVER = ['times', 'lastedSeconds'] as const;
/** Of a run of a task: how long it took, when the next one comes. */
export const RUN = ['durationMs', 'nextInSeconds'] as const;
/** Why something failed. */
export const FAILURE = ['because', 'httpStatus', 'code', 'problem', 'hint', 'err'] as const;
