import type { NextLooks } from '../store/answers.ts';
import type { SyncSettings } from './context.ts';

/** How long a snapshot-priced SKU may go without a look, in milliseconds: its sweep, or its metadata where that is sooner. */
export function snapshotMs(settings: SyncSettings): number {
  return settings.sweepMs > 0 ? Math.min(settings.sweepMs, settings.metadataMs) : settings.metadataMs;
}

/** When the next look is due after an answer. */
export function nextLooks(settings: SyncSettings): NextLooks {
  const sweeps = settings.sweepMs > 0 && settings.sweepMs <= settings.metadataMs;
  return {
    liveMs: settings.liveMs,
    snapshotMs: snapshotMs(settings),
    snapshotReason: sweeps ? 'sweep' : 'metadata',
    notFoundMs: settings.metadataMs,
  };
}
