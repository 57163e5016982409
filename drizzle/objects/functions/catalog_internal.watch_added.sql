-- Only records a seller's statement, in a row of its own, and locks nothing that the mirror needs, however long the
-- transaction stays open. A daemon reads it after the commit (read_watchlist). SECURITY DEFINER, because
-- catalog_watcher has no rights on the daemon's tables.
CREATE OR REPLACE FUNCTION catalog_internal.watch_added() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO catalog_internal.watch_changes (added, skus)
  SELECT true, array_agg(sku) FROM added HAVING count(*) > 0;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_added() FROM PUBLIC;

CREATE OR REPLACE TRIGGER watch_added AFTER INSERT ON catalog.watchlist
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_added();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER watch_added;
