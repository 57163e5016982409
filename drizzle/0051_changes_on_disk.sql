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
--> statement-breakpoint
-- For each INSERT, whoever sends it: also a daemon of an earlier version that still runs beside this one, or a
-- person. Before the statement, so before the defaults of its first row draw a position.
-- On disk before it is seen, as lock_changes says.
-- Without the rest of lock_changes: the table that is being inserted into can get no new partition.
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
