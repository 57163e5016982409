import { afterAll, beforeAll, expect, test } from 'vitest';
import { noteClock, putClockRight } from '../../src/store/clock.ts';
import { keepDailyPrices } from '../../src/store/daily.ts';
import { connect, type Sql } from '../../src/store/db.ts';
import { migrateDatabase } from '../../src/store/migrations.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { makeClockMovable, setClockAhead } from '../support/movable-clock.ts';
import { answerAsked, found, knownSkus } from './support.ts';

const DAY = 86_400;
let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createDatabase('empty');
  await makeClockMovable(database.url);
  await migrateDatabase(database.url);
  sql = connect(database.url, { max: 4 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});

test('a clock that was ahead leaves no daily price of a day to come, also of what was written after it', async () => {
  await sql`update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp()`;
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A', { 9: 100 }));
  await setClockAhead(sql, 8 * DAY);
  await noteClock(sql, { steady: false });
  await answerAsked(sql, found('A', { 9: 200 }));
  await keepDailyPrices(sql, 10);
  await noteClock(sql, { steady: true });
  await setClockAhead(sql, 0);
  await answerAsked(sql, found('A', { 9: 150 }));
  await keepDailyPrices(sql, 10);
  const toCome = () =>
    sql`select from catalog.daily_prices where day > (clock_timestamp() at time zone 'UTC')::date`;
  expect(await toCome()).toHaveLength(1);
  expect(await putClockRight(sql)).not.toBeNull();
  expect(await toCome()).toHaveLength(0);
  await keepDailyPrices(sql, 10);
  expect(await toCome()).toHaveLength(0);
  const [days] = await sql`
    select sum(changes)::int as changes, (array_agg(close order by day desc))[1] as close from catalog.daily_prices`;
  expect(days).toEqual({ changes: 2, close: 150 });
});
