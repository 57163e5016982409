/** The result of one check. `remedy` says what to do about it. */
export interface CheckResult {
  readonly check: string;
  readonly level: 'OK' | 'WARN' | 'FAIL';
  readonly text: string;
  readonly remedy?: string;
}

export const ok = (check: string, text: string): CheckResult => ({ check, level: 'OK', text });
export const warn = (check: string, text: string, remedy: string): CheckResult => ({
  check,
  level: 'WARN',
  text,
  remedy,
});
export const fail = (check: string, text: string, remedy: string): CheckResult => ({
  check,
  level: 'FAIL',
  text,
  remedy,
});
/** A check that cannot be made because of what another one found. */
export const skipped = (check: string, because: string): CheckResult =>
  warn(check, `skipped: ${because}`, 'fix that first, then run doctor again');

const TOLERATED_MS = 60_000;

/** Judges this host's clock against another one that is `aheadMs` ahead of it (behind if negative). */
export function judgeSkew(check: string, whose: string, aheadMs: number): CheckResult {
  const off = Math.abs(aheadMs);
  if (off < 1500) return ok(check, `agrees with ${whose}`);
  const text = `${(off / 1000).toFixed(0)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} ${whose}`;
  return off <= TOLERATED_MS
    ? ok(check, text)
    : warn(check, text, 'synchronise the clocks: ages are computed from the timestamps of both');
}
