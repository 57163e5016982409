-- Who empties a table of the feed takes away what readers may not have read, and what prices of the past are known by:
-- all positions before are refused. Retention drops chunks.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_emptied() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM catalog_internal.lock_changes();
  INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
  ON CONFLICT (position) DO UPDATE SET at = excluded.at;
  PERFORM setval('catalog_internal.dropped_positions', greatest(drawn.last_value, dropped.last_value))
  FROM catalog_internal.change_positions drawn, catalog_internal.dropped_positions dropped;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_is_emptied() FROM PUBLIC;

CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog.price_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied();
CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog.product_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied();
CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog_internal.change_batches
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied();

-- Also where a table is emptied as a replica does (session_replication_role).
ALTER TABLE catalog.price_history ENABLE ALWAYS TRIGGER history_is_emptied;
ALTER TABLE catalog.product_history ENABLE ALWAYS TRIGGER history_is_emptied;
ALTER TABLE catalog_internal.change_batches ENABLE ALWAYS TRIGGER history_is_emptied;
