import type { MirrorConfig } from './config.ts';
import type { PaceLimits } from './partner/pacer.ts';

/** The pace that a configuration allows the mirror (specification 8: the account's limit, of which it takes its share). */
export function paceLimits({ rate }: Pick<MirrorConfig, 'rate'>): PaceLimits {
  return {
    maxPerWindow: Math.max(1, Math.floor(rate.limit * rate.share)),
    windowMs: rate.windowMs,
    backoffMs: rate.backoffMs,
    account: { limit: rate.limit, floor: rateFloor({ rate }) },
  };
}

/** Requests a window that the mirror keeps while the account's other users ask; never more than its share. */
export function rateFloor({ rate }: Pick<MirrorConfig, 'rate'>): number {
  return Math.max(1, Math.floor(rate.limit * Math.min(rate.floor, rate.share)));
}
