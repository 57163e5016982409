import { afterAll, beforeAll, expect, test } from 'vitest';
import { readCallInputs } from '../../src/store/call/bulk-call.ts';
import { storeLesson } from '../../src/store/call/call-lesson.ts';
import { connect, constant, type Sql } from '../../src/store/connection/db.ts';
import { claimDue, type WantedSkus } from '../../src/store/ledger/claim.ts';
import { DueFloors, magnitudesOf, NO_FLOORS } from '../../src/store/ledger/due-floors.ts';
import { NOT_EARLY, useStore } from './support.ts';

/*
 * Planning the query for the inputs of a call takes Postgres several times as long as executing it. So it must
 * keep a plan, but not the one that suited the empty mirror.
 */

const store = useStore();
const OPTIONS = {
  limit: 100,
  early: { usual: { ...NOT_EARLY, sweep: 600 }, stale: NOT_EARLY },
  candidates: { perBudget: 12, configuredBudget: 5, least: 16, most: 300, restMinutes: 1 },
};

const NEW = { lane: 'new', live: false, count: 1, earlySeconds: 0 } as const;

const NOTHING = { call: null, budget: null, ceiling: null, ceilingStep: 0, trial: false, incident: null };

/** One connection: prepared statements belong to it. */
let sql: Sql;
beforeAll(async () => {
  sql = connect(store.url, { max: 1 });
  // As on a user's server; the test server plans each statement once.
  await sql`set plan_cache_mode = auto`;
});
afterAll(() => sql.end({ timeout: 2 }));

/** Returns how often each text of a statement was planned with its values, and without. */
const plans = (beginning = 'with given as materialized') =>
  sql<{ custom: number; generic: number }[]>`
    select custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements
    where ltrim(statement, chr(10) || chr(32)) like ${`${beginning}%`} order by prepare_time`;

test('a query on a ledger that has grown is planned anew, even if nobody has analyzed it', async () => {
  const floors = new DueFloors({ monotonic: () => 0 });
  const readAgain = async () => {
    for (let n = 0; n < 2; n += 1) await readCallInputs(sql, OPTIONS, floors);
    return (await plans()).length;
  };
  const before = await readAgain();
  await store.sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation)
    select 'more ' || n, 6, 'sweep', false, now(), 1 from generate_series(1, 20000) n`;
  expect(await readAgain()).toBe(before + 1);
  expect(await readAgain()).toBe(before + 1);
});

async function fill(): Promise<void> {
  await store.sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, promised_by, promised_at)
    select 'S' || n, 1 + n % 6, 'sweep', n % 3 = 0, now() - make_interval(secs => n), 1,
      case when n % 7 = 0 then now() end, case when n % 7 = 0 then now() end
    from generate_series(1, 100000) n`;
  await store.sql`analyze catalog_internal.due`;
}

test('a plan is kept after five readings, whatever is due and wherever reading begins', async () => {
  await fill();
  // Each reading passes on where the next one begins.
  const floors = new DueFloors({ monotonic: () => 0 }, () => Infinity);
  for (let n = 0; n < 12; n += 1) {
    const { due } = await readCallInputs(sql, OPTIONS, floors);
    expect(due.length).toBeGreaterThan(5);
  }
  const kept = await plans();
  expect(kept.length).toBeLessThanOrEqual(4);
  expect(kept.at(-1)).toMatchObject({ custom: 5 });
  expect(kept.at(-1)?.generic).toBeGreaterThan(0);
});

test('a plan is kept after five claims, whatever they claim and wherever reading begins', async () => {
  await fill();
  const floors = new DueFloors({ monotonic: () => 0 }, () => Infinity);
  await readCallInputs(sql, OPTIONS, floors);
  const wanted: WantedSkus[] = [
    { quotas: [{ lane: 'sweep', live: false, count: 40, earlySeconds: 600 }], named: ['S3', 'S6'] },
    { quotas: [{ lane: 'urgent', live: true, count: 3, earlySeconds: 0 }] },
    { suspects: [{ largestCall: 1, live: true, count: 1 }], quotas: [{ ...NEW, count: 1 }] },
    { lone: { earlySeconds: 60 } },
  ];
  for (let n = 0; n < 12; n += 1) {
    const spend = n % 3 === 0 ? { skuMs: 10, mostMs: 100 } : null;
    const claim = await claimDue(sql, wanted[n % wanted.length] ?? {}, 60_000, spend, floors.floors);
    expect(claim?.skus.length).toBeGreaterThan(0);
  }
  expect(await plans('with mirror as materialized')).toEqual([{ custom: 5, generic: 7 }]);
});

test('a plan is kept after five lessons, whatever they teach', async () => {
  const call = { computed: 3, deferred: 1, snapshotAsked: 90, snapshotDeferred: 1 };
  const lessons = [NOTHING, { ...NOTHING, call }, { ...NOTHING, budget: 4.5 }, { ...NOTHING, trial: true }];
  for (let n = 0; n < 12; n += 1)
    await storeLesson(sql, lessons[n % lessons.length] ?? NOTHING, {
      failures: 0,
      callSize: null,
      cleared: n % 5 === 0 ? 3 : null,
    });
  expect(await plans('with free as materialized')).toEqual([{ custom: 5, generic: 7 }]);
});

test('claims and lessons for a ledger of another size have another statement text', async () => {
  const count = async () => (await plans('with mirror as')).length + (await plans('with free as')).length;
  const before = await count();
  const magnitudes = [1, 2];
  await claimDue(sql, { quotas: [NEW] }, 60_000, null, { ...NO_FLOORS, magnitudes });
  expect(await count()).toBe(before + 1);
  await storeLesson(sql, NOTHING, { failures: 0, callSize: null, cleared: null, magnitudes });
  expect(await count()).toBe(before + 2);
});

test('the size of the ledger is still known after the floors were reset', async () => {
  const floors = new DueFloors({ monotonic: () => 0 });
  await readCallInputs(sql, OPTIONS, floors);
  const { magnitudes } = floors.floors;
  expect(magnitudes).toHaveLength(2);
  floors.reset();
  expect(floors.floors.magnitudes).toEqual(magnitudes);
});

test('ledger sizes are grouped by powers of four', () => {
  expect(magnitudesOf([0, 1, 3, 4, 15, 16, 1023, 1024])).toEqual([0, 1, 1, 2, 2, 3, 5, 6]);
});

test('a constant in a statement must be a finite number', () => {
  expect(() => constant(sql, 1, Number.NaN)).toThrow(RangeError);
  expect(() => constant(sql, Infinity)).toThrow(RangeError);
});
