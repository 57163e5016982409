-- A transaction that writes history takes this lock before it draws a position, and holds it until it ends: so
-- positions come in the order of the commits, and a reader needs to remember one number only. Other ways, and why
-- not: src/store/history/changes.ts. The first to take it in another database than before makes a gap in the positions.
-- Its commit is on disk before a reader can see it, whatever the server is told: else a crash could take changes back
-- that a reader has a position behind.
CREATE OR REPLACE FUNCTION catalog_internal.lock_changes() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'local', true);
  END IF;
  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;
  PERFORM catalog_internal.follow_lineage();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_changes() FROM PUBLIC;
