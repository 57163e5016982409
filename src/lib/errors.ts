/**
 * An error that no restart resolves, only another configuration or an administrator. The program ends with exit code
 * 78.
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
 * Returns the code of a system or library error (`ENOENT`, `ECONNRESET`, …) as text, or null if it has none. Does not
 * search causes.
 */
export const errorCode = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? String(error.code) : null;
