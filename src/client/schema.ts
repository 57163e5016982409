/** The tables and views of schema `catalog` as Drizzle objects: what the role catalog_reader may read. */

export {
  dailyPrices,
  prices,
  priceHistory,
  productHistory,
  products,
  scope,
  skus,
  watchlist,
} from '../store/schema/catalog.ts';
export {
  calibration,
  currentPrices,
  deltaAudit,
  hintSources,
  promises,
  skuTrust,
  syncStatus,
} from '../store/schema/views.ts';
