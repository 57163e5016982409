export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['m', MINUTE_MS],
  ['s', SECOND_MS],
  ['ms', 1],
] as const;

const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/**
 * Reads a duration as it is written in the environment and in options: `500ms`, `30s`, `5m`, `1.5h`, `7d`, or a bare
 * `0`. Returns whole milliseconds, or null for anything else (no unit, a sign, fractions of a millisecond, beyond
 * exact integers).
 */
export function parseDuration(text: string): number | null {
  if (text === '0') return 0;
  const [, amount, unit] = PATTERN.exec(text) ?? [];
  const factor = UNITS.find(([name]) => name === unit)?.[1];
  if (amount === undefined || factor === undefined) return null;
  // Rounded before it is checked: 1.1 * 60_000 is 66000.00000000001.
  const exact = Number(amount) * factor;
  const ms = Math.round(exact);
  return Number.isSafeInteger(ms) && Math.abs(exact - ms) < 1e-6 ? ms : null;
}

/**
 * Formats milliseconds in the largest unit that divides them: 300000 → `5m`, 90000 → `90s`, 0 → `0`. Rounds to whole
 * milliseconds.
 */
export function formatDuration(ms: number): string {
  const whole = Math.round(ms);
  if (whole === 0) return '0';
  const [unit, factor] = UNITS.find(([, size]) => whole % size === 0) ?? ['ms', 1];
  return `${whole / factor}${unit}`;
}

/** Formats seconds as a short duration in one unit. */
export function formatAge(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole}s`;
  if (whole < 7200) return `${Math.round(whole / 60)}m`;
  if (whole < 172_800) return `${(whole / 3600).toFixed(1)}h`;
  return formatDuration(Math.round(whole / 86_400) * 86_400_000);
}

/** Returns `baseMs` doubled for each failure after the first, at most `capMs`. `failures` below 1 count as 1. */
export function doubling(baseMs: number, failures: number, capMs: number): number {
  return Math.min(capMs, baseMs * 2 ** Math.min(40, Math.max(0, failures - 1)));
}
