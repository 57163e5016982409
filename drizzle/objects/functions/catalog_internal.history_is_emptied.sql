-- Whoever empties a table of the feed removes changes that readers may not have read, and the basis of past prices. So
-- all earlier positions are refused, or, for one chunk of price_history, those up to its end, as if it were dropped.
-- The triggers of the root do not fire for a single chunk (add_history_chunks). Retention drops chunks instead.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_emptied() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ends bigint;
BEGIN
  IF TG_TABLE_NAME LIKE 'price\_history\_%' THEN
    -- What is detached was refused then, and is nobody's.
    IF pg_partition_root(TG_RELID) IS DISTINCT FROM 'catalog.price_history'::regclass THEN
      RETURN NULL;
    END IF;
    ends := substring(TG_TABLE_NAME FROM '\d+$')::bigint * 5000000 + 4999999;
  END IF;
  PERFORM catalog_internal.lock_changes();
  INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
  ON CONFLICT (position) DO UPDATE SET at = excluded.at;
  PERFORM setval('catalog_internal.dropped_positions', greatest(least(ends, drawn.last_value), dropped.last_value))
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

-- The chunks that there are; add_history_chunks gives it to each that it makes.
DO $$
DECLARE
  chunk regclass;
BEGIN
  FOR chunk IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'catalog.price_history'::regclass ORDER BY inhrelid LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON %s
      FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied()', chunk);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER history_is_emptied', chunk);
  END LOOP;
END
$$;
