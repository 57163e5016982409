import type { Config } from '../config/config.ts';
import type { NextRefresh } from '../store/answer/types.ts';

/** The part of the configuration that sync uses. The client has the credentials. */
export interface SyncSettings extends Pick<Config, 'bulk' | 'intervals' | 'catalog'> {
  readonly partner: Pick<Config['partner'], 'baseUrl' | 'filesOrigins' | 'downloadTimeoutMs' | 'proxy'>;
  /** Requests per minute at the mirror's full pace. */
  readonly callsPerMinute: number;
}

/**
 * Returns how long a snapshot-priced SKU may go without a refresh, in milliseconds: its sweep, or its metadata if
 * that is sooner.
 */
export function snapshotMs({ intervals: { sweepMs, metadataMs } }: Pick<Config, 'intervals'>): number {
  return sweepMs > 0 ? Math.min(sweepMs, metadataMs) : metadataMs;
}

/**
 * The wait before a listed SKU is asked again to which the price routes answered 0009; it doubles each time. The
 * routes may be wrong for a while, even about a SKU that never had a price.
 */
const LOST_MS = 3_600_000;

/** Returns, in milliseconds, how soon SKUs are refreshed again as configured, by what their last refresh found. */
export function nextRefresh({ intervals }: Pick<Config, 'intervals'>): NextRefresh {
  const { liveMs, sweepMs, metadataMs } = intervals;
  return {
    liveMs,
    snapshotMs: snapshotMs({ intervals }),
    snapshotReason: sweepMs > 0 && sweepMs <= metadataMs ? 'sweep' : 'metadata',
    notFoundMs: metadataMs,
    lostMs: Math.min(LOST_MS, metadataMs),
  };
}
