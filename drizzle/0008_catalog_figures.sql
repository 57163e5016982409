CREATE TABLE "catalog_internal"."catalog_figures" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"counted_at" timestamp with time zone NOT NULL,
	"counted_in_ms" double precision NOT NULL,
	"figures" jsonb NOT NULL,
	CONSTRAINT "catalog_figures_one_row" CHECK ("catalog_internal"."catalog_figures"."id")
);
--> statement-breakpoint
CREATE INDEX "due_live_claims" ON "catalog_internal"."due" USING btree ("claim") WHERE claim is not null and live;
--> statement-breakpoint

-- As before (0005), and never null: a SKU of unknown price source is stale while a re-price is owed, as any other.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT p.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       s.price_source, s.priced_at, p.changed_at,
       coalesce(d.due_at <= now() AND d.reason <> 'metadata', false)
         OR ((s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false))
             AND s.priced_at < now() - make_interval(secs => (SELECT live_interval FROM catalog_internal.settings))) AS stale
FROM catalog.prices p
JOIN catalog.skus s USING (sku)
LEFT JOIN catalog.products pr USING (sku)
LEFT JOIN catalog_internal.due d USING (sku);
