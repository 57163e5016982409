-- A transaction that writes history takes this lock before it draws a position, and holds it until it ends: so
-- positions come in the order of the commits, and a reader needs to remember one number only. Other ways, and why
-- not: src/store/history/changes.ts. The first to take it in another database than before makes a gap in the positions.
CREATE OR REPLACE FUNCTION catalog_internal.lock_changes() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;
  PERFORM catalog_internal.follow_lineage();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_changes() FROM PUBLIC;
