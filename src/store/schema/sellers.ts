import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  integer,
  text,
  index,
  smallint,
  primaryKey,
} from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/** How often each promise of a price's age was kept: a ring of hours, the first of which is `hour`. */
export const promiseCases = internal.table('promise_cases', {
  sku: key().primaryKey(),
  hour: instant('hour').notNull(),
  cases: integer().array().notNull(),
  kept: integer().array().notNull(),
});

/** One row: what all promises together need, as last weighed, at most a minute ago. */
export const promising = internal.table(
  'promising',
  {
    id: boolean().primaryKey().default(true),
    promises: integer().notNull().default(0),
    feasible: integer().notNull().default(0),
    /** Requested promises for which there is no room. */
    leftOut: integer('left_out').notNull().default(0),
    /** Requests a minute. */
    needed: doublePrecision().notNull().default(0),
    available: doublePrecision().notNull().default(0),
    /** Of the last day. */
    cases: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    kept: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    /** When something last stopped all requests, and what it was. */
    hinderedAt: instant('hindered_at'),
    hinderedBy: text('hindered_by'),
  },
  (t) => [check('promising_one_row', sql`${t.id}`)],
);

/* What sellers request now, from SQL (catalog.refresh and catalog.refresh_now; store/sellers/refresh.ts). */

/**
 * SKUs that sellers have asked for, until the mirror has marked them. The SKU is no key, so that nobody waits for
 * another's request.
 */
export const refreshRequests = internal.table(
  'refresh_requests',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sku: key().notNull(),
  },
  (t) => [index('refresh_requests_sku').on(t.sku)],
);

/**
 * Places of callers that wait in catalog.refresh_now. A place is free if nobody has it, its session is gone, or its
 * time is over.
 */
export const refreshPlaces = internal.table('refresh_places', {
  place: smallint().primaryKey(),
  pid: integer(),
  until: instant('until'),
});

/** Locked while a refresh is paid for. */
export const lockRefreshes = internal.table('lock_refreshes', {});

/**
 * Until when refreshes from SQL are paid for, in epoch microseconds. A sequence, because everybody sees at once what
 * is paid, whatever becomes of the caller's transaction.
 */
export const refreshesPaid = internal.sequence('refreshes_paid', { minValue: 0, startWith: 1 });

/** How many SKUs were asked for from SQL, and how many calls were refused. */
export const refreshesAsked = internal.sequence('refreshes_asked', { minValue: 0, startWith: 1 });
export const refreshesRefused = internal.sequence('refreshes_refused', { minValue: 0, startWith: 1 });

/**
 * Hints as sellers gave them (catalog.hint), until the mirror has read them. SKU and source are no key, so that
 * nobody waits for another's hint.
 */
export const hints = internal.table(
  'hints',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sku: key().notNull(),
    source: key().notNull(),
    hintedAt: instant('hinted_at').notNull(),
  },
  (t) => [index('hints_sku').on(t.sku)],
);

/** Hints at live SKUs that have not been refreshed since: with a probability of 1 - exp(-hazard) each has moved. */
export const waitingHints = internal.table(
  'waiting_hints',
  {
    sku: key().notNull(),
    source: key().notNull(),
    hintedAt: instant('hinted_at').notNull(),
    hazard: doublePrecision().notNull(),
    /** How likely a move that its source tells of is undone before the next refresh. */
    undone: doublePrecision().notNull().default(0),
  },
  (t) => [primaryKey({ columns: [t.sku, t.source] }), index('waiting_hints_source').on(t.source)],
);

/** What is known about each source of hints (sync/live/hints.ts). */
export const hintSources = internal.table('hint_sources', {
  source: key().primaryKey(),
  /** Hints so far, and how many of them, at live SKUs, brought a refresh forward. */
  hints: bigint({ mode: 'bigint' })
    .notNull()
    .default(sql`0`),
  pulled: bigint({ mode: 'bigint' })
    .notNull()
    .default(sql`0`),
  tested: doublePrecision().notNull().default(0),
  expected: doublePrecision().notNull().default(0),
  unmoved: doublePrecision().notNull().default(0),
  moves: doublePrecision().notNull().default(0),
  /** Refreshes after those that found what it had told of; how many found that unchanged, and how many undone. */
  followed: doublePrecision().notNull().default(0),
  stayed: doublePrecision().notNull().default(0),
  undone: doublePrecision().notNull().default(0),
  lastHint: instant('last_hint').notNull(),
});

/*
 * What is in scope (store/sellers/scope.ts): the mirror's copy of the sellers' rules, and what is still to be sorted
 * by them.
 */

/** Sellers' changes to catalog.scope that the mirror has not read yet. Null: everything was removed (TRUNCATE). */
export const scopeChanges = internal.table('scope_changes', {
  id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
  kinds: text().array(),
  names: text().array(),
});

/**
 * The mirror's copy of catalog.scope, because sellers may lock the original. `name` is catalog_internal.scope_name
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
    /** Lengths of the prefixes in rules. */
    prefixLengths: integer('prefix_lengths')
      .array()
      .notNull()
      .default(sql`'{}'`),
    /** Whether a rule includes SKUs by their metadata. */
    byMetadata: boolean('by_metadata').notNull().default(false),
  },
  (t) => [check('scoping_one_row', sql`${t.id}`)],
);

/** SKUs whose rule has changed and that are still to be sorted. */
export const scopePending = internal.table('scope_pending', { sku: key().primaryKey() });

/** SKUs with a prefix, from `from_sku` on, that are still to be sorted. */
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
