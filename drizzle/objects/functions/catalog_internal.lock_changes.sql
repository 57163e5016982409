-- A transaction that writes history takes this lock before it draws a position, and holds it until it ends. So
-- positions follow the order of commits, and a reader needs to remember only one number. src/store/history/changes.ts
-- says why not otherwise. The first to take it in another database than before creates a gap in the positions. The
-- commit is on disk before a reader can see it, whatever the server is configured to do; otherwise a crash could undo
-- changes that a reader has passed.
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
