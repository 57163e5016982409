-- Records what else may happen to the watchlist, as watch_added does for an INSERT. An UPDATE that changes the sku is
-- a DELETE of one row and an INSERT of another.
CREATE OR REPLACE FUNCTION catalog_internal.watch_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO catalog_internal.watch_changes (added, skus)
    SELECT before.sku IS NULL, array_agg(sku)
    FROM was before FULL JOIN becomes after USING (sku)
    WHERE before.weight IS DISTINCT FROM after.weight OR before.max_age IS DISTINCT FROM after.max_age
    GROUP BY before.sku IS NULL;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO catalog_internal.watch_changes (added, skus)
    SELECT false, array_agg(sku) FROM was HAVING count(*) > 0;
  ELSE
    INSERT INTO catalog_internal.watch_changes (added) VALUES (false);
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watch_changed() FROM PUBLIC;

CREATE OR REPLACE TRIGGER watch_updated AFTER UPDATE ON catalog.watchlist
REFERENCING OLD TABLE AS was NEW TABLE AS becomes FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
CREATE OR REPLACE TRIGGER watch_deleted AFTER DELETE ON catalog.watchlist
REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();
CREATE OR REPLACE TRIGGER watch_emptied AFTER TRUNCATE ON catalog.watchlist
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.watch_changed();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.watchlist ENABLE ALWAYS TRIGGER watch_updated, ENABLE ALWAYS TRIGGER watch_deleted, ENABLE ALWAYS TRIGGER watch_emptied;
