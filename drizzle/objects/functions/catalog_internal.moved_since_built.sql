-- Those of these SKUs that a refresh has seen moving since sync.built_after, except the one at `refreshed_at`. In
-- PL/pgSQL, which plans it when it is reached, and for the position of each call, so no older partition of the history
-- is opened or locked.
CREATE OR REPLACE FUNCTION catalog_internal.moved_since_built(skus text[], refreshed_at timestamptz) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  built timestamptz;
  start bigint := catalog_internal.position_before_built();
BEGIN
  SELECT date_trunc('milliseconds', y.built_after) INTO built FROM catalog_internal.sync y;
  IF built IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT a.sku FROM unnest(skus) AS a(sku)
    -- With LIMIT each is looked up by its key, and not all moves since then are read to be joined.
    CROSS JOIN LATERAL (
      SELECT FROM catalog.price_history h
      WHERE h.sku = a.sku AND h.observed_at >= built AND h.id > start AND h.observed_at IS DISTINCT FROM moved_since_built.refreshed_at LIMIT 1
    ) moved;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.moved_since_built(text[], timestamptz) FROM PUBLIC;
