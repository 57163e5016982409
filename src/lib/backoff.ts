/** `baseMs` doubled for each failure after the first, at most `capMs`. `failures` counts from 1; below that, `baseMs`. */
export function doubling(baseMs: number, failures: number, capMs: number): number {
  return Math.min(capMs, baseMs * 2 ** Math.min(40, Math.max(0, failures - 1)));
}
