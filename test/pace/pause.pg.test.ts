import { describe, expect, test } from 'vitest';
import { ledgerPermits } from '../../src/cli/doctor/permits.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { readPace } from '../../src/pace/ledger.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { PaceLimits } from '../../src/pace/policy.ts';
import { paceReader } from '../../src/pace/view.ts';
import { pauseRequests, readPause, resumeRequests } from '../../src/store/sellers/pause.ts';
import { answerAsked, found, HOUR, knownSkus, useStore } from '../store/support.ts';

const store = useStore();
const LIMITS: PaceLimits = { maxPerWindow: 1000, windowMs: 1000, backoffMs: HOUR };
const ANN = 'ann@desk';
const BOB = 'bob@desk';

/** A new process. A restarted one is another replica. */
const replica = () => createPacer(store.sql, systemClock, LIMITS);
const asked = async (pacer = replica()) => {
  const acquired = await pacer.acquire('delta', 15_000);
  return acquired.kind === 'wait' ? acquired.because : acquired.kind;
};
const statusRow = async () => {
  const [row] = await store.sql`
    select paused_since is not null as since, paused_until::text as until, paused_until > now() as "toCome" from catalog.sync_status`;
  return row;
};
const sends = async () =>
  (await store.sql`select from catalog_internal.pace_sends where not other_user`).length;

describe('while requests are paused', () => {
  test('no replica and no doctor gets a permit: the answer comes at once and no send is logged', async () => {
    const [one, two] = [replica(), replica()];
    expect(await asked(one)).toBe('granted');
    expect(await pauseRequests(store.sql, { forMs: null, by: ANN })).toMatchObject({
      wasPaused: false,
      pause: { until: null, by: ANN, resumedBy: null },
    });
    const before = await sends();
    const from = systemClock.monotonic();
    expect(await Promise.all([asked(one), asked(two), asked(replica())])).toEqual(
      Array.from({ length: 3 }, () => 'paused'),
    );
    // Nobody waits: the patience above is fifteen seconds.
    expect(systemClock.monotonic() - from).toBeLessThan(10_000);
    expect(await ledgerPermits(store.sql, systemClock, LIMITS).take()).toMatchObject({ because: 'paused' });
    expect(await sends()).toBe(before);

    expect(await resumeRequests(store.sql, BOB)).toMatchObject({ by: ANN, resumedBy: BOB });
    expect([await asked(one), await asked(two)]).toEqual(['granted', 'granted']);
  });

  test('a permit granted before the pause is settled as usual', async () => {
    const acquired = await replica().acquire('delta', 15_000);
    if (acquired.kind === 'wait') throw new Error(acquired.because);
    await pauseRequests(store.sql, { forMs: null, by: ANN });
    await acquired.permit.settle('throttled-or-forbidden');
    const shown = paceReader(LIMITS)(await readPace(store.sql, LIMITS.windowMs));
    expect(shown).toMatchObject({ refused: { times: 1 }, paused: { until: null, by: ANN } });
  });

  test('the account’s other services continue', async () => {
    await pauseRequests(store.sql, { forMs: null, by: ANN });
    expect(await store.sql`select catalog.take_request('orders') as wait`).toEqual([{ wait: 0 }]);
  });

  test('catalog.sync_status shows its start and end', async () => {
    expect(await statusRow()).toEqual({ since: false, until: null, toCome: null });
    await pauseRequests(store.sql, { forMs: null, by: ANN });
    expect(await statusRow()).toEqual({ since: true, until: 'infinity', toCome: true });
    await pauseRequests(store.sql, { forMs: HOUR, by: ANN });
    expect(await statusRow()).toMatchObject({ since: true, toCome: true });
    await resumeRequests(store.sql, ANN);
    expect(await statusRow()).toEqual({ since: false, until: null, toCome: null });
  });

  test('a SKU’s next refresh comes after the pause, and is unknown if the pause has no end', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 100 }));
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 minute'`;
    await store.sql`update catalog_internal.tasks set finished_at = now() where task = 'maintenance'`;
    const next = async () => {
      const [row] = await store.sql<[{ seconds: number | null }]>`
        select extract(epoch from next_look_at - now())::float8 as seconds from catalog.sku_trust`;
      return row.seconds;
    };
    expect(await next()).toBeLessThan(100);
    await pauseRequests(store.sql, { forMs: HOUR, by: ANN });
    expect(await next()).toBeGreaterThan(3000);
    await pauseRequests(store.sql, { forMs: null, by: ANN });
    expect(await next()).toBeNull();
  });
});

describe('pausing again', () => {
  test('replaces the end and the author, but keeps the start', async () => {
    const first = await pauseRequests(store.sql, { forMs: null, by: ANN });
    const second = await pauseRequests(store.sql, { forMs: HOUR, by: BOB });
    expect(second).toMatchObject({ wasPaused: true, pause: { since: first.pause.since, by: BOB } });
    const { setAt, until } = second.pause;
    expect(setAt).toBeGreaterThan(first.pause.setAt);
    expect((until ?? 0) - setAt).toBeCloseTo(HOUR, 0);
  });

  test('after it has ended starts a new pause', async () => {
    for (const end of [() => resumeRequests(store.sql, BOB), endByItself]) {
      const first = await pauseRequests(store.sql, { forMs: HOUR, by: ANN });
      expect(first.wasPaused).toBe(false);
      await end();
      const second = await pauseRequests(store.sql, { forMs: HOUR, by: ANN });
      expect(second).toMatchObject({ wasPaused: false, pause: { resumedBy: null } });
      expect(second.pause.since).toBeGreaterThan(first.pause.since);
      await resumeRequests(store.sql, BOB);
    }
  });
});

describe('resuming', () => {
  test('returns null and changes nothing if there is nothing to resume', async () => {
    expect(await resumeRequests(store.sql, BOB)).toBeNull();
    await pauseRequests(store.sql, { forMs: HOUR, by: ANN });
    await endByItself();
    expect(await resumeRequests(store.sql, BOB)).toBeNull();
    expect((await readPause(store.sql)).pause).toMatchObject({ by: ANN, resumedBy: null });
  });

  test('ends the waits of paused tasks, and no others', async () => {
    await store.sql`
      update catalog_internal.tasks set next_at = now() + interval '1 hour',
        outcome = case task when 'delta' then 'paused' else 'done' end`;
    await pauseRequests(store.sql, { forMs: null, by: ANN });
    await resumeRequests(store.sql, BOB);
    const due = await store.sql`select task from catalog_internal.tasks where next_at <= clock_timestamp()`;
    expect(due).toEqual([{ task: 'delta' }]);
  });
});

/** Lets the current pause reach its end. */
async function endByItself(): Promise<void> {
  await store.sql`update catalog_internal.pause set until = clock_timestamp(), set_at = set_at - interval '2 hours'`;
}
