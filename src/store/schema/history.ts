import { sql } from 'drizzle-orm';
import { bigint, boolean, check } from 'drizzle-orm/pg-core';
import { internal } from './internal.ts';

/** One row: changes up to this position are in daily_prices. */
export const daily = internal.table(
  'daily',
  {
    id: boolean().primaryKey().default(true),
    position: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
  },
  (t) => [check('daily_one_row', sql`${t.id}`)],
);
