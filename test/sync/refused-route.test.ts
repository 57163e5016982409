import { describe, expect, test } from 'vitest';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import type { Pacer, SentPermit } from '../../src/pace/permit.ts';
import {
  decide,
  initialPace,
  type PaceState,
  paceLimits,
  refuses,
  sendsPerMinute,
  settled,
} from '../../src/pace/policy.ts';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import type { TaskFailures } from '../../src/store/ledger/tasks.ts';
import { ask } from '../../src/sync/ask.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { postponedBy, retryAfter } from '../../src/sync/outcome.ts';
import { settingsWith } from '../support/settings.ts';
import { some } from '../support/soak.ts';

const limits = paceLimits(settingsWith());
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PACE = sendsPerMinute(limits);

type Lane = 'delta' | 'manifest';

/**
 * One account on a clock of its own: bulk calls whenever they may go, and tasks of other routes on their
 * schedules.
 */
class Account {
  now = 0;
  state: PaceState = initialPace(limits, 0);
  /** When bulk calls were let through. */
  readonly bulkCalls: number[] = [];
  readonly tries: number[] = [];
  #sends: number[] = [];
  readonly #refuses: (route: string, now: number) => PartnerErrorKind | null;
  readonly #ctx: SyncContext;

  constructor(refuses: (route: string, now: number) => PartnerErrorKind | null) {
    this.#refuses = refuses;
    const pacer: Pacer = { acquire: () => this.#acquire() };
    // An answer ends pauses of bulk calls, of which there are none here.
    const sql = () => Promise.resolve([]);
    this.#ctx = { sql, pacer, tracer: NO_TRACER } as unknown as SyncContext;
  }

  async #acquire(): ReturnType<Pacer['acquire']> {
    const { now } = this;
    const left = this.#sends.findIndex((at) => at > now - limits.windowMs - 1000);
    if (left !== 0) this.#sends = left === -1 ? [] : this.#sends.slice(left);
    const decision = decide(limits, this.state, this.#sends, now);
    if (!decision.go)
      return { kind: 'wait', forMs: Math.max(1, decision.at - now), because: decision.because };
    this.state = decision.state;
    this.#sends.push(now);
    return { kind: 'granted', permit: this.#permit(now), waited: false };
  }

  #permit(sentAt: number): SentPermit {
    let began = false;
    return {
      halfOpen: this.state.halfOpenSentAt === sentAt,
      refusals: this.state.refusals,
      beganBackoff: () => began,
      lapsed: () => false,
      cancel: async () => {},
      settle: async (outcome) => {
        const before = this.state;
        const request = { sentAt, outcome, sendsInWindow: this.#sends.length };
        this.state = settled(limits, before, request, this.now);
        began = before.backoffUntil === null && this.state.backoffUntil !== null;
      },
    };
  }

  async #send(route: string, permit: SentPermit): Promise<null> {
    const kind = this.#refuses(route, this.now);
    await permit.settle(kind ?? 'ok');
    if (kind !== null) throw new PartnerError(kind, 'delta');
    return null;
  }

  /** Runs a task. Returns when it runs again, and how often it has failed by then. */
  async #run(
    route: Lane,
    before: TaskFailures,
    scheduleMs: number,
  ): Promise<[inMs: number, failed: TaskFailures]> {
    const asked = await ask(this.#ctx, route, (permit) => this.#send(route, permit), before.failures);
    if (asked.kind === 'wait') return [postponedBy(asked, before).nextInMs, before];
    this.tries.push(this.now);
    if (asked.kind === 'answer') return [scheduleMs, { failures: 0, refusals: 0 }];
    const refusals = before.refusals + (refuses(asked.error.kind) ? 1 : 0);
    return [retryAfter(asked, before, scheduleMs), { failures: before.failures + 1, refusals }];
  }

  /** Advances time to `until`. If both may go, the task of the other route goes first. */
  async play(until: number, schedules: Readonly<Partial<Record<Lane, number>>>): Promise<void> {
    const tasks = Object.entries(schedules).map(([route, scheduleMs]) => ({
      route: route as Lane,
      scheduleMs,
      at: 0,
      failed: { failures: 0, refusals: 0 },
    }));
    let bulkAt = 0;
    for (;;) {
      this.now = Math.max(this.now, Math.min(bulkAt, ...tasks.map(({ at }) => at)));
      if (this.now >= until) return;
      for (const task of tasks.filter(({ at }) => at <= this.now)) {
        const [inMs, failed] = await this.#run(task.route, task.failed, task.scheduleMs);
        Object.assign(task, { at: this.now + inMs, failed });
      }
      if (bulkAt > this.now) continue;
      const acquired = await this.#acquire();
      if (acquired.kind === 'wait') bulkAt = this.now + acquired.forMs;
      else {
        const answer = await this.#send('bulk', acquired.permit).catch(() => undefined);
        if (answer === null) this.bulkCalls.push(this.now);
      }
    }
  }

  /** Returns the bulk calls a minute that were let through in this time. */
  rate(from: number, to: number): number {
    return this.bulkCalls.filter((at) => at >= from && at < to).length / ((to - from) / MINUTE);
  }
}

/** Each try makes all requests back off and resume at half their pace: every twenty minutes, for each such route. */
const PART = { one: 0.65, two: 0.4 };
const KINDS = [
  'unauthorised',
  'account-not-configured',
  'throttled-or-forbidden',
  'authorizer-fault',
] as const;

describe.each(some(KINDS, 2))('a route that is refused with %s while others are let through', (kind) => {
  test('leaves bulk calls most of their pace from its fourth try on', async () => {
    const account = new Account((route) => (route === 'delta' ? kind : null));
    await account.play(6 * HOUR, { delta: 5 * MINUTE });
    const [, , , fourth = Infinity] = account.tries;
    expect(fourth).toBeLessThan(10 * MINUTE);
    expect(account.rate(fourth, 6 * HOUR)).toBeGreaterThan(PART.one * PACE);
    // The route is still tried.
    expect(account.tries.filter((at) => at > 5 * HOUR).length).toBeGreaterThanOrEqual(2);
  });

  test('leaves them most of it, too, if two routes are refused', async () => {
    const account = new Account((route) => (route === 'bulk' ? null : kind));
    await account.play(6 * HOUR, { delta: 5 * MINUTE, manifest: HOUR });
    expect(account.rate(HOUR, 6 * HOUR)).toBeGreaterThan(PART.two * PACE);
  });

  test('returns to its schedule once it is let through', async () => {
    const account = new Account((route, now) => (route === 'delta' && now < 2 * HOUR ? kind : null));
    await account.play(4 * HOUR, { delta: 5 * MINUTE });
    const first = account.tries.find((at) => at >= 2 * HOUR) ?? Infinity;
    expect(first - 2 * HOUR).toBeLessThanOrEqual(20 * MINUTE);
    expect(account.tries.filter((at) => at >= first && at < first + HOUR)).toHaveLength(12);
  });
});

test('a route that is refused once after an hour of outage is retried after the back-off', async () => {
  const refused: number[] = [];
  const account = new Account((route, now) => {
    if (route !== 'delta') return null;
    if (now < HOUR) return 'service-fault';
    if (refused.length > 0) return null;
    refused.push(now);
    return 'throttled-or-forbidden';
  });
  await account.play(2 * HOUR, { delta: 5 * MINUTE });
  const [first = 0, next = Infinity] = account.tries.filter((at) => at >= HOUR);
  expect(next - first).toBeLessThan(2 * MINUTE);
});

test.each(KINDS)(
  'if all requests are refused with %s they back off as usual, however often a route was refused',
  async (kind) => {
    const account = new Account((route, now) => (route === 'delta' || now > HOUR ? kind : null));
    await account.play(3 * HOUR, { delta: 5 * MINUTE });
    expect(account.state).toMatchObject({ refusal: kind });
    expect(account.rate(HOUR + 1, 3 * HOUR)).toBe(0);
    // The back-off grows to ten minutes.
    expect(account.state.refusals).toBeLessThan(20);
  },
);
