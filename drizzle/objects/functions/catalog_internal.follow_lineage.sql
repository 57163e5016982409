-- If this is not the database that history was last written to (a restored backup, a promoted standby), the previous
-- one may have issued positions that are unknown here. So positions continue far beyond all of these, and everything
-- in between is refused forever (catalog.changes). This also happens after a restart of the server: a database that is
-- otherwise the same may be an earlier image of its disk, or may have lost its last commits (synchronous_commit =
-- off). Ids continue unchanged, so that no chunk is left half empty; positions differ from them by a shift
-- (position_of). Runs under the lock of the changes, before a position is drawn.
CREATE OR REPLACE FUNCTION catalog_internal.follow_lineage() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known catalog_internal.lineage;
  present record;
  newest bigint;
  drawn bigint;
  shifted bigint;
BEGIN
  IF catalog_internal.lineage_holds() THEN
    RETURN;
  END IF;
  SELECT * INTO known FROM catalog_internal.lineage;
  SELECT * INTO present FROM catalog_internal.present_lineage();
  INSERT INTO catalog_internal.lineage AS l (system, database, timeline, started) VALUES (present.system, present.database, present.timeline, present.started)
  ON CONFLICT (id) DO UPDATE SET system = coalesce(excluded.system, l.system), database = excluded.database,
    timeline = coalesce(excluded.timeline, l.timeline), started = excluded.started;
  -- Logical replication copies rows and no sequences, and those who write may never have been stopped.
  IF present.database <> known.database OR present.system <> known.system THEN
    PERFORM catalog_internal.mend_sequences();
  END IF;
  IF known.database IS NULL OR present.database <> known.database OR present.system <> known.system OR present.timeline <> known.timeline OR present.started <> known.started THEN
    newest := catalog.changes_position();
    drawn := coalesce(pg_sequence_last_value('catalog_internal.change_positions'), 0);
    SELECT coalesce(max(shift), 0) + 1000000000 INTO shifted FROM catalog_internal.position_shifts;
    -- Two that go on from one state must not go on alike: from the time on, in microseconds, which no history of changes keeps up with. Where the clock
    -- was ahead before, from somewhere.
    shifted := greatest(shifted + floor(random() * 1e9)::bigint, floor(extract(epoch FROM clock_timestamp() - '2026-01-01Z'::timestamptz) * 1e6)::bigint - drawn);
    INSERT INTO catalog_internal.position_shifts AS s (first_id, shift) VALUES (drawn + 1, shifted)
    ON CONFLICT (first_id) DO UPDATE SET shift = excluded.shift;
    INSERT INTO catalog_internal.position_gaps AS g (forked_at, resumed_at) VALUES (newest, drawn + shifted)
    ON CONFLICT (forked_at) DO UPDATE SET resumed_at = excluded.resumed_at;
  END IF;
  IF present.database <> known.database OR present.system <> known.system OR present.timeline <> known.timeline THEN
    RAISE WARNING 'this database was restored, or its server was replaced: positions of catalog.changes go on after %', drawn + shifted;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.follow_lineage() FROM PUBLIC;
