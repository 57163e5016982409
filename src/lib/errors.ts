/**
 * What a restart does not change, and only another configuration, or an administrator, does: the program ends with
 * exit code 78.
 */
export abstract class Misconfigured extends Error {
  abstract readonly kind: string;
  readonly hint: string;

  constructor(message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.hint = hint;
  }
}

/**
 * The code of a system's or library's error (`ENOENT`, `ECONNRESET`, …) as text; null where it has none. Causes are not
 * searched.
 */
export const errorCode = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? String(error.code) : null;
