/** An error as a log line carries it. `stack` only where it says more than the kind does. */
export interface DescribedError {
  readonly type: string;
  readonly message: string;
  readonly kind?: string;
  readonly code?: string | number;
  readonly hint?: string;
  readonly stack?: string;
  /** What was thrown, where it was neither an Error nor text. */
  readonly value?: unknown;
  readonly cause?: DescribedError;
  readonly errors?: readonly DescribedError[];
}

const DEEPEST_CAUSE = 8;
const MOST_ERRORS = 5;

/**
 * Describes anything that was thrown: type, message, and where there are any kind, code, hint, cause chain and the errors
 * of an AggregateError. The stack is left out for errors with a kind, which are expected, unless `withStacks`. Other
 * members (a query's parameters, a request's options) are not taken over. Never throws; a circular chain is cut.
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
  const errors = deeper && thrown instanceof AggregateError ? thrown.errors.slice(0, MOST_ERRORS) : [];
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
