import { decide, initialPace, type PaceLimits, type PaceState, settled } from '../../src/pace/policy.ts';
import { type Neighbours, SharedAccount } from './neighbours.ts';
import { seeded } from './random.ts';

export interface PacingResult {
  readonly requestsPerMinute: number;
  /** Own requests that the partner refused. */
  readonly refused: number;
  /** Back-offs that began. */
  readonly episodes: number;
  /** Most own requests in any 60 s, as the partner saw them arrive. */
  readonly mostInWindow: number;
}

const WINDOW_MS = 60_000;
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: WINDOW_MS, backoffMs: 60_000 };

/**
 * A day of the production pacer beside the account's other traffic, seen at the partner: every request takes its own
 * time on the way. Two replicas share the log, as they do in Postgres. With 'on and off' the mirror itself has work
 * only part of the time.
 */
export function simulatePacing(neighbours: Neighbours, seed: number, hours = 24): PacingResult {
  const random = seeded(seed);
  const end = hours * 3_600_000;
  const account = new SharedAccount(neighbours, end, random);
  const onTheWay: { readonly at: number; readonly sentAt: number }[] = [];
  let pace: PaceState = initialPace(LIMITS, 0);
  let sends: number[] = [];
  let [now, sent, refused, episodes] = [0, 0, 0, 0];

  const deliver = (until: number) => {
    for (let own = onTheWay[0]; own !== undefined && own.at <= until; own = onTheWay[0]) {
      onTheWay.shift();
      const outcome = account.arrive(own.at) ? 'ok' : 'throttled-or-forbidden';
      refused += Number(outcome !== 'ok');
      const before = pace.refusals;
      pace = settled(LIMITS, pace, { sentAt: own.sentAt, outcome, sendsInWindow: sends.length }, own.at);
      episodes += Number(pace.refusals > before);
    }
  };

  while (now < end) {
    deliver(now);
    sends = sends.filter((at) => at > now - WINDOW_MS - 500);
    if (neighbours === 'on and off' && Math.floor(now / 180_000) % 2 === 1) {
      now += 1000;
      continue;
    }
    const decision = decide(LIMITS, pace, sends, now);
    if (!decision.go) {
      now = Math.max(now + 1, Math.min(Math.ceil(decision.at), now + 1000));
      continue;
    }
    pace = decision.state;
    sends.push(now);
    sent += 1;
    onTheWay.push({ at: now + account.wayMs(), sentAt: now });
    now += 1;
  }
  return { requestsPerMinute: sent / (hours * 60), refused, episodes, mostInWindow: account.mostOwn };
}
