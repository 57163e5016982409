import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isOutage } from '../../src/store/live/limits.ts';
import { useStore } from './support.ts';

const store = useStore();

/**
 * Minutes ago: around the limits that count, before and after them, never, and as written by a clock that was
 * ahead.
 */
const ago = (around: number) =>
  fc.oneof(
    fc.constant(null),
    fc.integer({ min: -60, max: 60 }).map((seconds) => around + (seconds || 1) / 10),
    fc.double({ min: -90, max: 24 * 60, noNaN: true }),
  );

const drawn = fc.record({
  perMinute: fc.option(fc.double({ min: 1, max: 500, noNaN: true })),
  blocked: ago(30),
  outage: ago(60),
  credit: ago(60).map((minutes) => minutes ?? 0),
});

/** live_ahead repeats the condition of isOutage in the form in which a view reads it. */
test('(random states) live_ahead is null exactly in an outage, or if nothing was computed for half an hour', async () => {
  const { sql } = store;
  await sql`insert into catalog_internal.catalog_counts (counted_at, counted_in_ms, counts) values (clock_timestamp(), 1, '{"due": []}')`;
  const at = (minutes: number | null) =>
    sql`clock_timestamp() - make_interval(secs => ${minutes}::float8 * 60)`;
  await fc.assert(
    fc.asyncProperty(drawn, async ({ perMinute, blocked, outage, credit }) => {
      await sql`update catalog_internal.live_plan set outage_since = ${at(outage)}`;
      await sql`
        update catalog_internal.live_ceiling set per_minute = ${perMinute}::float8, blocked_at = ${at(blocked)}, credit_from = ${at(credit)}`;
      const [row] = await sql<[{ told: boolean; out: boolean; rate: number | null }]>`
        select catalog_internal.live_ahead() is not null as told, ${isOutage(sql)} as out, catalog_internal.live_rate() as rate
        from catalog_internal.live_plan`;
      const isStill = perMinute !== null && (blocked ?? 0) > 30;
      expect(row.told).toBe(!row.out && !isStill);
      expect(row.rate === null).toBe(perMinute === null);
      if (row.rate !== null) expect(row.rate).toBeGreaterThan(0);
    }),
    { numRuns: 100 },
  );
});
