-- Sorts the SKUs of a claim, gives back those that are out of scope, and returns them, so that nothing out of scope is
-- requested while SKUs are still to be sorted.
CREATE OR REPLACE FUNCTION catalog_internal.give_back_outside(of_claim bigint, skus text[]) RETURNS SETOF text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  claimed text[];
BEGIN
  SELECT array_agg(l.sku) INTO claimed
  FROM (SELECT sku FROM catalog_internal.due WHERE sku = ANY (skus) AND claim = of_claim ORDER BY sku FOR UPDATE) l;
  IF claimed IS NULL THEN
    RETURN;
  END IF;
  PERFORM catalog_internal.apply_scope(claimed);
  RETURN QUERY UPDATE catalog_internal.due d SET claim = NULL, held_until = NULL
  WHERE d.sku = ANY (claimed) AND d.lane = 0 RETURNING d.sku::text;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.give_back_outside(bigint, text[]) FROM PUBLIC;
