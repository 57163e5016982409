import { type Finding, ok, warn } from './finding.ts';

const TOLERATED_MS = 60_000;

/** This host's clock against another one that is `aheadMs` ahead of it (behind, where negative). */
export function judgeSkew(check: string, whose: string, aheadMs: number): Finding {
  const off = Math.abs(aheadMs);
  if (off < 1500) return ok(check, `agrees with ${whose}`);
  const text = `${(off / 1000).toFixed(0)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} ${whose}`;
  return off <= TOLERATED_MS
    ? ok(check, text)
    : warn(check, text, 'synchronise the clocks: ages are computed from the timestamps of both');
}
