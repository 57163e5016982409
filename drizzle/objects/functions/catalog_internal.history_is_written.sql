-- For each INSERT, whoever sends it: possibly a daemon of an earlier version that still runs beside this one, or a
-- person. Before the statement, and so before the defaults of its first row draw a position. The commit is on disk
-- before it is visible, see lock_changes; the rest of lock_changes is left out, because the table that is being
-- inserted into can get no new partition.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_written() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'local', true);
  END IF;
  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_is_written() FROM PUBLIC;

CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog.price_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog.product_history
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();
CREATE OR REPLACE TRIGGER in_order BEFORE INSERT ON catalog_internal.change_batches
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_written();

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.price_history ENABLE ALWAYS TRIGGER in_order;
ALTER TABLE catalog.product_history ENABLE ALWAYS TRIGGER in_order;
ALTER TABLE catalog_internal.change_batches ENABLE ALWAYS TRIGGER in_order;
