import { decide, initialPace, type PaceLimits, type PaceState, settled } from '../../src/partner/pacer.ts';
import { exponential, seeded } from './random.ts';

export type Neighbours = 'quiet' | 'on and off' | 'bursty';

export interface PacingResult {
  readonly requestsPerMinute: number;
  /** Own requests that the partner refused. */
  readonly refused: number;
  /** Silences that began. */
  readonly episodes: number;
  /** Most own requests in any 60 s, as the partner saw them arrive. */
  readonly mostInWindow: number;
}

const ACCOUNT_LIMIT = 200;
const WINDOW_MS = 60_000;
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: WINDOW_MS, backoffMs: 60_000 };

interface Arrival {
  readonly at: number;
  readonly own: boolean;
  readonly sentAt: number;
}

/**
 * A day of the production pacer beside the account's other traffic, seen at the partner: every request takes its own time
 * on the way, refused ones count too (specification 8). Two replicas share the log, as they do in Postgres. With 'on and
 * off' the mirror itself has work only part of the time.
 */
export function simulatePacing(neighbours: Neighbours, seed: number, hours = 24): PacingResult {
  const random = seeded(seed);
  const end = hours * 3_600_000;
  const others = otherTraffic(neighbours, end, random);
  const onTheWay: Arrival[] = [];
  const server = new RollingLimit();
  let pace: PaceState = initialPace(LIMITS, 0);
  let sends: number[] = [];
  let [next, now, sent, refused, episodes] = [0, 0, 0, 0, 0];

  const deliver = (until: number) => {
    onTheWay.sort((a, b) => a.at - b.at);
    while ((onTheWay[0]?.at ?? Infinity) <= until || (others[next] ?? Infinity) <= until) {
      const own = onTheWay[0];
      const foreign = others[next] ?? Infinity;
      if (own === undefined || foreign < own.at) {
        server.arrive(foreign, false);
        next += 1;
        continue;
      }
      onTheWay.shift();
      const outcome = server.arrive(own.at, true) ? 'ok' : 'throttled-or-forbidden';
      refused += Number(outcome !== 'ok');
      const before = pace.episodes;
      pace = settled(LIMITS, pace, { sentAt: own.sentAt, outcome, sendsInWindow: sends.length }, own.at);
      episodes += Number(pace.episodes > before);
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
    onTheWay.push({ at: now + 50 + 350 * random(), own: true, sentAt: now });
    now += 1;
  }
  return { requestsPerMinute: sent / (hours * 60), refused, episodes, mostInWindow: server.mostOwn };
}

/** Times at which the seller's other services send. Quiet ones stay within the 80 a minute that are theirs. */
function otherTraffic(kind: Neighbours, end: number, random: () => number): number[] {
  const times: number[] = [];
  for (let at = 0; at < end;) {
    // Two minutes at 130 a minute, some thirty times a day.
    const burst = kind === 'bursty' && Math.floor(at / 120_000) % 24 === 7;
    at += burst
      ? exponential(random, 130 / WINDOW_MS)
      : Math.max(WINDOW_MS / 80, exponential(random, 60 / WINDOW_MS));
    times.push(at);
  }
  return times;
}

/** The partner's limit: 200 requests in any rolling 60 seconds, refused ones included. */
class RollingLimit {
  mostOwn = 0;
  #all: number[] = [];
  #own: number[] = [];

  arrive(at: number, own: boolean): boolean {
    const recent = (time: number) => time > at - WINDOW_MS;
    this.#all = this.#all.filter(recent);
    this.#all.push(at);
    if (own) {
      this.#own = this.#own.filter(recent);
      this.#own.push(at);
      this.mostOwn = Math.max(this.mostOwn, this.#own.length);
    }
    return this.#all.length <= ACCOUNT_LIMIT;
  }
}
