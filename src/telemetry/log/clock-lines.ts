import type { ClockEvent } from '../../sync/clocks.ts';
import { type Log, throttled } from './logger.ts';
import type { LogThrottle } from './throttle.ts';

/** Log lines of clocks that were set, or are wrong. */
export function clockLines(log: Log, throttle: LogThrottle): (event: ClockEvent) => void {
  return (event) => {
    switch (event.event) {
      case 'clock.jumped':
        return log.warn({ event: 'clock.jumped', clock: event.clock, bySeconds: event.ms / 1000 });
      case 'clock.set-back': {
        const durationMs = Math.round(event.ms);
        return log.warn({ event: 'clock.set-back', bySeconds: event.seconds, durationMs });
      }
      case 'clock.compared': {
        if (event.wrong === null) {
          const ended = throttle.over('clock');
          if (ended?.say === true)
            log.info({ event: 'clock.agrees', times: ended.times, lastedSeconds: ended.lastedSeconds });
          return;
        }
        const { clock, aheadMs } = event.wrong;
        const { say, ...facts } = throttle.again('clock', clock);
        const aheadSeconds = Math.round(aheadMs / 1000);
        throttled(log, 'warn', say, { event: 'clock.differs', clock, aheadSeconds, ...facts });
      }
    }
  };
}
