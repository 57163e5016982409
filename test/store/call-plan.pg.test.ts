import { afterAll, beforeAll, expect, test } from 'vitest';
import { readCallInputs } from '../../src/store/call/bulk-call.ts';
import { connect, constant, type Sql } from '../../src/store/connection/db.ts';
import { DueFloors, magnitudesOf } from '../../src/store/ledger/due-floors.ts';
import { NOT_EARLY, useStore } from './support.ts';

/*
 * To plan what a call is planned from takes Postgres several times as long as to execute it, so it is to keep a plan;
 * and not the one that was good for the empty mirror.
 */

const store = useStore();
const OPTIONS = {
  limit: 100,
  early: { usual: { ...NOT_EARLY, sweep: 600 }, stale: NOT_EARLY },
  candidates: { perBudget: 12, configuredBudget: 5, least: 16, most: 300, restMinutes: 1 },
};

/** Prepared statements are a connection's own. */
let sql: Sql;
beforeAll(async () => {
  sql = connect(store.url, { max: 1 });
  // As on a user's server; the one of the tests plans each statement once.
  await sql`set plan_cache_mode = auto`;
});
afterAll(() => sql.end({ timeout: 2 }));

/** How often each text of the statement was planned with its values, and without. */
const plans = () =>
  sql<{ custom: number; generic: number }[]>`
    select custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements
    where statement like '%given as materialized%' and statement not like '%pg_prepared_statements%' order by prepare_time`;

test('a ledger that has grown is planned anew, also where nobody has analyzed it', async () => {
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

test('a plan is kept after five readings, whatever is due and from wherever it is read', async () => {
  await store.sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at, generation, promised_by, promised_at)
    select 'S' || n, 1 + n % 6, 'sweep', n % 3 = 0, now() - make_interval(secs => n), 1,
      case when n % 7 = 0 then now() end, case when n % 7 = 0 then now() end
    from generate_series(1, 100000) n`;
  await store.sql`analyze catalog_internal.due`;
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

test('sizes are told apart by powers of four', () => {
  expect(magnitudesOf([0, 1, 3, 4, 15, 16, 1023, 1024])).toEqual([0, 1, 1, 2, 2, 3, 5, 6]);
});

test('a constant of a statement is a number', () => {
  expect(() => constant(sql, 1, Number.NaN)).toThrow(RangeError);
  expect(() => constant(sql, Infinity)).toThrow(RangeError);
});
