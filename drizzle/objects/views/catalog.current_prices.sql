-- `sku` comes from the SKU's row (through sku_trust), not from the prices: with many SKUs, `sku = any(…)` finds these
-- rows first, by their key, and then the rest. A condition on the SKU of the prices would reach none of the other
-- tables, which would be read from end to end.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT t.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       t.price_source, t.priced_at, p.changed_at, t.stale,
       t.size_actionable AND p.price IS NOT NULL AS actionable,
       t.size_p_right AS p_right,
       t.doubt
FROM catalog.sku_trust t
JOIN catalog.prices p ON p.sku = t.sku
LEFT JOIN catalog.products pr ON pr.sku = t.sku;

COMMENT ON VIEW catalog.current_prices IS 'Prices with what they mean and how far to trust them. Prices to act on: WHERE actionable.';
COMMENT ON COLUMN catalog.current_prices.sku IS 'SKU in catalog.skus. sku = any(...) finds many at once by their key.';
COMMENT ON COLUMN catalog.current_prices.size IS 'Size key as the partner names it; size_type says what it means.';
COMMENT ON COLUMN catalog.current_prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
COMMENT ON COLUMN catalog.current_prices.size_type IS 'What the size means (size_map.size_type).';
COMMENT ON COLUMN catalog.current_prices.name IS 'product.name.';
COMMENT ON COLUMN catalog.current_prices.brand IS 'product.brand.';
COMMENT ON COLUMN catalog.current_prices.model IS 'product.model.';
COMMENT ON COLUMN catalog.current_prices.gender_size IS 'product.gender_size.';
COMMENT ON COLUMN catalog.current_prices.category IS 'product.category.';
COMMENT ON COLUMN catalog.current_prices.price_source IS 'snapshot: the delta reports its price moves while a manifest lists it; live: the mirror refreshes by itself; null: unknown.';
COMMENT ON COLUMN catalog.current_prices.priced_at IS 'When the partner last answered for this SKU: the price was right then.';
COMMENT ON COLUMN catalog.current_prices.changed_at IS 'When the mirror saw the price change (or the size appear).';
COMMENT ON COLUMN catalog.current_prices.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that no manifest lists, is older than LIVE_INTERVAL.';
COMMENT ON COLUMN catalog.current_prices.actionable IS 'True where the price may be acted on: there is one, catalog.sku_trust has no doubt of its SKU, and p_right is ACTIONABLE_CONFIDENCE at least.';
COMMENT ON COLUMN catalog.current_prices.p_right IS 'Probability that the partner, asked now, would answer this price; catalog.calibration says how well that has held. It knows nothing of doubt: a bound of your own is doubt IS NULL AND price IS NOT NULL AND p_right >= 0.8';
COMMENT ON COLUMN catalog.current_prices.doubt IS 'The first reason not to act on the prices of the SKU, as in catalog.sku_trust; null: none.';
