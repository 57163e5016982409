import { expect, test } from 'vitest';
import { transaction } from '../../src/store/connection/db.ts';
import { useStore } from './support.ts';

const store = useStore();

const BATCHES = 50_000;
/** The changes in a batch. */
const WIDE = 3;

/** Writes batches as loads of a catalog do; their positions are their ids. */
async function batches(): Promise<void> {
  await store.sql`
    insert into catalog_internal.change_batches (id, last_id, kind, skus, sizes, prices, observed_at)
    select n * ${WIDE} - 2, n * ${WIDE}, 'price', array['A', 'B', 'C'], array['9', '9', '9'], array[1, 2, 3], now() from generate_series(1, ${BATCHES}::int) n`;
  await store.sql`select setval('catalog_internal.change_positions', ${BATCHES * WIDE})`;
  await store.sql`analyze catalog_internal.change_batches`;
}

test.each(['force_generic_plan', 'force_custom_plan'])(
  'reading on costs only what is read, however many batches are before and behind it: %s',
  async (mode) => {
    await batches();
    const middle = (BATCHES * WIDE) / 2;
    await transaction(store.sql, async (tx) => {
      await tx`select set_config('plan_cache_mode', ${mode}, true)`;
      const read = async () => {
        const [{ rows }] = await tx<[{ rows: number }]>`
          select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows
          from pg_stat_xact_user_tables where relid = 'catalog_internal.change_batches'::regclass`;
        return rows;
      };
      for (const [after, most] of [
        [middle, 10],
        [middle + 1, 1],
        [3, 10],
        [BATCHES * WIDE - 9, 10],
      ] as const) {
        const before = await read();
        const changes = await tx<{ position: string }[]>`
          select "position" from catalog.changes(${after}, ${most})`;
        expect(changes.map(({ position }) => Number(position))).toEqual(
          Array.from({ length: Math.min(most, BATCHES * WIDE - after) }, (_, n) => after + n + 1),
        );
        expect((await read()) - before).toBeLessThan(100);
      }
    });
  },
);
