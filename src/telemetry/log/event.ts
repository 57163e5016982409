export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export interface LogEvent<L extends Level = Level, F extends string = string> {
  /** The levels it comes at. Where `debug` stands beside another: repetitions of what has just been said. */
  readonly levels: readonly L[];
  /** What happened, in words: the line's `msg` where it has no own. */
  readonly says: string;
  readonly fields: readonly F[];
  /** What happens next by itself, or what to do: in lines of `warn` and worse the member `next`. */
  readonly next: string | null;
}

/** Declares an event. */
export function line<const L extends Level, const F extends string>(
  levels: L | readonly L[],
  says: string,
  fields: readonly F[] = [],
  next: string | null = null,
): LogEvent<L, F> {
  return { levels: typeof levels === 'string' ? [levels] : levels, says, fields, next };
}

/** When a condition was met before: how often, since when (ISO 8601). */
export const REPEATED = ['times', 'since'] as const;
/** When a condition is over: how often it was met, how long it lasted. */
export const OVER = ['times', 'lastedSeconds'] as const;
