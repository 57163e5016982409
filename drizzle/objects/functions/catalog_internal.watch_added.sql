-- A seller's transaction may stay open for long after its INSERT. Marking locks the SKU and its row in the ledger,
-- and these locks hold up deltas and answers; so the statement is only recorded here, and watch_committed marks when
-- the transaction commits. SECURITY DEFINER, because catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.watch_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO catalog_internal.watch_changes (transaction, added, skus)
  SELECT pg_current_xact_id()::text, true, array_agg(sku) FROM added HAVING count(*) > 0;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_added() FROM PUBLIC;

CREATE OR REPLACE TRIGGER watch_added AFTER INSERT ON catalog.watchlist
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_added();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER watch_added;
