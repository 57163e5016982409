import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
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

const position = (name: string) => bigint(name, { mode: 'bigint' });

/** Positions of `catalog-mirror follow`, by name, with who holds the name and the result of the last delivery. */
export const followers = internal.table(
  'followers',
  {
    name: key().primaryKey(),
    /** All changes up to this one are delivered, or are dead letters. */
    position: position('position').notNull(),
    /**
     * While the first copy is being sent: the SKU up to which it is delivered. Null if it is complete, or was not
     * asked for.
     */
    afterSku: key('after_sku'),
    /** The end of the batch being delivered. After a restart the batch is cut there again, and so has the same id. */
    sendingTo: position('sending_to'),
    delivery: text().notNull(),
    /** The process that holds the name, and its session. Counts only while the session is alive. */
    holder: position('holder'),
    pid: integer(),
    backendStart: instant('backend_start'),
    heldBy: text('held_by'),
    /** Consecutive failed deliveries, and how many of them were refused for good. */
    failures: integer().notNull().default(0),
    refusals: integer().notNull().default(0),
    failingSince: instant('failing_since'),
    /** When the first of these failures came that was due to a wrong clock, here or at the receiver. */
    clockFailingSince: instant('clock_failing_since'),
    /** HTTP status of the last delivery (null without an answer), and what the answer said or why there was none. */
    lastStatus: integer('last_status'),
    lastSaid: text('last_said'),
    lastAt: instant('last_at'),
    updatedAt: instant('updated_at').notNull().defaultNow(),
  },
  (t) => [check('followers_delivery', sql`${t.delivery} in ('stdout', 'webhook')`)],
);

/** Batches that a receiver refused for good, as they were sent: their changes may no longer be in the history. */
export const deadLetters = internal.table(
  'dead_letters',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    follower: key()
      .notNull()
      .references(() => followers.name, { onDelete: 'cascade' }),
    messageId: text('message_id').notNull(),
    positionFrom: position('position_from').notNull(),
    positionTo: position('position_to').notNull(),
    changes: integer().notNull(),
    attempts: integer().notNull(),
    lastStatus: integer('last_status'),
    lastSaid: text('last_said'),
    failingSince: instant('failing_since').notNull(),
    buriedAt: instant('buried_at').notNull().defaultNow(),
    body: text().notNull(),
  },
  (t) => [index('dead_letters_follower').on(t.follower, t.id)],
);
