export type Environment = Readonly<Record<string, string | undefined>>;
export type ReadFile = (path: string) => string;

export interface ConfigProblem {
  readonly variable: string;
  readonly expected: string;
  /** The offending value; absent where it is, or could be, a secret. */
  readonly got?: string;
  /** What is wrong with a value that is not shown. */
  readonly but?: string;
}

/** An empty variable is an unset one. */
export const given = (env: Environment, name: string): string | undefined => env[name] || undefined;
