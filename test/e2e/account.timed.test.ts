import { describe, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { guardMs, type PaceLimits, sendsPerWindow } from '../../src/pace/policy.ts';
import type { World } from '../../src/sandbox/index.ts';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { metric } from '../contract/harness.ts';
import { countIn, mostWithin } from '../support/arrivals.ts';
import { eventually, pause } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { createStack, type Stack } from '../support/stack.ts';

/*
 * The account as the partner sees it: two replicas on one database and the real clock, against a sandbox that
 * counts every request towards the account's limit and refuses those over it. Only the arrival times there decide,
 * not what the mirror reports about itself. A window is three seconds instead of sixty, and so is the back-off.
 */

const WINDOW_MS = 3000;
const SHARE = 0.6;
const FLOOR = 0.2;
/** The pacer's smallest ceiling after a refusal, and its growth per window at these limits. */
const RESUME_FLOOR = 20;
const RAISE = 5;
/**
 * Requests sent before a refusal was recorded may arrive this much later on a busy machine. This is far shorter
 * than the back-off, so that a refused half-open request would be noticed.
 */
const UNDER_WAY_MS = WINDOW_MS / 3;

/** Returns the most that the mirror may send in a window under an account's limit. */
function limitsOf(limit: number): PaceLimits & { readonly spanMs: number; readonly most: number } {
  const limits = { maxPerWindow: limit * SHARE, windowMs: WINDOW_MS, backoffMs: WINDOW_MS };
  return { ...limits, spanMs: WINDOW_MS + guardMs(limits), most: sendsPerWindow(limits) };
}

type Busy = Stack & { readonly limits: ReturnType<typeof limitsOf> };

/**
 * Creates an account with that limit, and more work for two daemons than it allows: 100 live SKUs wanted every
 * second.
 */
async function busyAccount(limit: number, seed: number): Promise<Busy> {
  const stack = await createStack({
    sandbox: { skus: 500, liveShare: 0.2, ghostShare: 0, seed, rateLimit: limit, rateWindowMs: WINDOW_MS },
    env: {
      PARTNER_RATE_LIMIT: String(limit),
      PARTNER_RATE_WINDOW: `${WINDOW_MS}ms`,
      PARTNER_RATE_SHARE: String(SHARE),
      PARTNER_RATE_FLOOR: String(FLOOR),
      PARTNER_BACKOFF: `${WINDOW_MS}ms`,
      DELTA_INTERVAL: '2s',
      LIVE_INTERVAL: '1s',
      LIVE_POLICY: 'round-robin',
    },
  });
  return { ...stack, limits: limitsOf(limit) };
}

/** Makes the daemons start as if they had run for a while; otherwise they start at half of their pace. */
async function longSinceStarted({ databaseUrl, sql }: Stack): Promise<void> {
  await migrateDatabase(databaseUrl);
  await sql`insert into catalog_internal.pace (ceiling, raised_at) values (1000, now())`;
}

/**
 * Returns when requests that count towards the limit arrived. The mirror never asks for a single SKU: those
 * requests come from another service.
 */
function arrivals({ sandbox }: Stack, whose: 'own' | 'foreign', status?: number): number[] {
  return sandbox.requests
    .filter((r) => r.apiKey && (r.route === 'lowest') === (whose === 'foreign'))
    .filter((r) => status === undefined || r.status === status)
    .map(({ at }) => at);
}

/** Sends one request from another service of the seller, with the same credential. */
async function otherRequest({ sandbox }: Stack): Promise<void> {
  const basic = Buffer.from(`${sandbox.apiKey}:${sandbox.secret}`).toString('base64');
  const answer = await fetch(`${sandbox.url}/partner/lowest/ORDERS`, {
    headers: { authorization: `Basic ${basic}` },
  });
  await answer.arrayBuffer();
}

/** Gives every live SKU a price that no earlier refresh has seen. */
function moveLive(world: World): void {
  for (const { sku, priceSource, sizeMap } of world.truth().values()) {
    const [size] = Object.keys(sizeMap);
    if (priceSource === 'live' && size !== undefined) world.setPrice(sku, size, 919_191);
  }
}

/** Sends this many requests in this many milliseconds, from another service that asks for no permission. */
async function burst(stack: Stack, requests: number, ms: number): Promise<void> {
  const answers: Promise<void>[] = [];
  for (let i = 0; i < requests; i += 1) {
    answers.push(otherRequest(stack));
    await pause(ms / requests);
  }
  await Promise.all(answers);
}

/** Other services that ask catalog.take_request and obey it, until they stop. */
class PoliteOthers implements AsyncDisposable {
  readonly #stack: Stack;
  readonly #quiet = new AbortController();
  readonly #sessions: Promise<void>[] = [];

  constructor(stack: Stack) {
    this.#stack = stack;
  }

  /** Starts one more, which rests after each of its requests. */
  begin(restMs = 0): void {
    this.#sessions.push(this.#ask(restMs));
  }

  async fallQuiet(): Promise<void> {
    this.#quiet.abort();
    await Promise.all(this.#sessions);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fallQuiet();
  }

  async #ask(restMs: number): Promise<void> {
    const { signal } = this.#quiet;
    const session = connect(this.#stack.databaseUrl, { max: 1 });
    try {
      while (!signal.aborted) {
        const [{ wait }] = await session<[{ wait: number }]>`select catalog.take_request('orders') as wait`;
        if (wait === 0) await otherRequest(this.#stack);
        await systemClock.sleep(wait === 0 ? restMs : wait, signal);
      }
    } finally {
      await session.end({ timeout: 2 });
    }
  }
}

/** Waits until the mirror has sent at least this many requests in each of the last windows. */
async function busyWindows(stack: Stack, windows: number, requests: number): Promise<void> {
  await eventually(
    () => {
      const from = Date.now() - windows * WINDOW_MS;
      const each = Array.from({ length: windows }, (_, i) =>
        countIn(arrivals(stack, 'own'), from + i * WINDOW_MS, from + (i + 1) * WINDOW_MS),
      );
      return each.every((count) => count >= requests);
    },
    { what: `${windows} windows of ${requests}` },
  );
}

/**
 * Bursts others' requests until the mirror is refused. Returns what the partner saw of the mirror until `windows`
 * windows after its half-open request.
 */
async function refusedByABurst(stack: Busy, windows: number) {
  const own = () => arrivals(stack, 'own');
  const refusals = () => arrivals(stack, 'own', 403);
  const before = refusals().length;
  // As many as the account's limit, so that anything the mirror sends is too much. On a busy machine they may take
  // too long to fill a window: then once more.
  await eventually(
    async () => {
      await burst(stack, stack.sandbox.options.rateLimit, 1000);
      return refusals().length > before;
    },
    { what: 'a refusal' },
  );
  const refused = refusals()[before] ?? 0;
  const after = () => own().filter((at) => at > refused + UNDER_WAY_MS);
  await eventually(() => (after().at(-1) ?? 0) >= (after()[0] ?? Infinity) + windows * WINDOW_MS, {
    what: 'the recovery',
  });
  const [probe = 0] = after();
  const later = after().filter((at) => at < probe + windows * WINDOW_MS);
  return {
    refusedForMs: (refusals().at(-1) ?? 0) - refused,
    backoffFor: probe - refused,
    sentBefore: countIn(own(), refused - stack.limits.spanMs, refused + UNDER_WAY_MS),
    later,
    each: Array.from({ length: windows }, (_, i) =>
      countIn(later, probe + i * WINDOW_MS, probe + (i + 1) * WINDOW_MS),
    ),
  };
}

describe.concurrent('the account’s pace, as the partner sees it', () => {
  test('alone: two replicas fill their share evenly, never exceed it, and are never refused', async ({
    expect,
  }) => {
    await using stack = await busyAccount(50, 1601);
    const { limits } = stack;
    const apps = [await stack.start(), await stack.start()];
    await busyWindows(stack, 3, 0.8 * limits.most);
    const own = arrivals(stack, 'own');
    // They start at half the pace and grow: the first window contains no more than that.
    const [first = 0] = own;
    expect(countIn(own, first, first + WINDOW_MS)).toBeLessThanOrEqual(limits.most / 2 + RAISE);
    expect(mostWithin(own, WINDOW_MS)).toBeLessThanOrEqual(limits.maxPerWindow);
    expect(mostWithin(own, WINDOW_MS / 4)).toBeLessThanOrEqual(limits.most / 4 + 4);
    expect(arrivals(stack, 'own', 403)).toEqual([]);
    for (const app of apps)
      expect(await metric(app, 'partner_requests_total', 'route="bulk",outcome="ok"')).toBeGreaterThan(10);
    moveMarket(stack.sandbox.world, 0);
    await eventually(() => expectMirrorIsTrue(stack.sql, stack.sandbox.world));
  });

  test('beside bursts of greedy services: one refusal each, a back-off, a slow recovery, and no loss', async ({
    expect,
  }) => {
    await using stack = await busyAccount(100, 1602);
    const { limits, sandbox } = stack;
    await longSinceStarted(stack);
    await stack.start();
    await stack.start();
    for (const [round, { busy, windows }] of [
      { busy: 0.7 * limits.most, windows: 3 },
      { busy: RESUME_FLOOR, windows: 1 },
    ].entries()) {
      await busyWindows(stack, 1, busy);
      moveMarket(sandbox.world, round);
      const back = await refusedByABurst(stack, windows);
      // One refusal, and those of requests in flight while it was being recorded.
      expect(back.refusedForMs).toBeLessThanOrEqual(UNDER_WAY_MS);
      expect(back.backoffFor).toBeGreaterThanOrEqual(WINDOW_MS - 5);
      expect(back.backoffFor).toBeLessThanOrEqual(2 * WINDOW_MS);
      // Half of what was sent before, and a little more each window: evenly, and not too little either.
      const resume = Math.max(RESUME_FLOOR, back.sentBefore / 2);
      expect(mostWithin(back.later, WINDOW_MS / 4)).toBeLessThanOrEqual((resume + windows * RAISE) / 4 + 3);
      for (const [i, count] of back.each.entries()) {
        expect(count).toBeLessThanOrEqual(resume + (i + 1) * RAISE + 2);
        if (i > 0) expect(count).toBeGreaterThanOrEqual(0.3 * (resume + i * RAISE));
      }
    }
    expect(mostWithin(arrivals(stack, 'own'), WINDOW_MS)).toBeLessThanOrEqual(limits.maxPerWindow);
    // SKUs of a refused call are asked for again as well, long before its lease would end.
    moveLive(sandbox.world);
    await eventually(() => expectMirrorIsTrue(stack.sql, sandbox.world));
  });

  test('beside services that ask catalog.take_request: yields down to its floor, recovers, and nobody is refused', async ({
    expect,
  }) => {
    const ACCOUNT = 60;
    await using stack = await busyAccount(ACCOUNT, 1603);
    const { limits } = stack;
    await longSinceStarted(stack);
    await stack.start();
    await stack.start();
    await busyWindows(stack, 1, 0.7 * limits.most);
    await using others = new PoliteOthers(stack);
    others.begin(WINDOW_MS / 10);
    await eventually(() => arrivals(stack, 'foreign').length >= 10, { what: 'ten requests of a modest one' });
    await busyWindows(stack, 1, 0.8 * limits.most);
    for (let i = 0; i < 4; i += 1) others.begin();
    const settled = Date.now() + 2 * limits.spanMs;
    const end = settled + 2 * WINDOW_MS;
    await eventually(() => Date.now() >= end, { what: 'two windows beside the others' });
    await others.fallQuiet();
    const aWindow = (whose: 'own' | 'foreign') => countIn(arrivals(stack, whose), settled, end) / 2;
    expect(aWindow('own')).toBeLessThanOrEqual(ACCOUNT * FLOOR + 1);
    // Exceeding the upper bounds breaks a promise; falling below the lower ones may be due to a slow machine.
    expect(aWindow('own')).toBeGreaterThanOrEqual(0.5 * ACCOUNT * FLOOR);
    expect(aWindow('foreign')).toBeGreaterThanOrEqual(0.5 * (ACCOUNT * (1 - FLOOR)));

    await busyWindows(stack, 1, 0.8 * limits.most);
    expect(Date.now() - end).toBeLessThanOrEqual(5 * WINDOW_MS);
    const all = [...arrivals(stack, 'own'), ...arrivals(stack, 'foreign')];
    expect(mostWithin(all, WINDOW_MS)).toBeLessThanOrEqual(ACCOUNT);
    expect(mostWithin(arrivals(stack, 'own'), WINDOW_MS)).toBeLessThanOrEqual(limits.maxPerWindow);
    expect([...arrivals(stack, 'own', 403), ...arrivals(stack, 'foreign', 403)]).toEqual([]);
    await eventually(() => expectMirrorIsTrue(stack.sql, stack.sandbox.world));
  });
});
