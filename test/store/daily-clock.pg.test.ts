import { expect, test } from 'vitest';
import { noteClock, putClockRight } from '../../src/store/clock.ts';
import { keepDailyPrices } from '../../src/store/history/daily.ts';
import { setClockAhead } from '../support/movable-clock.ts';
import { answerAsked, found, knownSkus, useStore } from './support.ts';

const DAY = 86_400;
const store = useStore({ movableClock: true });

test('a clock that was ahead leaves no daily price in the future, not even of what was written after it', async () => {
  await store.sql`update catalog_internal.clock set high_water = clock_timestamp(), steady_since = clock_timestamp()`;
  await knownSkus(store.sql, ['A']);
  await answerAsked(store.sql, found('A', { 9: 100 }));
  await setClockAhead(store.sql, 8 * DAY);
  await noteClock(store.sql, { steady: false });
  await answerAsked(store.sql, found('A', { 9: 200 }));
  await keepDailyPrices(store.sql, 10);
  await noteClock(store.sql, { steady: true });
  await setClockAhead(store.sql, 0);
  await answerAsked(store.sql, found('A', { 9: 150 }));
  await keepDailyPrices(store.sql, 10);
  const toCome = () =>
    store.sql`select from catalog.daily_prices where day > (clock_timestamp() at time zone 'UTC')::date`;
  expect(await toCome()).toHaveLength(1);
  expect(await putClockRight(store.sql)).not.toBeNull();
  expect(await toCome()).toHaveLength(0);
  await keepDailyPrices(store.sql, 10);
  expect(await toCome()).toHaveLength(0);
  const [days] = await store.sql`
    select sum(changes)::int as changes, (array_agg(close order by day desc))[1] as close from catalog.daily_prices`;
  expect(days).toEqual({ changes: 2, close: 150 });
});
