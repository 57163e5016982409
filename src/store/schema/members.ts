import { sql } from 'drizzle-orm';
import { primaryKey } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/** Members of products and of prices' entries that move with each refresh, and have no history (answer/members.ts). */
export const mutedMembers = internal.table(
  'muted_members',
  {
    part: key().notNull(),
    path: key().notNull(),
    since: instant('since')
      .notNull()
      .default(sql`now()`),
  },
  (t) => [primaryKey({ columns: [t.part, t.path] })],
);
