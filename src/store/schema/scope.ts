import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, primaryKey, text } from 'drizzle-orm/pg-core';
import { key } from './catalog.ts';
import { internal } from './internal.ts';

/*
 * What is in scope (store/sellers/scope.ts): the mirror's own copy of the sellers' rules, and what is still to be
 * sorted by them.
 */

/**
 * What sellers have done to catalog.scope and the mirror has not read yet. Null: everything was taken away (TRUNCATE).
 */
export const scopeChanges = internal.table('scope_changes', {
  id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
  kinds: text().array(),
  names: text().array(),
});

/**
 * The mirror's own copy of catalog.scope, which its sellers may lock; `name` as catalog_internal.scope_name makes it
 * of the value.
 */
export const scopeRules = internal.table(
  'scope_rules',
  {
    kind: key().notNull(),
    name: key().notNull(),
    include: boolean().notNull(),
  },
  (t) => [primaryKey({ columns: [t.kind, t.name] })],
);

/** One row, locked by whoever reads the rules or sorts SKUs by them. */
export const scoping = internal.table(
  'scoping',
  {
    id: boolean().primaryKey().default(true),
    /** MIRROR_SCOPE of the daemon that started last: whether the rules count. */
    scoped: boolean().notNull().default(false),
    /** Lengths of the prefixes that are named by rules. */
    prefixLengths: integer('prefix_lengths')
      .array()
      .notNull()
      .default(sql`'{}'`),
    /** Whether a rule includes SKUs by their metadata. */
    byMetadata: boolean('by_metadata').notNull().default(false),
  },
  (t) => [check('scoping_one_row', sql`${t.id}`)],
);

/** SKUs of which a rule has changed, and that are still to be sorted. */
export const scopePending = internal.table('scope_pending', { sku: key().primaryKey() });

/** SKUs with a prefix, from one on, that are still to be sorted. */
export const scopePasses = internal.table(
  'scope_passes',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    prefix: key().notNull(),
    fromSku: key('from_sku').notNull(),
  },
  (t) => [index('scope_passes_prefix').on(t.prefix)],
);

/**
 * Locked by everyone who sorts SKUs (ROW EXCLUSIVE) until the commit, and by whoever changes what they are sorted by
 * (EXCLUSIVE).
 */
export const lockScope = internal.table('lock_scope', {});
