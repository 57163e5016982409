import type { End, FollowEvent } from '../../follow/follower.ts';
import { sqlState } from '../../store/connection/sql-errors.ts';
import type { Place } from '../../store/history/followers.ts';
import { type Log, throttled } from '../../telemetry/log/logger.ts';
import type { LogThrottle } from '../../telemetry/log/throttle.ts';

const RECEIVER = 'receiver';

/** Creates log lines about deliveries. A receiver that is down is logged at once, and then ever more rarely. */
export function followLines(
  log: Log,
  throttle: LogThrottle,
  follower: string | null,
): (event: FollowEvent) => void {
  return (happened) => {
    switch (happened.event) {
      case 'delivered': {
        const over = throttle.over(RECEIVER);
        if (over !== null) {
          const { say, ...rest } = over;
          if (say) log.info({ event: 'follower.recovered', follower, ...rest });
        }
        const { to, changes, ms } = happened;
        log.debug({
          event: 'follower.delivered',
          follower,
          to: String(to),
          changes,
          durationMs: Math.round(ms),
        });
        break;
      }
      case 'failed': {
        const { to, failures, retryInMs, result } = happened;
        const { status, said } = result;
        const { say, ...again } = throttle.again(RECEIVER, String(status ?? said));
        throttled(log, 'warn', say, {
          event: 'follower.failing',
          follower,
          to: String(to),
          status,
          said,
          failures,
          retryInMs,
          ...again,
        });
        break;
      }
      case 'buried': {
        const { first, last, changes, attempts, result } = happened;
        const { status, said } = result;
        log.error({
          event: 'follower.dead-letter',
          follower,
          first: String(first),
          last: String(last),
          changes,
          attempts,
          status,
          said,
        });
        break;
      }
      case 'smaller': {
        const { changes, bytes, result } = happened;
        const { status, said } = result;
        log.warn({ event: 'follower.smaller', follower, changes, bytes, status, said });
        break;
      }
      case 'copied':
        log.info({ event: 'follower.copied', follower, position: String(happened.position) });
        break;
      // no default
    }
  };
}

const STORE = 'store';

/** Creates log lines about a follower's start and end, and about its Postgres. */
export function lifeLines(log: Log, throttle: LogThrottle, follower: string | null) {
  return {
    started({ position, afterSku }: Place, delivery: string): void {
      const copy = afterSku === null ? {} : { afterSku };
      log.info({ event: 'follower.started', follower, position: String(position), ...copy, delivery });
    },
    storeLost(error: unknown, retryInMs: number): void {
      const { say, ...again } = throttle.again(STORE, sqlState(error) ?? '');
      throttled(log, 'warn', say, {
        event: 'follower.store-lost',
        follower,
        err: error,
        retryInMs,
        ...again,
      });
    },
    storeBack(): void {
      const over = throttle.over(STORE);
      if (over === null || !over.say) return;
      const { times, lastedSeconds } = over;
      log.info({ event: 'follower.store-back', follower, times, lastedSeconds });
    },
    ended(end: End, place: Place | null): void {
      const position = place === null ? null : String(place.position);
      if (end === 'stopped') log.info({ event: 'follower.stopped', follower, position });
      if (end === 'unwanted') log.error({ event: 'follower.unwanted', follower, position });
      if (end === 'undelivered') log.error({ event: 'follower.undelivered', follower, position });
    },
  };
}
