import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SET_BACK_MS } from '../../src/daemon/clock-watch.ts';
import { DEAD_AFTER_MS } from '../../src/daemon/health.ts';
import { ceilingAt, guardMs, initialPace, ownMost, settled } from '../../src/pace/policy.ts';
import { paceReader } from '../../src/pace/view.ts';
import type { Facts } from '../../src/status/facts.ts';
import { clockReasons } from '../../src/status/progress.ts';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import { readClock } from '../../src/store/clock.ts';
import { type Lane, DUE_LANES, laneNumber, SNAPSHOT_REASON } from '../../src/store/ledger/due.ts';
import { readTargets } from '../../src/store/setup/sql-settings.ts';
import { nextRefresh, snapshotMs, type SyncSettings } from '../../src/sync/settings.ts';
import { DASHBOARD } from '../ops/expressions.ts';
import { useStore } from './support.ts';

/* Checks that TypeScript and SQL, or a dashboard, agree on what each of them has to know. */

const store = useStore();

const REASONS: Readonly<Record<Lane, readonly string[]>> = {
  urgent: ['changed', 'watched', 'refresh'],
  live: ['live', 'unlisted', 'missed'],
  new: ['new', 'absent', 'removed'],
  error: ['error'],
  metadata: ['metadata'],
  sweep: ['sweep'],
};

test('lanes: SQL serves each reason in the lane of that number, and names it by one of its reasons', async () => {
  const [{ names }] = await store.sql<[{ names: string[] }]>`select catalog_internal.lane_names() as names`;
  expect(names).toHaveLength(DUE_LANES.length);
  for (const lane of DUE_LANES) {
    expect(REASONS[lane]).toContain(names[laneNumber(lane) - 1]);
    const rows = await store.sql<{ lane: number }[]>`
      select catalog_internal.lane_of(reason) as lane from unnest(${REASONS[lane] as string[]}::text[]) as reason`;
    expect([lane, rows.map((row) => row.lane)]).toEqual([lane, REASONS[lane].map(() => laneNumber(lane))]);
  }
  // Its partial index uses the number.
  expect(laneNumber('urgent')).toBe(1);
});

test('the target age of snapshot-priced SKUs in SQL is what the next refresh is planned by', async () => {
  const durations = fc.integer({ min: 1, max: 30 * 86_400 });
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.constant(0), durations), durations, async (sweep, metadata) => {
      await store.sql`update catalog_internal.settings set sweep_interval = ${sweep}, metadata_interval = ${metadata}`;
      const intervals = { sweepMs: sweep * 1000, metadataMs: metadata * 1000 } as SyncSettings['intervals'];
      expect((await readTargets(store.sql)).snapshotSeconds * 1000).toBe(snapshotMs({ intervals }));
      const [{ reason }] = await store.sql<[{ reason: string }]>`
        select ${store.sql.unsafe(SNAPSHOT_REASON)} as reason from catalog_internal.settings g`;
      expect(reason).toBe(nextRefresh({ intervals }).snapshotReason);
    }),
    { numRuns: 50 },
  );
});

test('a late delta: after two polls, half an hour at least, and red on the dashboard from then on', async () => {
  const lateAfter = async (interval: number) => {
    await store.sql`update catalog_internal.settings set delta_interval = ${interval}`;
    return (await readTargets(store.sql)).deltaLateAfterSeconds;
  };
  expect(await lateAfter(3600)).toBe(2 * 3600);
  const usual = await lateAfter(300);
  const panel = DASHBOARD.panels.find(({ title }) => title === 'Delta last checked');
  const { thresholds } = (panel?.fieldConfig?.defaults ?? {}) as {
    thresholds?: { steps: { value: number | null }[] };
  };
  expect(thresholds?.steps.at(-1)?.value).toBe(usual);
});

test('a daemon at work: the estimate of next refreshes and livez give it up after the same time', async () => {
  const { sql } = store;
  for (const [offset, atWork] of [
    [-30, true],
    [5, false],
  ] as const) {
    await sql`
      update catalog_internal.tasks set finished_at = now() - make_interval(secs => ${DEAD_AFTER_MS / 1000 + offset})
      where task = 'maintenance'`;
    const [row] = await sql<[{ atWork: boolean }]>`
      select coalesce(at_work, true) as "atWork" from catalog_internal.trust_terms()`;
    expect(row.atWork).toBe(atWork);
  }
});

/**
 * Returns what `read` finds just before a bound of so many seconds, and five seconds after it, because the machine
 * may stall.
 */
async function aboutBound<T>(seconds: number, read: (seconds: number) => Promise<T>): Promise<[T, T]> {
  return [await read(seconds - 0.25), await read(seconds + 5)];
}

test('a clock set back: SQL, the daemon and the status distinguish it from a correction by the same step', async () => {
  const { sql } = store;
  const found = await aboutBound(SET_BACK_MS / 1000, async (seconds) => {
    await sql`update catalog_internal.tasks set started_at = null, finished_at = null`;
    await sql`
      update catalog_internal.clock set high_water = clock_timestamp() + make_interval(secs => ${seconds}),
        steady_since = now() - interval '2 hours', set_back_seconds = null, ahead_seconds = null`;
    const clock = await readClock(sql);
    const [row] = await sql`
      select catalog_internal.believable_until() = '-infinity' as disbelieved,
        not catalog_internal.clock_is_steady() as unsteady, catalog_internal.set_back_clock() > 0 as put_right`;
    return { ...row, shown: clockReasons({ clock } as Facts).length > 0 };
  });
  const all = (is: boolean) => ({ disbelieved: is, unsteady: is, put_right: is, shown: is });
  expect(found).toEqual([all(false), all(true)]);
});

/** Returns how each place judges a delta that was last checked so many seconds from now. */
async function saidOfDelta(seconds: number) {
  const { sql } = store;
  await sql`
    update catalog_internal.sync set catalog_fault = null, manifest_applied_at = now(), snapshot_generated_at = now(),
      delta_checked_at = now() + make_interval(secs => ${seconds})`;
  const [row] = await sql<[{ doubt: string | null; silent: boolean }]>`
    select catalog_doubt as doubt, silent_minutes = 'infinity' as silent
    from catalog_internal.trust_terms(), catalog_internal.price_beliefs()`;
  const { deltaLate, catalogState } = await readSyncState(sql);
  const byAge = catalogState === 'stale';
  return { doubted: row.doubt === 'delta_late', silent: row.silent, shown: deltaLate === true, byAge };
}

const ofLateDelta = (is: boolean) => ({ doubted: is, silent: is, shown: is, byAge: is });

test('a late delta: prices are doubted, refreshed by age, and shown as such from the same time on', async () => {
  const { deltaLateAfterSeconds } = await readTargets(store.sql);
  const found = [
    await saidOfDelta(30 - deltaLateAfterSeconds),
    await saidOfDelta(-1 - deltaLateAfterSeconds),
  ];
  expect(found).toEqual([ofLateDelta(false), ofLateDelta(true)]);
});

test('a delta dated in the future is late from the same minute on from which a daemon is idle', async () => {
  const { sql } = store;
  const found = await aboutBound(60, async (seconds) => {
    await sql`
      update catalog_internal.tasks set finished_at = now() + make_interval(secs => ${seconds})
      where task = 'maintenance'`;
    const [row] = await sql<
      [{ idle: boolean }]
    >`select not at_work as idle from catalog_internal.trust_terms()`;
    return { idle: row.idle, ...(await saidOfDelta(seconds)) };
  });
  expect(found).toEqual([false, true].map((is) => ({ idle: is, ...ofLateDelta(is) })));
});

/** The account's limit, window, share and floor, what others sent, and what the mirror may have learned. */
const PACE = fc.record({
  windowMs: fc.constantFrom(5000, 9999, 10_000, 10_001, 60_000, 3_600_000),
  // Multiples of 21 and 121 leave no remainder when divided between window and guard.
  limit: fc.oneof(
    fc.integer({ min: 1, max: 1000 }),
    fc.integer({ min: 1, max: 47 }).map((times) => times * 21),
    fc.integer({ min: 1, max: 8 }).map((times) => times * 121),
  ),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  floor: fc.double({ min: 0, max: 1, noNaN: true }),
  others: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1000 })),
  ceiling: fc.integer({ min: 1, max: 1000 }),
  raisedSecondsAgo: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 600 })),
  backingOff: fc.option(fc.record({ resumeAt: fc.option(fc.integer({ min: 1, max: 1000 })) })),
});

/** 231 requests in 9.999 s leave exactly 220 in window and guard; when divided in seconds, it was slightly less. */
const EXACT_SHARE = {
  windowMs: 9999,
  limit: 231,
  share: 215 / 231,
  floor: 0,
  others: 4,
  ceiling: 1,
  raisedSecondsAgo: 0,
  backingOff: { resumeAt: 203 },
} as const;

test('the pace: promises get what the pacer would allow, beside others and after a refusal', async () => {
  const { sql } = store;
  await fc.assert(
    fc.asyncProperty(
      PACE,
      async ({ windowMs, limit, others, ceiling, raisedSecondsAgo, backingOff, ...parts }) => {
        const maxPerWindow = Math.max(1, Math.floor(limit * parts.share));
        const floor = Math.max(1, Math.floor(maxPerWindow * parts.floor));
        const limits = { maxPerWindow, windowMs, backoffMs: 60_000, account: { limit, floor } };
        await sql`
        update catalog_internal.settings set rate_window = ${windowMs / 1000}, rate_limit = ${limit},
          rate_share = ${maxPerWindow}, rate_floor = ${floor}`;
        await sql`
        insert into catalog_internal.pace (ceiling, raised_at, backoff_until, resume_at)
        values (
          ${ceiling}, now() - make_interval(secs => ${raisedSecondsAgo}),
          ${backingOff === null ? null : '1 minute'}::interval + now(), ${backingOff?.resumeAt ?? null}
        )
        on conflict (id) do update set ceiling = excluded.ceiling, raised_at = excluded.raised_at,
          backoff_until = excluded.backoff_until, resume_at = excluded.resume_at`;
        await sql`
        select setval('catalog_internal.others_sent_3',
          (extract(epoch from clock_timestamp()) * 1000)::bigint << 20 | ${others}::int)`;
        const [row] = await sql<
          [
            {
              raised: number;
              before: number;
              after: number;
              requests: number;
              shown: number;
              part: number;
            },
          ]
        >`
        select (extract(epoch from raised_at) * 1000)::float8 as raised,
          (extract(epoch from clock_timestamp()) * 1000)::float8 as before,
          (catalog_internal.promise_capacity()).requests,
          (select requests_per_minute::float8 from catalog.sync_status) as shown,
          (extract(epoch from clock_timestamp()) * 1000)::float8 as after,
          catalog_internal.others_part()::int as part
        from catalog_internal.pace`;
        const allowedAt = (now: number) => {
          const state = { ...initialPace(limits, now), ceiling, raisedAt: row.raised };
          const { resumeAt = null } = backingOff ?? {};
          const halfOpen = { ...state, backoffUntil: now, halfOpenSentAt: now, resumeAt };
          const resumed = settled(limits, halfOpen, { sentAt: now, outcome: 'ok', sendsInWindow: 1 }, now);
          return Math.min(
            ownMost(limits, others),
            ceilingAt(limits, backingOff === null ? state : resumed, now),
          );
        };
        // Eight tenths of it, per minute. The ceiling is a real, with six digits.
        const given = (row.requests / 0.8) * (windowMs / 60_000);
        expect(given).toBeGreaterThanOrEqual(allowedAt(row.before) * (1 - 1e-6));
        expect(given).toBeLessThanOrEqual(allowedAt(row.after) * (1 + 1e-6));
        // What is shown is what is allowed, even beside others; a back-off is shown separately.
        const shownAt = (now: number) => {
          const pace = { ...initialPace(limits, now), ceiling, raisedAt: row.raised };
          return paceReader(limits)({ state: pace, sends: [], others, now, pause: null }).ceilingPerMinute;
        };
        expect(row.shown).toBeGreaterThanOrEqual(shownAt(row.before) * (1 - 1e-6));
        expect(row.shown).toBeLessThanOrEqual(shownAt(row.after) * (1 + 1e-6));
        expect(row.part).toBe(Math.ceil((windowMs + guardMs(limits)) / 15));
      },
    ),
    { numRuns: 200, examples: [[EXACT_SHARE]] },
  );
});
