-- Marks SKUs for at most `most` requests of sellers, the oldest first. One that is being requested is left until the
-- answer, because an answer to an earlier request would postpone it again. One that somebody has locked is left for
-- the next time. Returns how many were marked.
CREATE OR REPLACE FUNCTION catalog_internal.take_refreshes(most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  requests bigint[];
  asked text[];
  free text[];
BEGIN
  IF NOT catalog_internal.refreshes_are_free() THEN
    RETURN 0;
  END IF;
  SELECT array_agg(p.id), array_agg(DISTINCT p.sku) INTO requests, asked FROM (
    SELECT r.id, r.sku FROM catalog_internal.refresh_requests r
    WHERE NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku AND d.claim IS NOT NULL OFFSET 0)
    ORDER BY r.id LIMIT most FOR UPDATE OF r SKIP LOCKED
  ) p;
  IF requests IS NULL THEN
    RETURN 0;
  END IF;
  SELECT coalesce(array_agg(f.sku), '{}') INTO free FROM (
    SELECT d.sku FROM catalog_internal.due d WHERE d.sku = ANY (asked) AND d.claim IS NULL ORDER BY d.sku FOR UPDATE SKIP LOCKED
  ) f;
  -- By their ids, locked above: of another request for one of these SKUs somebody else may be about to mark it.
  DELETE FROM catalog_internal.refresh_requests r
  WHERE r.id = ANY (requests) AND (r.sku = ANY (free) OR NOT EXISTS (SELECT FROM catalog_internal.due d WHERE d.sku = r.sku OFFSET 0));
  PERFORM catalog_internal.refresh_skus(free);
  RETURN cardinality(free);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.take_refreshes(integer) FROM PUBLIC;
