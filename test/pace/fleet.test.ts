import { array, assert, asyncProperty, boolean, integer, record } from 'fast-check';
import { expect, test } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import type { PaceLedger, PaceUpdate, PaceView } from '../../src/pace/ledger.ts';
import { pacerOver } from '../../src/pace/pacer.ts';
import type { PaceLimits, PaceState } from '../../src/pace/policy.ts';
import type { RequestOutcome } from '../../src/partner/errors.ts';
import { runs } from '../support/soak.ts';

const MINUTE = 60_000;
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };

/** A ledger in memory, on a clock of its own, in which whoever waits wakes in order of time. */
class Fleet {
  now = 0;
  state: PaceState | null = null;
  readonly sends: number[] = [];
  #waiting: { readonly at: number; readonly wake: () => void }[] = [];

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => this.#waiting.push({ at: this.now + ms, wake }));
  }

  async play(until: () => boolean): Promise<void> {
    while (!until()) {
      await new Promise(setImmediate);
      const next = this.#waiting.toSorted((one, other) => one.at - other.at)[0];
      if (next === undefined) throw new Error('nobody waits');
      this.#waiting = this.#waiting.filter((each) => each !== next);
      this.now = Math.max(this.now, next.at);
      next.wake();
    }
  }
}

/** A process's connection to the ledger: so many milliseconds one way. */
function wayTo(fleet: Fleet, ms: number): PaceLedger {
  return {
    withPace: async <T>(spanMs: number, update: (view: PaceView) => PaceUpdate<T>) => {
      await fleet.sleep(ms);
      const now = Math.floor(fleet.now);
      const sends = fleet.sends.filter((at) => at > now - spanMs);
      const { state, send, result } = update({ state: fleet.state, sends, others: 0, pause: null, now });
      if (state !== undefined) fleet.state = state;
      if (send !== undefined) fleet.sends.push(now);
      await fleet.sleep(ms);
      return { result, sendId: null };
    },
    unsend: async () => Promise.resolve(),
  };
}

interface Member {
  readonly ledgerMs: number;
  /** How its requests end. */
  readonly outcome: RequestOutcome;
}

/** How many half-open requests it takes until one is let through; each member sends whenever it may. */
async function halfOpenUntilLetThrough(members: readonly Member[], random: () => number): Promise<number> {
  const fleet = new Fleet();
  let tried = 0;
  let letThrough = false;
  const clock: Clock = {
    now: () => fleet.now,
    monotonic: () => fleet.now,
    sleep: (ms) => fleet.sleep(ms),
  };
  async function work({ ledgerMs, outcome }: Member): Promise<void> {
    const pacer = pacerOver(wayTo(fleet, ledgerMs), clock, LIMITS, {}, undefined, random);
    for (;;) {
      const acquired = await pacer.acquire('reprice', 15_000);
      if (acquired.kind === 'wait') {
        await fleet.sleep(acquired.forMs);
        continue;
      }
      await fleet.sleep(100);
      if (acquired.permit.halfOpen) {
        tried += 1;
        letThrough ||= outcome === 'ok';
      }
      await acquired.permit.settle(outcome);
    }
  }
  for (const member of members) void work(member);
  await fleet.play(() => letThrough || tried > 100);
  return tried;
}

test('a daemon that is nearer to Postgres, and is refused or reaches no partner, keeps no other one from trying', async () => {
  const anyMember = record({ ledgerMs: integer({ min: 1, max: 20 }), refused: boolean() });
  await assert(
    asyncProperty(
      array(anyMember, { minLength: 1, maxLength: 4 }),
      integer({ min: 1, max: 20 }),
      integer({ min: 1, max: 2_147_483_646 }),
      async (wrong, ledgerMs, seed) => {
        const members = wrong.map(({ ledgerMs: ms, refused }, n): Member => {
          // The first one begins the back-off.
          return {
            ledgerMs: n === 0 ? 0 : ms,
            outcome: n === 0 || refused ? 'throttled-or-forbidden' : 'network',
          };
        });
        let drawn = seed;
        const random = () => {
          drawn = (drawn * 48_271) % 2_147_483_647;
          return drawn / 2_147_483_647;
        };
        const tried = await halfOpenUntilLetThrough(
          [...members, { ledgerMs: 20 + ledgerMs, outcome: 'ok' }],
          random,
        );
        expect(tried).toBeLessThanOrEqual(4 * members.length + 4);
      },
    ),
    { numRuns: runs(30) },
  );
});
