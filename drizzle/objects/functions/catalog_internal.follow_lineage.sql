-- Where this is another database than the one that history was last written to (a backup that was restored, a standby that was
-- promoted), the one before may have given out positions that are unknown here. So positions go on far behind all of these, and
-- what lies in between is refused for ever (catalog.changes). Under the lock of the changes, before a position is drawn. The
-- sequence is set before the gap commits: after a rollback the next writer does both again.
CREATE OR REPLACE FUNCTION catalog_internal.follow_lineage() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known catalog_internal.lineage;
  present record;
  newest bigint;
  resumed bigint;
BEGIN
  SELECT * INTO known FROM catalog_internal.lineage;
  SELECT * INTO present FROM catalog_internal.present_lineage();
  IF present.database = known.database AND coalesce(present.system, known.system) IS NOT DISTINCT FROM known.system
    AND coalesce(present.timeline, known.timeline) IS NOT DISTINCT FROM known.timeline THEN
    RETURN;
  END IF;
  INSERT INTO catalog_internal.lineage AS l (system, database, timeline) VALUES (present.system, present.database, present.timeline)
  ON CONFLICT (id) DO UPDATE SET system = coalesce(excluded.system, l.system), database = excluded.database,
    timeline = coalesce(excluded.timeline, l.timeline);
  IF present.database <> known.database OR present.system <> known.system OR present.timeline <> known.timeline THEN
    newest := catalog.changes_position();
    SELECT greatest(newest, last_value) + 1000000000 INTO resumed FROM catalog_internal.change_positions;
    PERFORM setval('catalog_internal.change_positions', resumed);
    INSERT INTO catalog_internal.position_gaps AS g (forked_at, resumed_at) VALUES (newest, resumed)
    ON CONFLICT (forked_at) DO UPDATE SET resumed_at = excluded.resumed_at;
    PERFORM catalog_internal.add_history_chunks();
    RAISE WARNING 'this database was restored, or its server was replaced: positions of catalog.changes go on after %', resumed;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.follow_lineage() FROM PUBLIC;
