-- A single statement without rights or settings of its own, so that the planner can inline it; ATOMIC, so that its
-- names keep their meaning whatever the caller's search path. Brand and model are also compared by their prefixes,
-- because the index products_brand_model contains only these.
CREATE OR REPLACE FUNCTION catalog.lowest_prices(
  of_size text, of_brand text DEFAULT NULL, of_model text DEFAULT NULL, of_size_type text DEFAULT NULL,
  most integer DEFAULT 100, only_actionable boolean DEFAULT true
) RETURNS TABLE (sku text, size text, price integer, size_type text, name text, brand text, model text, priced_at timestamptz, actionable boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT p.sku, p.size, p.price, pr.size_map_size_type, pr.name, pr.brand, pr.model, t.priced_at, t.size_actionable
  FROM catalog.products pr
  JOIN catalog.prices p ON p.sku = pr.sku AND p.size = of_size AND p.price IS NOT NULL
  JOIN catalog.sku_trust t ON t.sku = pr.sku
  WHERE (of_brand IS NULL OR left(pr.brand, 200) COLLATE "C" = left(of_brand, 200) AND pr.brand = of_brand)
    AND (of_model IS NULL OR left(pr.model, 200) COLLATE "C" = left(of_model, 200) AND pr.model = of_model)
    AND (of_size_type IS NULL OR pr.size_map_size_type = of_size_type)
    AND (t.size_actionable OR NOT only_actionable)
  ORDER BY p.price, p.sku
  LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) IS 'Who offers a size cheapest: SKUs with that size key by price, of one brand, model or size type where given (exact spelling), at most so many. Prices that are not actionable are left out unless only_actionable is false.';
