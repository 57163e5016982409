-- catalog.price_at for each size that a SKU had, with the meaning its size keys had then. The statement that reads the
-- history also checks what is kept: by then the history is locked and nothing can be dropped.
CREATE OR REPLACE FUNCTION catalog.prices_at(sku text, at timestamptz)
RETURNS TABLE (size text, price integer, size_type text)
LANGUAGE plpgsql STABLE STRICT ROWS 15 SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  first_priced_at timestamptz;
  before bigint;
  meaning text;
  sizes text[];
  held integer[];
BEGIN
  SELECT s.first_priced_at INTO first_priced_at FROM catalog.skus s WHERE s.sku = prices_at.sku;
  IF prices_at.at < first_priced_at OR first_priced_at IS NULL THEN
    RETURN;
  END IF;
  before := catalog_internal.position_before(prices_at.at);
  -- Known for the first time it corrected nothing.
  SELECT coalesce(h.old_value, h.new_value) INTO meaning FROM catalog.product_history h
  WHERE h.sku = prices_at.sku AND h.field = 'size_map_size_type' AND h.id >= before AND h.observed_at > prices_at.at ORDER BY h.id LIMIT 1;
  IF NOT FOUND THEN
    SELECT p.size_map_size_type INTO meaning FROM catalog.products p WHERE p.sku = prices_at.sku;
  END IF;
  -- As price_at, of the sizes that it has, has had on a day, or has had since days were counted: thousands of changes of a SKU are not read for the first of each.
  IF (prices_at.at AT TIME ZONE 'UTC')::date > (SELECT min(d.day) FROM catalog.daily_prices d)
    AND EXISTS (SELECT FROM catalog.daily_prices d WHERE d.sku = prices_at.sku) THEN
    WITH RECURSIVE counted AS (
      (SELECT d.size FROM catalog.daily_prices d WHERE d.sku = prices_at.sku ORDER BY d.size LIMIT 1)
      UNION ALL
      SELECT (SELECT d.size FROM catalog.daily_prices d WHERE d.sku = prices_at.sku AND d.size > c.size ORDER BY d.size LIMIT 1)
      FROM counted c WHERE c.size IS NOT NULL
    ), had AS (
      SELECT c.size FROM counted c WHERE c.size IS NOT NULL
      UNION
      SELECT p.size FROM catalog.prices p WHERE p.sku = prices_at.sku
      UNION
      SELECT h.size FROM catalog.price_history h WHERE h.sku = prices_at.sku AND h.id > (SELECT d.position FROM catalog_internal.daily d)
    )
    SELECT array_agg(h.size), array_agg(catalog.price_at(prices_at.sku, h.size, prices_at.at)) INTO sizes, held FROM had h;
    RETURN QUERY
      SELECT h.size, h.price, meaning FROM unnest(sizes, held) AS h(size, price)
      WHERE h.price IS NOT NULL AND prices_at.at >= catalog_internal.history_known_from() ORDER BY h.size;
    RETURN;
  END IF;
  RETURN QUERY
    WITH changed AS (
      SELECT DISTINCT ON (h.size) h.size, h.old_price FROM catalog.price_history h
      WHERE h.sku = prices_at.sku AND h.id >= before AND h.observed_at > prices_at.at ORDER BY h.size, h.id
    ), held AS (
      SELECT c.size, c.old_price AS price FROM changed c
      UNION ALL
      SELECT p.size, p.price FROM catalog.prices p WHERE p.sku = prices_at.sku AND NOT EXISTS (SELECT FROM changed c WHERE c.size = p.size)
    )
    SELECT h.size, h.price, meaning FROM held h
    WHERE h.price IS NOT NULL AND prices_at.at >= catalog_internal.history_known_from() ORDER BY h.size;
END
$$;

REVOKE ALL ON FUNCTION catalog.prices_at(text, timestamptz) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.prices_at(text, timestamptz) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.prices_at(text, timestamptz) IS 'The prices that the mirror held for the sizes of a SKU at a moment, as catalog.price_at, and what its size keys meant then (size_map.size_type). No rows: none, or not known.';
