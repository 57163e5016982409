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
 * Only types: what a query or a request returns. Rows have SQL's names, and values as `postgres` and `pg` return
 * them: bigint as text, timestamptz and date as Date. (An interval is text in `postgres`, and an object in `pg`; a
 * date is midnight UTC in `postgres`, and in the process's time zone in `pg`.)
 */

/** What drivers return for a column: bigint as text (it may exceed 2^53), date as Date, the rest as in Drizzle. */
type Value<C extends Column> = C['_']['columnType'] extends 'PgBigInt64' | 'PgBigInt53'
  ? string
  : C['_']['columnType'] extends 'PgDateString'
    ? Date
    : C['_']['data'];

/** A row of a table or view by its column names in SQL, as `postgres` returns it. */
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

/** A value after JSON serialisation. */
type Json<T> = T extends Date
  ? string
  : T extends readonly (infer Element)[]
    ? readonly Json<Element>[]
    : T extends object
      ? { readonly [K in keyof T]: Json<T[K]> }
      : T;

/** What `catalog-mirror status --json` prints. Without Postgres it contains only `state`, `reasons` and `at`. */
export type StatusJson = Json<ReturnType<typeof asJson>>;

/**
 * What `GET /status.json` answers. While Postgres does not answer, it contains only `state`, `reasons`, `at`,
 * `problems` and `mirror`.
 */
export type StatusPageJson = Json<ReturnType<typeof asPageJson>>;
