-- The hints waiting for the refresh of each of these SKUs, as JSON by SKU; none for a SKU whose hints an earlier
-- refresh has left behind. Null while somebody keeps them locked.
CREATE OR REPLACE FUNCTION catalog_internal.hints_at(skus text[]) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT catalog_internal.hints_are_free() THEN
    RETURN NULL;
  END IF;
  RETURN (
    SELECT coalesce(jsonb_object_agg(sku, hints), '{}') FROM (
      SELECT q.sku, coalesce(jsonb_agg(jsonb_build_object('source', q.source, 'hazard', q.hazard, 'undone', q.undone))
        FILTER (WHERE s.asked_at IS NULL OR q.hinted_at > s.asked_at), '[]') AS hints
      FROM catalog_internal.waiting_hints q JOIN catalog.skus s ON s.sku = q.sku
      WHERE q.sku = ANY (hints_at.skus) GROUP BY q.sku
    ) h
  );
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.hints_at(text[]) FROM PUBLIC;
