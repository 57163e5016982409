/** What one check found. `todo` says what to do about it. */
export interface Finding {
  readonly check: string;
  readonly level: 'OK' | 'WARN' | 'FAIL';
  readonly text: string;
  readonly todo?: string;
}

export const ok = (check: string, text: string): Finding => ({ check, level: 'OK', text });
export const warn = (check: string, text: string, todo: string): Finding => ({
  check,
  level: 'WARN',
  text,
  todo,
});
export const fail = (check: string, text: string, todo: string): Finding => ({
  check,
  level: 'FAIL',
  text,
  todo,
});
/** A check that cannot be made because of what another one has found. */
export const skipped = (check: string, because: string): Finding =>
  warn(check, `skipped: ${because}`, 'fix that first, then run doctor again');
