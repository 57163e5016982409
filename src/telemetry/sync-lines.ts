import type { Clock } from '../lib/clock.ts';
import type { SyncEvent } from '../sync/context.ts';
import type { BulkLines } from './bulk-lines.ts';
import { type Log, sparingly } from './logger.ts';
import { createRarely, type Troubles } from './troubles.ts';

const DOWNLOAD_PROGRESS_MS = 30_000;
const LEARNED_EVERY_MS = 3_600_000;

/** Lines on what happens inside runs. */
export function createSyncLines(
  log: Log,
  troubles: Troubles,
  clock: Clock,
  bulk: BulkLines,
): (event: SyncEvent) => void {
  const downloads = createRarely(clock, DOWNLOAD_PROGRESS_MS);
  const budgets = createRarely(clock, LEARNED_EVERY_MS);
  const ceilings = createRarely(clock, LEARNED_EVERY_MS);

  return (event) => {
    switch (event.event) {
      case 'bulk.applied':
        return bulk.applied(event);
      case 'bulk.failed':
        return bulk.failed(event);
      case 'size-type.changed':
        return bulk.sizeTypes(event.skus);
      case 'manifest.downloaded': {
        const { event: name, outcome, status, ms } = event;
        return log.debug({ event: name, outcome, durationMs: Math.round(ms), httpStatus: status });
      }
      case 'delta.chain-broken': {
        const { hint: _, ...facts } = event;
        const { say, ...repeated } = troubles.again('chain', event.because);
        return sparingly(log, 'warn', say, { ...facts, ...repeated });
      }
      case 'manifest.progress':
        return sparingly(log, 'info', downloads(), event);
      case 'live-budget.learned':
        return sparingly(log, 'info', budgets(), event);
      case 'live-ceiling.learned':
        return sparingly(log, 'info', ceilings(), event);
      case 'manifest.rejected-lines':
        return log.warn(event);
      case 'incident.began':
        return log.warn({ ...event, event: 'incident.began' });
      case 'incident.ended':
        return log.info({ ...event, event: 'incident.ended' });
      case 'delta.applied':
        troubles.over('chain');
        return log.info(event);
    }
  };
}
