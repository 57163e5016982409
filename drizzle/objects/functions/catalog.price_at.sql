-- What a size cost at a moment is the price before its first change, in the order of the commits, that was observed later; where there is none,
-- the present one. So a change counts from when it was observed, or from when the one before it was, where a clock was set back between them.
-- From the milestone on, as the first change of all may have its position. One plan for all calls: to plan for all chunks of the history takes longer than to read.
CREATE OR REPLACE FUNCTION catalog.price_at(sku text, size text, at timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_priced_at timestamptz;
  before bigint;
  held integer;
BEGIN
  SELECT s.first_priced_at INTO first_priced_at FROM catalog.skus s WHERE s.sku = price_at.sku;
  IF at < first_priced_at OR first_priced_at IS NULL THEN
    RETURN NULL;
  END IF;
  before := catalog_internal.position_before(at);
  SELECT h.old_price INTO held FROM catalog.price_history h
  WHERE h.sku = price_at.sku AND h.size = price_at.size AND h.id >= before AND h.observed_at > price_at.at ORDER BY h.id LIMIT 1;
  IF NOT FOUND THEN
    SELECT p.price INTO held FROM catalog.prices p WHERE p.sku = price_at.sku AND p.size = price_at.size;
  END IF;
  IF at < catalog_internal.history_known_from() THEN
    RETURN NULL;
  END IF;
  RETURN held;
END
$$;

REVOKE ALL ON FUNCTION catalog.price_at(text, text, timestamptz) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.price_at(text, text, timestamptz) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.price_at(text, text, timestamptz) IS 'The price that the mirror held for a size at a moment. Null: none, or not known: before first_priced_at, or before the oldest moment of which all changes are kept (HISTORY_RETENTION). The size key means what it meant then.';
