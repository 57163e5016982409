-- At the commit, once for all that the transaction did to the watchlist: the first of its recorded rows takes them
-- all. SKUs that were inserted and are still watched are marked and mirrored, whether or not a manifest lists them. A
-- SKU whose weight changed, or that is watched no longer, is not marked for that; it gets its new rank at once where
-- it is urgent, and with its next mark elsewhere.
-- Locks are taken in the order of everyone here: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in
-- order of sku. Every row of the ledger is locked before its rank is compared, so that a concurrent mark has either
-- seen this commit or is seen by it.
CREATE OR REPLACE FUNCTION catalog_internal.watch_committed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  marked text[];
  others text[];
  emptied boolean;
  is_there boolean;
BEGIN
  -- Taken by the first. To look for more of them each time would be to read all that are deleted, again and again. Planned
  -- each time, because a plan from when there was one row would read them all, too.
  EXECUTE 'SELECT EXISTS (SELECT FROM catalog_internal.watch_changes WHERE id = $1)' INTO is_there USING NEW.id;
  IF NOT is_there THEN
    RETURN NULL;
  END IF;
  WITH mine AS (
    DELETE FROM catalog_internal.watch_changes WHERE id >= NEW.id AND transaction = pg_current_xact_id()::text RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM mine, unnest(skus) AS sku GROUP BY sku
  ), present AS (
    SELECT n.sku, n.added AND w.sku IS NOT NULL AS to_mark
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku
  )
  SELECT (SELECT array_agg(sku) FROM present WHERE to_mark),
         (SELECT array_agg(sku) FROM present WHERE NOT to_mark),
         (SELECT bool_or(skus IS NULL) FROM mine)
    INTO marked, others, emptied;
  IF emptied THEN
    others := others || (SELECT array_agg(sku) FROM catalog_internal.due WHERE lane = 1 AND rank <> 1);
  END IF;
  IF marked IS NOT NULL THEN
    IF EXISTS (SELECT FROM unnest(marked) AS m(sku) WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = m.sku)) THEN
      PERFORM catalog_internal.lock_new_skus();
    END IF;
    PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING;
  END IF;
  IF others IS NOT NULL THEN
    PERFORM FROM catalog_internal.due WHERE sku = ANY (marked || others) ORDER BY sku FOR UPDATE;
    UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
    FROM unnest(others) AS o(sku) LEFT JOIN catalog.watchlist w USING (sku)
    WHERE d.sku = o.sku AND d.lane = 1 AND d.rank <> coalesce(w.weight, 1);
  END IF;
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_committed() FROM PUBLIC;

-- Postgres has no CREATE OR REPLACE for a constraint trigger.
DROP TRIGGER IF EXISTS watch_committed ON catalog_internal.watch_changes;
CREATE CONSTRAINT TRIGGER watch_committed AFTER INSERT ON catalog_internal.watch_changes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION catalog_internal.watch_committed();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog_internal.watch_changes ENABLE ALWAYS TRIGGER watch_committed;
