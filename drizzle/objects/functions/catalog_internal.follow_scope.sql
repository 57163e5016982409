-- Sorts the next `most` SKUs that are to be sorted, and returns whether there may be more. SKUs of a pass are compared
-- without a lock, because everything that was sorted by other rules is committed (apply_scope). Only those that have
-- to change are locked, in order of sku, as everyone locks the ledger. Called with the row of `scoping` locked.
CREATE OR REPLACE FUNCTION catalog_internal.follow_scope(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
  pass catalog_internal.scope_passes;
  last text;
  is_over boolean;
  piece text[];
BEGIN
  SELECT array_agg(sku) INTO piece FROM (SELECT sku FROM catalog_internal.scope_pending ORDER BY sku LIMIT most) p;
  DELETE FROM catalog_internal.scope_pending WHERE sku = ANY (piece);
  IF piece IS NULL THEN
    SELECT * INTO pass FROM catalog_internal.scope_passes ORDER BY id LIMIT 1;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    SELECT max(n.sku), count(*) < most OR coalesce(bool_or(NOT starts_with(n.sku, pass.prefix)), false),
      array_agg(n.sku) FILTER (WHERE starts_with(n.sku, pass.prefix) AND n.standing <> n.was)
    INTO last, is_over, piece
    FROM (
      SELECT l.sku, catalog_internal.scope_standing(o.place, s.state, l.reason, coalesce(l.outside_due_at, l.due_at)) AS standing,
        CASE WHEN l.outside_due_at IS NULL THEN 'in' WHEN l.reason = 'scope' THEN 'asked' ELSE 'out' END AS was
      FROM (SELECT * FROM catalog_internal.due WHERE sku >= pass.from_sku ORDER BY sku LIMIT most) l
      LEFT JOIN LATERAL (SELECT s.state FROM catalog.skus s WHERE s.sku = l.sku OFFSET 0) s ON true
      LEFT JOIN LATERAL (SELECT p.brand, p.model, p.category FROM catalog.products p WHERE p.sku = l.sku OFFSET 0) p ON true
      CROSS JOIN LATERAL catalog_internal.scope_of(l.sku, p.brand, p.model, p.category, coalesce(p.brand, p.model, p.category) IS NOT NULL) o
    ) n;
    IF is_over THEN
      DELETE FROM catalog_internal.scope_passes WHERE id = pass.id;
    ELSE
      -- The next one in the order of bytes.
      UPDATE catalog_internal.scope_passes SET from_sku = last || E'\x01' WHERE id = pass.id;
    END IF;
  END IF;
  IF piece IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (piece) ORDER BY sku FOR UPDATE;
    PERFORM catalog_internal.apply_scope(piece);
  END IF;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.follow_scope(integer) FROM PUBLIC;
