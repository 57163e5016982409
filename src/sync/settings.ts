import type { Config } from '../config/config.ts';
import type { NextRefresh } from '../store/answer/types.ts';

/** What sync uses of the configuration. Credentials are the client's. */
export interface SyncSettings extends Pick<Config, 'bulk' | 'intervals' | 'catalog'> {
  readonly partner: Pick<Config['partner'], 'baseUrl' | 'filesOrigins' | 'downloadTimeoutMs' | 'proxy'>;
  /** Requests a minute at the mirror's full pace. */
  readonly callsPerMinute: number;
}

/**
 * How long a snapshot-priced SKU may go without a refresh, in milliseconds: its sweep, or its metadata where that is
 * sooner.
 */
export function snapshotMs({ intervals: { sweepMs, metadataMs } }: Pick<Config, 'intervals'>): number {
  return sweepMs > 0 ? Math.min(sweepMs, metadataMs) : metadataMs;
}

/**
 * A listed SKU of which the price routes answer 0009 is asked again after this, and then after twice as long each time:
 * they may be wrong for a while, also of one that never had a price.
 */
const LOST_MS = 3_600_000;

/** After how long SKUs are refreshed again, by what their last refresh found, as configured. Milliseconds. */
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
