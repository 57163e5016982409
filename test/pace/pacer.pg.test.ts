import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createCircuitBreaker } from '../../src/pace/circuit-breaker.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { PaceLimits } from '../../src/pace/policy.ts';
import type { RequestOutcome } from '../../src/partner/errors.ts';
import { letBackoffEnd } from '../contract/backoff.ts';
import { HOUR, useStore } from '../store/support.ts';

const store = useStore();
const LIMITS: PaceLimits = { maxPerWindow: 1000, windowMs: 1000, backoffMs: HOUR };
const FORBIDDEN = 'throttled-or-forbidden';

/** One process of the fleet, with a count of how often it was told to read its credential file. */
function daemon() {
  let looks = 0;
  const breaker = createCircuitBreaker(systemClock, LIMITS);
  const pacer = createPacer(
    store.sql,
    systemClock,
    LIMITS,
    { afterRefusal: () => void (looks += 1) },
    breaker,
  );
  return {
    breaker,
    looks: () => looks,
    acquire: (patienceMs = 5000) => pacer.acquire('lane', patienceMs),
    async send(outcome: RequestOutcome) {
      const turn = await pacer.acquire('lane', 5000);
      if (turn.kind === 'wait') throw new Error(`no turn: ${turn.because}`);
      await turn.permit.settle(outcome);
    },
  };
}

describe('a daemon beside one that was refused', () => {
  test('reads its credential file once before it sends again, though it was never refused itself', async () => {
    const [refused, other] = [daemon(), daemon()];
    await refused.send('ok');
    await other.send('ok');
    const before = other.looks();
    await other.send('ok');
    expect(other.looks()).toBe(before);

    await refused.send(FORBIDDEN);
    await letBackoffEnd(store.sql);
    await refused.send('ok');
    expect(other.looks()).toBe(before);
    await other.send('ok');
    expect(other.looks()).toBe(before + 1);
    await other.send('ok');
    expect(other.looks()).toBe(before + 1);
  });

  test('continues while the refused one is paused, which returns shared tasks at once and reads its file', async () => {
    const [good, bad] = [daemon(), daemon()];
    for (let i = 0; i < 2; i += 1) {
      await bad.send(FORBIDDEN);
      await letBackoffEnd(store.sql);
      await good.send('ok');
    }
    const before = bad.looks();
    expect(await bad.acquire()).toEqual({ kind: 'wait', forMs: 1000, because: 'silence' });
    expect(bad.looks()).toBe(before + 1);
    await good.send('ok');

    bad.breaker.cleared();
    await bad.send('ok');
    expect(bad.breaker.explain()).toBeNull();
  });

  test('sends the next half-open request first if the other one’s last attempt was in vain', async () => {
    const [near, far] = [daemon(), daemon()];
    await near.send(FORBIDDEN);
    await letBackoffEnd(store.sql);
    const turn = await near.acquire();
    if (turn.kind === 'wait') throw new Error(turn.because);
    expect(turn.permit.halfOpen).toBe(true);
    await turn.permit.cancel();
    // Longer ago than a process rounds the time by.
    await store.sql`update catalog_internal.pace set backoff_until = now() - interval '1 second'`;
    const wait = await near.acquire(0);
    expect(wait).toMatchObject({ kind: 'wait', because: 'silence' });
    expect('forMs' in wait && wait.forMs).toBeLessThanOrEqual(2000);
    expect(await far.acquire()).toMatchObject({ kind: 'granted', permit: { halfOpen: true } });
    expect(await near.acquire(0)).toMatchObject({ kind: 'wait', because: 'probe' });
  });

  test('is not paused by refusals that the whole fleet receives in a row', async () => {
    const [one, two] = [daemon(), daemon()];
    for (let i = 0; i < 3; i += 1) {
      await one.send(FORBIDDEN);
      await letBackoffEnd(store.sql);
      await two.send(FORBIDDEN);
      await letBackoffEnd(store.sql);
    }
    await one.send('ok');
    await two.send('ok');
    expect([one.breaker.explain(), two.breaker.explain()]).toEqual([null, null]);
  });

  test.each<RequestOutcome>(['snapshot-stale', 'service-fault'])(
    'forgets its refusals after an answer of %s too: the authorizer let it pass',
    async (outcome) => {
      const alone = daemon();
      for (let i = 0; i < 3; i += 1) {
        await alone.send(FORBIDDEN);
        await letBackoffEnd(store.sql);
        await alone.send(outcome);
      }
      expect(alone.breaker.openMs()).toBe(0);
      expect(alone.breaker.explain()).toBeNull();
    },
  );
});
