CREATE INDEX "price_history_observed_at" ON "catalog"."price_history" USING brin ("observed_at");--> statement-breakpoint

-- As before (0008), and `sku` is that of the SKU's row: where many are named, `sku = any(…)` finds these first, by their key, and
-- then the rest; a condition on the SKU of the prices reached none of the other tables, which were read from end to end.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT s.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       s.price_source, s.priced_at, p.changed_at,
       coalesce(d.due_at <= now() AND d.reason <> 'metadata', false)
         OR ((s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false))
             AND s.priced_at < now() - make_interval(secs => (SELECT live_interval FROM catalog_internal.settings))) AS stale
FROM catalog.skus s
JOIN catalog.prices p ON p.sku = s.sku
LEFT JOIN catalog.products pr ON pr.sku = s.sku
LEFT JOIN catalog_internal.due d ON d.sku = s.sku;
