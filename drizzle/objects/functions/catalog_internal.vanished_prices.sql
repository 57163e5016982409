-- For those of these SKUs that were priced and hold no price any more: the prices that vanished last, by size, and how
-- many minutes ago. PL/pgSQL plans the reading of the history only when it is reached: planning opens and locks every
-- partition and index, and most answers have no such SKU. One plan for all calls, because none is for a part of the
-- history. STABLE, so that it sees what the calling statement sees.
CREATE OR REPLACE FUNCTION catalog_internal.vanished_prices(skus text[], asked_at timestamptz)
RETURNS TABLE (sku text, vanished jsonb, minutes double precision)
LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  gone text[];
BEGIN
  gone := ARRAY(
    SELECT s.sku FROM catalog.skus s
    -- With OFFSET 0 each is looked up by its key, and not all prices are read to be joined.
    CROSS JOIN LATERAL (SELECT WHERE NOT EXISTS (SELECT FROM catalog.prices p WHERE p.sku = s.sku AND p.price IS NOT NULL) OFFSET 0) unpriced
    WHERE s.sku = ANY (skus) AND s.first_priced_at IS NOT NULL
  );
  IF cardinality(gone) = 0 THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT g.sku, jsonb_object_agg(h.size, h.old_price), (extract(epoch FROM vanished_prices.asked_at - max(h.observed_at)) / 60)::float8
    FROM unnest(gone) AS g(sku)
    CROSS JOIN LATERAL (
      SELECT h.size, h.old_price, h.new_price, h.observed_at, h.observed_at = first_value(h.observed_at) OVER (ORDER BY h.id DESC) AS is_last
      FROM catalog.price_history h WHERE h.sku = g.sku ORDER BY h.id DESC LIMIT 100
    ) h
    WHERE h.is_last AND h.new_price IS NULL AND h.old_price IS NOT NULL
    GROUP BY g.sku;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.vanished_prices(text[], timestamptz) FROM PUBLIC;
