-- The last prices of sizes, at most four each and the newest first, from each SKU's last thousand moves: a wrong one
-- may have come and gone between them. No row for a size that had none. STRICT: without sizes it is not called, so no
-- partition of the history is opened, while planning it would open all of them.
CREATE OR REPLACE FUNCTION catalog_internal.last_prices(skus text[], sizes text[]) RETURNS TABLE (sku text, size text, prices integer[])
LANGUAGE plpgsql STABLE STRICT ROWS 10 SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT n.sku, n.size, last.prices
    FROM unnest(skus, sizes) AS n(sku, size)
    CROSS JOIN LATERAL (
      SELECT array_agg(l.old_price) AS prices FROM (
        SELECT h.old_price FROM (
          SELECT h.size, h.old_price FROM catalog.price_history h WHERE h.sku = n.sku ORDER BY h.id DESC LIMIT 1000
        ) h WHERE h.size = n.size AND h.old_price IS NOT NULL LIMIT 4
      ) l
    ) last
    WHERE last.prices IS NOT NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.last_prices(text[], text[]) FROM PUBLIC;
