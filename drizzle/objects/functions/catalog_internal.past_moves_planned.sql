-- catalog_internal.past_moves for few SKUs. PL/pgSQL plans it for the position of each call, so no older partition of
-- the history is locked; for many SKUs that takes longer than reading.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves_planned(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  since timestamptz := statement_timestamp() - interval '3 days';
  start bigint := catalog_internal.position_before(since);
BEGIN
  SELECT count(DISTINCT h.observed_at) INTO moves
  FROM catalog.price_history h WHERE h.sku = of_sku AND h.observed_at > since AND h.id > start;
  minutes := CASE WHEN first_priced_at IS NULL THEN 0
    ELSE extract(epoch FROM statement_timestamp() - greatest(first_priced_at, since)) / 60 END;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.past_moves_planned(text, timestamptz) FROM PUBLIC;
