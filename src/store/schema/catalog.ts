import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  date,
  index,
  integer,
  interval,
  jsonb,
  pgSchema,
  primaryKey,
  real,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { eachColumn } from '../../declared/metadata.ts';

/*
 * The tables from which drizzle-kit generates migrations. Comments, roles and storage settings are written by hand
 * in the migrations (drizzle/*.sql); so are views and functions, whose present form is in drizzle/objects. COMMENT
 * ON explains each column to sellers, and is the only place that does. This file contains the schema that sellers
 * read, catalog; package and tests rely on nothing else being exported here. Its views are in views.ts.
 */

export const catalog = pgSchema('catalog');

export const instant = (name: string) => timestamp(name, { withTimezone: true });

/**
 * Keys that contain the partner's names, compared byte by byte. The database's own collation would sort them by the
 * operating system's rules, and an upgrade could change these under indexes that are already sorted.
 */
export const key = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });

export const SKU_STATES = ['pending', 'priced', 'not_found', 'removed'] as const;
export const PRICE_SOURCES = ['snapshot', 'live'] as const;

export const skus = catalog.table(
  'skus',
  {
    sku: key().primaryKey(),
    state: text({ enum: SKU_STATES }).notNull().default('pending'),
    priceSource: text('price_source', { enum: PRICE_SOURCES }),
    hash: text(),
    sizes: integer(),
    inManifest: boolean('in_manifest').notNull(),
    updatedAt: instant('updated_at'),
    firstSeenAt: instant('first_seen_at').notNull().defaultNow(),
    pricedAt: instant('priced_at'),
    removedAt: instant('removed_at'),
    /** When the request behind the newest applied answer was sent. */
    askedAt: instant('asked_at'),
    /** When the partner first answered with a record: no history before that. */
    firstPricedAt: instant('first_priced_at'),
    /** When a delta last reported the SKU: a manifest asked for before that does not overrule the delta. */
    reportedAt: instant('reported_at'),
    /**
     * The hash before the SKU turned live, while no refresh has found a move since: if it comes back with this hash,
     * nothing moved.
     */
    hashBeforeLive: text('hash_before_live'),
  },
  (t) => [
    check('skus_state', sql`${t.state} in ('pending', 'priced', 'not_found', 'removed')`),
    check('skus_price_source', sql`${t.priceSource} in ('snapshot', 'live')`),
  ],
);

export const prices = catalog.table(
  'prices',
  {
    sku: key().notNull(),
    size: key().notNull(),
    price: integer(),
    entry: jsonb(),
    changedAt: instant('changed_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sku, t.size] })],
);

export const products = catalog.table(
  'products',
  {
    sku: key().primaryKey(),
    ...eachColumn(() => text()),
    product: jsonb().notNull(),
    refreshedAt: instant('refreshed_at').notNull(),
    changedAt: instant('changed_at').notNull(),
  },
  // A refresh changes neither column, so refreshes stay within their pages (HOT). Only prefixes are indexed, because
  // an index rejects long texts.
  (t) => [
    index('products_brand_model').on(
      sql`left(${t.brand}, 200) COLLATE "C"`,
      sql`left(${t.model}, 200) COLLATE "C"`,
    ),
  ],
);

/**
 * Both histories and change_batches draw their ids from one sequence, in order of commits. Positions of
 * catalog.changes are these ids, moved on by position_shifts.
 */
const position = () =>
  bigint('id', { mode: 'bigint' })
    .primaryKey()
    .default(sql`nextval('catalog_internal.change_positions')`);

/** Partitioned by id, which drizzle-kit does not support: see drizzle/0000_baseline.sql. */
export const priceHistory = catalog.table(
  'price_history',
  {
    id: position(),
    sku: key().notNull(),
    size: key().notNull(),
    oldPrice: integer('old_price'),
    newPrice: integer('new_price'),
    observedAt: instant('observed_at').notNull(),
    /** The answer corrected what the size keys mean, so this is no move of the market. */
    sizeTypeChanged: boolean('size_type_changed').notNull().default(false),
  },
  // BRIN: rows are written in order of time, so a few pages of it separate the moves of an hour from those of
  // months.
  (t) => [
    index('price_history_sku').on(t.sku, t.id),
    index('price_history_observed_at').using('brin', t.observedAt),
  ],
);

export const productHistory = catalog.table(
  'product_history',
  {
    id: position(),
    sku: key().notNull(),
    field: text().notNull(),
    oldValue: text('old_value'),
    newValue: text('new_value'),
    observedAt: instant('observed_at').notNull(),
  },
  (t) => [index('product_history_sku').on(t.sku, t.id)],
);

export const watchlist = catalog.table(
  'watchlist',
  {
    sku: key().primaryKey(),
    weight: real().notNull().default(1),
    note: text(),
    /** A promise: the SKU is asked for again before its price gets older. Null: no promise. */
    maxAge: interval('max_age'),
  },
  (t) => [
    /** Sellers read the constraint's name. Nothing shorter than a call and its answer can be promised. */
    check(
      'max_age_is_30_seconds_to_365_days',
      sql`${t.maxAge} >= interval '30 seconds' and ${t.maxAge} <= interval '365 days'`,
    ),
    /** Excludes NaN, too, which is greater than all numbers: neither can be planned with. */
    check('watchlist_weight', sql`${t.weight} > 0 and ${t.weight} < 'Infinity'`),
    /** No answer could name any other SKU (partner/text.ts, isReadableSku). Sellers read this name, too. */
    check('sku_has_1_to_512_characters', sql`length(${t.sku}) between 1 and 512`),
  ],
);

export type ScopeKind = 'sku' | 'prefix' | 'brand' | 'model' | 'category';

/** The sellers' rules for what is priced (store/sellers/scope.ts). */
export const scope = catalog.table(
  'scope',
  {
    kind: key().$type<ScopeKind>().notNull(),
    value: key().notNull(),
    include: boolean().notNull().default(true),
    note: text(),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.value] }),
    check('scope_kind', sql`${t.kind} in ('sku', 'prefix', 'brand', 'model', 'category')`),
    /** Other values cannot name a SKU or a brand, so nobody means them. An empty prefix matches all SKUs. */
    check(
      'scope_value',
      sql`length(${t.value}) <= 512 and (${t.kind} = 'prefix' or btrim(${t.value}, E' \\t\\r\\n') <> '')`,
    ),
    /** One rule for each name, however it is written, so that rules cannot contradict each other. */
    uniqueIndex('scope_name')
      .on(t.kind, sql`lower(btrim(${t.value}, E' \\t\\r\\n'))`)
      .where(sql`${t.kind} in ('brand', 'model', 'category')`),
  ],
);

/** One row for each size and day on which its price changed, computed from price_history by store/history/daily.ts. */
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
    /** Position of the first change that counts to the day, from which the row can be computed again. */
    firstPosition: bigint('first_position', { mode: 'bigint' }).notNull(),
    firstChangeAt: instant('first_change_at'),
    /**
     * Generated, so that it is right even if a daemon of a version without `first_change_at` adds changes to the
     * day.
     */
    onlyChangeAt: instant('only_change_at').generatedAlwaysAs(
      sql`CASE WHEN changes = 1 AND NOT size_type_changed THEN first_change_at END`,
    ),
  },
  // The key's index also contains what catalog.price_at reads (open, first_position, only_change_at):
  // drizzle/0040_days_of_one_change.sql.
  (t) => [primaryKey({ columns: [t.sku, t.size, t.day] }), index('daily_prices_day').on(t.day)],
);
