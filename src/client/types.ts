import type { Column } from 'drizzle-orm';
import type { asJson, asPageJson } from '../status/json.ts';
import type {
  dailyPrices,
  prices,
  priceHistory,
  productHistory,
  products,
  scope,
  skus,
  watchlist,
} from '../store/schema/catalog.ts';
import type {
  calibration,
  currentPrices,
  deltaAudit,
  hintSources,
  promises,
  skuTrust,
  syncStatus,
} from '../store/schema/views.ts';

/*
 * Types alone: what a query or a request returns. Rows have the names of SQL, and values as `postgres` and `pg`
 * return them: bigint as text, timestamptz and date as Date. (An interval is text to `postgres`, and an object to
 * `pg`; a date is midnight of UTC to `postgres`, and of the process's time zone to `pg`.)
 */

/**
 * What drivers return for a column: bigint as text, as it may be beyond 2^53, a date as Date, and everything else as
 * Drizzle does.
 */
type Value<C extends Column> = C['_']['columnType'] extends 'PgBigInt64' | 'PgBigInt53'
  ? string
  : C['_']['columnType'] extends 'PgDateString'
    ? Date
    : C['_']['data'];

/** A row of a table or view by the names of its columns in SQL, as `postgres` returns it. */
type Row<Table> = {
  readonly [
    K in keyof Table as Table[K] extends Column ? Table[K]['_']['name'] : never
  ]: Table[K] extends Column
    ? Value<Table[K]> | (Table[K]['_']['notNull'] extends true ? never : null)
    : never;
};

export type SkuRow = Row<typeof skus>;
export type PriceRow = Row<typeof prices>;
export type ProductRow = Row<typeof products>;
export type PriceHistoryRow = Row<typeof priceHistory>;
export type ProductHistoryRow = Row<typeof productHistory>;
export type DailyPriceRow = Row<typeof dailyPrices>;
export type WatchlistRow = Row<typeof watchlist>;
export type ScopeRow = Row<typeof scope>;

export type CurrentPriceRow = Row<typeof currentPrices>;
export type SkuTrustRow = Row<typeof skuTrust>;
export type SyncStatusRow = Row<typeof syncStatus>;
export type DeltaAuditRow = Row<typeof deltaAudit>;
export type CalibrationRow = Row<typeof calibration>;
export type HintSourceRow = Row<typeof hintSources>;
export type PromiseRow = Row<typeof promises>;

export type { Change, PriceChange, ProductChange, SkuChange } from './change.ts';

/** What JSON makes of a value. */
type Json<T> = T extends Date
  ? string
  : T extends readonly (infer Element)[]
    ? readonly Json<Element>[]
    : T extends object
      ? { readonly [K in keyof T]: Json<T[K]> }
      : T;

/**
 * What `catalog-mirror status --json` prints where it can read the mirror. Without Postgres it has only `state`,
 * `reasons` and `at`.
 */
export type StatusJson = Json<ReturnType<typeof asJson>>;

/**
 * What `GET /status.json` answers. While Postgres does not answer it has only `state`, `reasons`, `at`, `problems`
 * and `mirror`.
 */
export type StatusPageJson = Json<ReturnType<typeof asPageJson>>;
