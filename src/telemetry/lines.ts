import type { Clock } from '../lib/clock.ts';
import type { PacerEvents } from '../sync/pacing.ts';
import type { Log } from './logger.ts';

const ERROR_LINE_EVERY_MS = 10_000;

/** Log lines for the turns of the pace. */
export function paceLines(log: Log): PacerEvents {
  return {
    silenced: ({ explained, ...event }) =>
      log.warn(
        { event: 'pace.silenced', ...event, silentUntil: new Date(event.silentUntil).toISOString() },
        `${explained ?? 'throttled or refused'}; nobody sends until then, then one probe`,
      ),
    resumed: (event) =>
      log.info({ event: 'pace.resumed', ...event }, 'the probe was answered; requests go on, slower'),
  };
}

/** While a store is down, errors come by the dozen from every connection: one line in ten seconds, with their number. */
export function errorLines(log: Log, clock: Clock): (error: Error) => void {
  let silentUntil = 0;
  let suppressed = 0;
  return (error) => {
    const now = clock.monotonic();
    if (now < silentUntil) {
      suppressed += 1;
      return;
    }
    log.warn(
      { event: 'queues.error', err: error, suppressed },
      'the queues or their store have trouble; they go on trying',
    );
    silentUntil = now + ERROR_LINE_EVERY_MS;
    suppressed = 0;
  };
}
