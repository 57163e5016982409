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
 * The tables, as drizzle-kit generates migrations from them. Comments, roles and storage settings are written by hand
 * in the migrations (drizzle/*.sql); so are views and functions, whose present form is in drizzle/objects. What each
 * column means to a seller is said once, in COMMENT ON. Here is the schema that sellers read, catalog; package and
 * tests rely on nothing else of it being exported. Its views are in views.ts.
 */

export const catalog = pgSchema('catalog');

export const instant = (name: string) => timestamp(name, { withTimezone: true });

/**
 * Names by the partner, in keys: compared byte by byte. By the database's own collation they would be sorted by the
 * operating system's rules, and an upgrade of that moves these under indexes that are sorted already.
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
     * The hash before the SKU turned live, while no refresh has found a move since: back with this hash, nothing moved.
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
  // Neither column moves with a refresh, so refreshes stay in their pages (HOT). Only their beginnings: an index
  // takes no long texts.
  (t) => [
    index('products_brand_model').on(
      sql`left(${t.brand}, 200) COLLATE "C"`,
      sql`left(${t.model}, 200) COLLATE "C"`,
    ),
  ],
);

/**
 * Both histories, and change_batches, draw their ids from one sequence, in the order of their commits. Positions of
 * catalog.changes are these, further by position_shifts.
 */
const position = () =>
  bigint('id', { mode: 'bigint' })
    .primaryKey()
    .default(sql`nextval('catalog_internal.change_positions')`);

/** Partitioned by id, which drizzle-kit does not know of: see drizzle/0000_baseline.sql. */
export const priceHistory = catalog.table(
  'price_history',
  {
    id: position(),
    sku: key().notNull(),
    size: key().notNull(),
    oldPrice: integer('old_price'),
    newPrice: integer('new_price'),
    observedAt: instant('observed_at').notNull(),
    /** The answer corrected what the size keys mean: no move of the market. */
    sizeTypeChanged: boolean('size_type_changed').notNull().default(false),
  },
  // BRIN: rows are written in order of time, so some pages of it tell the moves of an hour from those of months.
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
    /** A promise: it is asked again before its price is older. Null: as all others. */
    maxAge: interval('max_age'),
  },
  (t) => [
    /** Its name is what a seller is told: shorter than a call and its answer take, nothing can be promised. */
    check(
      'max_age_is_30_seconds_to_365_days',
      sql`${t.maxAge} >= interval '30 seconds' and ${t.maxAge} <= interval '365 days'`,
    ),
    /** NaN is greater than all numbers; and neither can be planned with. */
    check('watchlist_weight', sql`${t.weight} > 0 and ${t.weight} < 'Infinity'`),
    /** What no answer could name is no SKU (partner/text.ts, isReadableSku). Its name is what a seller is told, too. */
    check('sku_has_1_to_512_characters', sql`length(${t.sku}) between 1 and 512`),
  ],
);

export type ScopeKind = 'sku' | 'prefix' | 'brand' | 'model' | 'category';

/** The sellers' rules of what is priced (store/sellers/scope.ts). */
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
    /** Nothing else can be the name of a SKU, or of a brand: nobody means it. An empty prefix is that of all SKUs. */
    check(
      'scope_value',
      sql`length(${t.value}) <= 512 and (${t.kind} = 'prefix' or btrim(${t.value}, E' \\t\\r\\n') <> '')`,
    ),
    /** One rule for each name, however it is written: they cannot contradict each other. */
    uniqueIndex('scope_name')
      .on(t.kind, sql`lower(btrim(${t.value}, E' \\t\\r\\n'))`)
      .where(sql`${t.kind} in ('brand', 'model', 'category')`),
  ],
);

/** One row for each size and day on which its price changed; store/history/daily.ts makes them from price_history. */
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
    firstChangeAt: instant('first_change_at'),
    /**
     * Generated, so that it is right also where a daemon of a version that knows no `first_change_at` counts further
     * changes to the day.
     */
    onlyChangeAt: instant('only_change_at').generatedAlwaysAs(
      sql`CASE WHEN changes = 1 AND NOT size_type_changed THEN first_change_at END`,
    ),
  },
  // The key's index has what catalog.price_at reads, too (open, first_position, only_change_at):
  // drizzle/0040_days_of_one_change.sql.
  (t) => [primaryKey({ columns: [t.sku, t.size, t.day] }), index('daily_prices_day').on(t.day)],
);
