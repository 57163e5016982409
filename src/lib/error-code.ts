/**
 * The code of a system's or library's error (`ENOENT`, `ECONNRESET`, …) as text; null where it has none. Causes are not
 * searched.
 */
export const errorCode = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? String(error.code) : null;
