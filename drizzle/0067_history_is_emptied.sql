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
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.history_is_emptied() FROM PUBLIC;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog.price_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog.product_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog_internal.change_batches
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied();
--> statement-breakpoint
ALTER TABLE catalog.price_history ENABLE ALWAYS TRIGGER history_is_emptied;
--> statement-breakpoint
ALTER TABLE catalog.product_history ENABLE ALWAYS TRIGGER history_is_emptied;
--> statement-breakpoint
ALTER TABLE catalog_internal.change_batches ENABLE ALWAYS TRIGGER history_is_emptied;
