import { sql } from 'drizzle-orm';
import { bigint, boolean, check, date, index, integer, primaryKey } from 'drizzle-orm/pg-core';
import { catalog, key } from './schema.ts';
import { internal } from './schema-internal.ts';

/** One row for each size and day on which its price changed; store/daily.ts makes them from price_history. */
export const dailyPrices = catalog.table(
  'daily_prices',
  {
    sku: key().notNull(),
    size: key().notNull(),
    day: date().notNull(),
    open: integer(),
    low: integer(),
    median: integer(),
    close: integer(),
    changes: integer().notNull(),
    sizeTypeChanged: boolean('size_type_changed').notNull(),
    /** Position of the first change that counts to the day: from there on the row can be made again. */
    firstPosition: bigint('first_position', { mode: 'bigint' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.sku, t.size, t.day] }), index('daily_prices_day').on(t.day)],
);

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
