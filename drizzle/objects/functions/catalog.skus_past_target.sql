-- A single statement without rights or settings of its own, so that the planner can inline it; ATOMIC, so that its
-- names keep their meaning whatever the caller's search path.
CREATE OR REPLACE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000
BEGIN ATOMIC
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target AND t.doubt IS DISTINCT FROM 'out_of_scope' ORDER BY t.priced_at LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.skus_past_target(integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.skus_past_target(integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.skus_past_target(integer) IS 'SKUs in scope whose prices are older than their target, oldest first, at most so many: rows of catalog.sku_trust.';
