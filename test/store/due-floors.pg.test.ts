import { array, assert, asyncProperty, constantFrom, integer, oneof, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readCallInputs } from '../../src/store/call/bulk-call.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { DueFloors, fullPassEveryMs } from '../../src/store/ledger/due-floors.ts';
import { DUE_LANES, returnClaim, readIdle } from '../../src/store/ledger/due.ts';
import { readBacklog } from '../../src/store/live/order.ts';
import { countCatalog } from '../../src/store/status/counts-reader.ts';
import { runs } from '../support/soak.ts';
import { empty, NOT_EARLY, useStore } from './support.ts';

/*
 * What a process reads from its floors on equals what it would read from the beginning of the ledger, except for
 * rows that others have put behind them: the next change of the catalog or the next full pass finds those.
 */

const store = useStore();
const LIMIT = 4;
const OPTIONS = {
  limit: LIMIT,
  early: { usual: { ...NOT_EARLY, sweep: 600 }, stale: NOT_EARLY },
  candidates: { perBudget: 1, configuredBudget: 2, least: 2, most: 6, restMinutes: 1 },
};
const MINUTE = 60_000;

/**
 * Returns a process's floors, on a clock that stands still, and with so much to pass over that it makes a full
 * pass once a minute.
 */
function process() {
  let now = 0;
  return {
    floors: new DueFloors({ monotonic: () => now }, () => MINUTE),
    passMinute: () => (now += MINUTE),
  };
}

const read = (floors?: DueFloors) => readCallInputs(store.sql, OPTIONS, floors);

/**
 * Returns inputs without what differs from one moment to the next. The order of two SKUs due at the same time is
 * undefined.
 */
async function seen({ due, suspects, candidates, nextDueMs }: Awaited<ReturnType<typeof read>>) {
  const rows = await store.sql<{ sku: string; due: string }[]>`
    select sku, due_at::text as due from catalog_internal.due where sku = any(${candidates.map(({ sku }) => sku)})`;
  const dueAt = new Map(rows.map(({ sku, due: at }) => [sku, at]));
  return {
    due,
    suspects,
    candidates: candidates.map(({ sku }) => dueAt.get(sku)),
    next: nextDueMs,
  };
}

/** The second reading comes a moment after the first, or a second on a busy machine. */
function expectSame(one: Awaited<ReturnType<typeof seen>>, other: typeof one): void {
  expect({ ...one, next: one.next === null }).toEqual({ ...other, next: other.next === null });
  expect(Math.abs((one.next ?? 0) - (other.next ?? 0))).toBeLessThan(60_000);
}

/** Seconds from now, far from one another. */
const anyRow = record({
  lane: integer({ min: 1, max: 6 }),
  live: constantFrom(true, false),
  due: constantFrom<(number | string)[]>(-90_000, -7000, -300, 200, 5000, 'infinity', '-infinity'),
  held: constantFrom(null, null, -3000, -30, 4000),
});
type Row = Parameters<Parameters<typeof anyRow.map>[0]>[0];

const moment = (seconds: number | string | null) =>
  typeof seconds === 'string'
    ? seconds
    : seconds === null
      ? null
      : new Date(Date.now() + seconds * 1000).toISOString();

let names = 0;
async function put(row: Row): Promise<void> {
  names += 1;
  const sku = `S${names}`;
  await store.sql`insert into catalog.skus (sku, in_manifest) values (${sku}, true)`;
  await store.sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, held_until)
    values (${sku}, ${row.lane}, 'changed', ${row.live}, ${moment(row.due)}::text::timestamptz, ${moment(row.held)}::text::timestamptz)`;
}

const anyStep = oneof(
  { weight: 3, arbitrary: constantFrom('call', 'mark', 'give-back', 'minute', 'read') },
  { weight: 2, arbitrary: record({ reported: anyRow }) },
  { weight: 1, arbitrary: record({ behind: anyRow }) },
);
type Step = Parameters<Parameters<typeof anyStep.map>[0]>[0];

/**
 * A regression on PostgreSQL 14: the wait of a row due since -infinity was over, and nothing can be subtracted
 * from -infinity.
 */
const DUE_SINCE_EVER: [Row[], Step[]] = [[{ lane: 1, live: true, due: '-infinity', held: -30 }], []];

/** A regression: two live SKUs due at the same time, one of them after a wait, came in another order than before. */
const TWO_DUE_AT_ONCE: [Row[], Step[]] = [
  [
    { lane: 3, live: false, due: '-infinity', held: -30 },
    { lane: 2, live: true, due: '-infinity', held: -3000 },
    { lane: 1, live: true, due: -7000, held: null },
    { lane: 2, live: true, due: '-infinity', held: null },
    { lane: 4, live: false, due: -90_000, held: 4000 },
    { lane: 4, live: true, due: -300, held: -3000 },
  ],
  [
    'mark',
    { behind: { lane: 4, live: true, due: -90_000, held: null } },
    { behind: { lane: 4, live: true, due: -90_000, held: null } },
  ],
];

describe('a process that reads the ledger from its floors', () => {
  test('(random histories) reads what it would from the beginning, and within a minute what others put behind', async () => {
    await assert(
      asyncProperty(
        array(anyRow, { maxLength: 12 }),
        array(anyStep, { maxLength: 12, size: 'max' }),
        async (rows, steps) => {
          const { sql } = store;
          await empty(sql);
          await sql`update catalog_internal.sync set manifest_applied_at = now(), delta_checked_at = now()`;
          await sql`update catalog_internal.live_plan set refresh_threshold = 1, max_interval_minutes = 60`;
          for (const row of rows) await put(row);
          const { floors, passMinute } = process();
          let [isBehind, isHeldBehind] = [false, false];
          for (const step of ['read', ...steps, 'minute'] as const) {
            if (step === 'minute') {
              passMinute();
              [isBehind, isHeldBehind] = [false, false];
            } else if (step === 'mark') {
              names += 1;
              await sql`insert into catalog.skus (sku, in_manifest) values (${`M${names}`}, true)`;
              await sql`select catalog_internal.mark_due(array[${`M${names}`}], 'changed')`;
            } else if (step === 'call' || step === 'give-back') {
              const { due } = await read(floors);
              const quotas = due.map((one) => ({ ...one, earlySeconds: one.lane === 'sweep' ? 600 : 0 }));
              const claim = await claimDue(sql, { quotas }, MINUTE, null, floors.floors);
              // All that was counted is claimed, except that only its own quota may take what is due early.
              expect(claim?.skus.length ?? 0).toBe(due.reduce((sum, { count }) => sum + count, 0));
              if (step === 'give-back' && claim !== null) {
                await returnClaim(
                  sql,
                  claim,
                  claim.skus.map(({ sku }) => sku),
                );
                floors.reset();
                [isBehind, isHeldBehind] = [false, false];
              }
            } else if (typeof step === 'object' && 'reported' in step) {
              await sql.begin(async (tx) => {
                await put({ ...step.reported, held: null });
                await tx`update catalog_internal.sync set delta_checked_at = clock_timestamp()`;
              });
              isBehind = isHeldBehind;
            } else if (typeof step === 'object') {
              await put(step.behind);
              isBehind = true;
              // A wait that was over before it began does not come from a delta.
              isHeldBehind ||= step.behind.held !== null && step.behind.held < 0;
            }
            const from = await seen(await read(floors));
            if (!isBehind) expectSame(from, await seen(await read()));
          }
        },
      ),
      { numRuns: runs(60), examples: [TWO_DUE_AT_ONCE, DUE_SINCE_EVER] },
    );
  }, 120_000);

  test('finds SKUs due since -infinity, and so does everything else that counts them', async () => {
    const { sql } = store;
    expect((await readIdle(sql)).dueSeconds).toBeNull();
    expect(await countCatalog(sql)).toMatchObject({ due: [], oldestDeferredAgeSeconds: 0 });
    expect(await readBacklog(sql)).toMatchObject({ due: 0, waiting: 0 });
    for (const live of [true, false]) await put({ lane: 2, live, due: '-infinity', held: null });
    await sql`update catalog_internal.due set reason = 'live', deferrals = 1 where live`;
    const { due, nextDueMs } = await read();
    expect(due).toMatchObject([{ count: 1 }, { count: 1 }]);
    expect(nextDueMs).toBe(0);
    const { dueSeconds } = await readIdle(sql);
    const { due: counted, oldestDeferredAgeSeconds } = await countCatalog(sql);
    const { waiting } = await readBacklog(sql);
    const ages = counted.map(({ oldestAgeSeconds }) => oldestAgeSeconds);
    for (const age of [...ages, dueSeconds, oldestDeferredAgeSeconds, waiting])
      expect(age).toSatisfy(Number.isFinite);
  });

  test('skips rows before its floors until the next full pass', async () => {
    const { floors, passMinute } = process();
    const row = { lane: 6, live: false, due: -300, held: null };
    await put(row);
    expect((await read(floors)).due).toMatchObject([{ lane: 'sweep', count: 1 }]);
    await put({ ...row, due: -7000 });
    await put({ ...row, held: -3000 });
    expect((await read(floors)).due).toMatchObject([{ count: 1 }]);
    expect(
      (
        await claimDue(
          store.sql,
          { quotas: [{ lane: 'sweep', live: false, count: 9, earlySeconds: 0 }] },
          MINUTE,
          null,
          floors.floors,
        )
      )?.skus,
    ).toHaveLength(1);
    passMinute();
    expect((await read(floors)).due).toMatchObject([{ count: 2 }]);
  });

  test('makes a full pass after a change of the catalog, and after it has given something back', async () => {
    const { floors } = process();
    const row = { lane: 1, live: false, due: -300, held: null };
    const count = async () => (await read(floors)).due[0]?.count ?? 0;
    await put(row);
    expect(await count()).toBe(1);
    await put({ ...row, due: -7000 });
    expect(await count()).toBe(1);
    await store.sql`update catalog_internal.sync set delta_checked_at = now()`;
    expect(await count()).toBe(2);
    await put({ ...row, due: -9000 });
    expect(await count()).toBe(2);
    floors.reset();
    expect(await count()).toBe(3);
  });

  test('makes a full pass after a reading that may have missed what was given back meanwhile', () => {
    const { floors } = process();
    const reading = {
      now: 1e12,
      catalog: 's',
      firsts: [],
      allWaitsEnded: true,
      deadVersions: 1e6,
      pages: [],
    };
    const from = floors.next();
    floors.reset();
    floors.note(from, reading);
    expect(floors.next().of('sweep', false)).toBeNull();
    floors.note(floors.next(), reading);
    expect(floors.next().of('sweep', false)).toBeLessThan(reading.now);
  });
});

test('floors from a clock that was ahead are dropped once the clock is right', () => {
  const { floors } = process();
  const reading = { now: 1e12, catalog: 's', firsts: [], allWaitsEnded: true, deadVersions: 1e6, pages: [] };
  floors.note(floors.next(), { ...reading, now: reading.now + 60 * MINUTE });
  expect(floors.next().of('urgent', false)).toBeGreaterThan(reading.now);
  floors.note(floors.next(), reading);
  expect(floors.next().of('urgent', false)).toBeNull();
});

test('a vacuumed ledger is always read from its beginning, and any other at least once a minute', () => {
  expect(fullPassEveryMs(1000)).toBe(0);
  expect(fullPassEveryMs(20_000)).toBe(2000);
  expect(fullPassEveryMs(5_000_000)).toBe(MINUTE);
});

test('each class has a separate floor', async () => {
  const { floors } = process();
  for (const [i] of DUE_LANES.entries())
    await put({ lane: i + 1, live: i % 2 === 0, due: -1000 * (i + 1), held: null });
  await read(floors);
  const rows = await store.sql<{ due: number }[]>`
    select (extract(epoch from due_at) * 1000)::float8 as due from catalog_internal.due order by lane`;
  expect(DUE_LANES.map((lane, i) => floors.floors.of(lane, i % 2 === 0))).toEqual(rows.map(({ due }) => due));
});
