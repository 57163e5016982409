import { array, assert, asyncProperty, boolean, constantFrom, integer, option, record } from 'fast-check';
import { expect, test } from 'vitest';
import { createCircuitBreaker } from '../../src/pace/circuit-breaker.ts';
import { pacerOver } from '../../src/pace/pacer.ts';
import type { SentPermit } from '../../src/pace/permit.ts';
import type { PaceLimits } from '../../src/pace/policy.ts';
import { runs } from '../support/soak.ts';
import { Fleet } from './fleet.ts';

/*
 * Daemons of one account in any trouble that passes (a wrong secret, a blocked address, a restart). The partner
 * counts requests, and may lower the account's limit for a while. Latencies and ledgers differ, and several
 * requests are under way at once.
 */

const MINUTE = 60_000;
const SHARE = 120;
/** All troubles are over from then on. */
const WELL_AT = 70 * MINUTE;
const END_AT = 115 * MINUTE;

interface Span {
  readonly from: number;
  readonly to: number;
}

interface Daemon {
  readonly ledgerMs: number;
  readonly latencyMs: number;
  readonly mostUnderWay: number;
  readonly wrong: Span | null;
  /** Whether it rereads its credential from a file. If not, somebody corrects the credential at the partner. */
  readonly hasFile: boolean;
  readonly blocked: Span | null;
  readonly away: Span | null;
}

interface Account {
  readonly daemons: readonly Daemon[];
  readonly lowered: (Span & { readonly limit: number }) | null;
  readonly countsRefused: boolean;
  readonly backoffMs: number;
  readonly seed: number;
}

const anySpan = option(
  record({ from: integer({ min: 1, max: 60 }), minutes: integer({ min: 1, max: 60 }) }).map(
    ({ from, minutes }): Span => ({ from: from * MINUTE, to: Math.min(WELL_AT, (from + minutes) * MINUTE) }),
  ),
  { nil: null },
);
const anyDaemon = record({
  ledgerMs: integer({ min: 1, max: 4 }),
  latencyMs: constantFrom(100, 2000, 8000),
  mostUnderWay: constantFrom(1, 4, 32),
  wrong: anySpan,
  hasFile: boolean(),
  blocked: anySpan,
  away: anySpan,
});
const anyAccount = record({
  daemons: array(anyDaemon, { minLength: 1, maxLength: 5 }),
  lowered: anySpan.chain((span) =>
    constantFrom(30, 60, 100).map((limit) => (span === null ? null : { ...span, limit })),
  ),
  countsRefused: boolean(),
  backoffMs: constantFrom(2000, 10_000, MINUTE, MINUTE),
  seed: integer({ min: 1, max: 2_147_483_646 }),
});

const isIn = (span: Span | null, at: number) => span !== null && at >= span.from && at < span.to;

/** How a request ended, and when it arrived. */
interface Met {
  readonly at: number;
  readonly what: 'ok' | 'too-many' | 'wrong' | 'blocked';
}

class Played {
  readonly fleet = new Fleet();
  readonly met: Met[] = [];
  /** When the ledger let each request go, and when a daemon backed off alone. */
  readonly sent: number[] = [];
  readonly alone: number[] = [];
  readonly #account: Account;
  readonly #limits: PaceLimits;
  #counted: number[] = [];
  #drawn: number;

  constructor(account: Account) {
    this.#account = account;
    this.#limits = { maxPerWindow: SHARE, windowMs: MINUTE, backoffMs: account.backoffMs };
    this.#drawn = account.seed;
  }

  readonly #random = (): number => {
    this.#drawn = (this.#drawn * 48_271) % 2_147_483_647;
    return this.#drawn / 2_147_483_647;
  };

  async play(): Promise<this> {
    for (const daemon of this.#account.daemons) {
      void this.#run(daemon, daemon.away === null ? END_AT : daemon.away.from);
      if (daemon.away !== null) void this.fleet.sleep(daemon.away.to).then(() => this.#run(daemon, END_AT));
    }
    await this.fleet.play(() => this.fleet.now >= END_AT);
    return this;
  }

  /** A process that sends whenever it may. */
  async #run(daemon: Daemon, until: number): Promise<void> {
    const { fleet } = this;
    const breaker = createCircuitBreaker(fleet.clock, this.#limits);
    let isWrong = isIn(daemon.wrong, fleet.now);
    const readAgain = () => {
      if (!daemon.hasFile || isIn(daemon.wrong, fleet.now) === isWrong) return;
      isWrong = !isWrong;
      breaker.cleared();
    };
    const events = {
      backedOff: ({ isAlone = false }) => void (isAlone && this.alone.push(fleet.now)),
      afterRefusal: readAgain,
    };
    const ledger = fleet.reachedIn(() => daemon.ledgerMs * (0.1 + this.#random()));
    const pacer = pacerOver(ledger, fleet.clock, this.#limits, events, breaker, this.#random);
    const underWay = new Set<Promise<unknown>>();
    const send = async (permit: SentPermit) => {
      await fleet.sleep(daemon.latencyMs * this.#random());
      const what = this.#meets(daemon, daemon.hasFile ? isWrong : isIn(daemon.wrong, fleet.now));
      this.met.push({ at: fleet.now, what });
      await fleet.sleep(daemon.latencyMs / 2);
      // A process that has ended settles nothing.
      if (fleet.now >= until) return;
      if (what !== 'ok') readAgain();
      await permit.settle(what === 'ok' ? 'ok' : 'throttled-or-forbidden');
    };
    while (fleet.now < until) {
      if (underWay.size >= daemon.mostUnderWay) await Promise.race(underWay);
      const acquired = await pacer.acquire('reprice', 15_000);
      if (acquired.kind === 'wait') await fleet.sleep(acquired.forMs);
      else {
        this.sent.push(fleet.now);
        const sending: Promise<unknown> = send(acquired.permit).finally(() => underWay.delete(sending));
        underWay.add(sending);
      }
    }
  }

  #meets(daemon: Daemon, isWrong: boolean): Met['what'] {
    const { lowered, countsRefused } = this.#account;
    const { now } = this.fleet;
    if (isIn(daemon.blocked, now)) return 'blocked';
    this.#counted = this.#counted.filter((at) => at > now - MINUTE);
    const limit = lowered !== null && isIn(lowered, now) ? lowered.limit : Infinity;
    const isTooMany = !isWrong && this.#counted.length >= limit;
    const what = isWrong ? 'wrong' : isTooMany ? 'too-many' : 'ok';
    if (what === 'ok' || countsRefused) this.#counted.push(now);
    return what;
  }
}

const mostInAMinute = (times: readonly number[]): number => {
  const sorted = times.toSorted((one, other) => one - other);
  let first = 0;
  return sorted.reduce((most, at, i) => {
    while ((sorted[first] ?? at) <= at - MINUTE) first += 1;
    return Math.max(most, i - first + 1);
  }, 0);
};

/** Requests a minute that its daemons can send if every answer takes twice the usual latency. */
const ableTo = ({ daemons }: Account): number =>
  daemons.reduce((sum, { latencyMs, mostUnderWay }) => sum + (mostUnderWay * MINUTE) / (2 * latencyMs), 0);

test('daemons in any trouble keep to the limit, learn a lower one, inform each other and recover fully', async () => {
  await assert(
    asyncProperty(anyAccount, async (account) => {
      const { met, sent, alone } = await new Played(account).play();
      expect(mostInAMinute(sent)).toBeLessThanOrEqual(SHARE);
      const letThrough = met.filter(({ what }) => what === 'ok').map(({ at }) => at);
      const tooMany = met.filter(({ what }) => what === 'too-many').length;
      expect(tooMany).toBeLessThanOrEqual(150);
      // A daemon that backs off alone leaves others to be let through. Several daemons with a wrong secret may
      // mistake each other for those if the back-off is short.
      const inTrouble = (at: number) =>
        account.daemons.filter(({ wrong, blocked }) => isIn(wrong, at) || isIn(blocked, at)).length;
      for (const at of alone.filter((one) => inTrouble(one) === 1))
        expect(letThrough.some((one) => one > at - 3 * MINUTE && one <= at + MINUTE)).toBe(true);
      const last = letThrough.filter((at) => at >= END_AT - 10 * MINUTE);
      expect(last.length).toBeGreaterThanOrEqual(10 * 0.9 * Math.min(SHARE, ableTo(account)));
    }),
    { numRuns: runs(2, 30) },
  );
});
