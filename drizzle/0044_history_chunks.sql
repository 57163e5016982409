-- It has a parameter now; daemons of the version before call it without.
DROP FUNCTION catalog_internal.add_history_chunks();
--> statement-breakpoint
-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written, where it is missing, and the next: for
-- maintenance (`ahead`), which is told why it cannot be made, and for a writer who may come to its end. That one goes on without it: what forbids it,
-- or holds the table, is to cost no answer before the positions are there. Under the lock, because two sessions may find one missing at once. Each is
-- made as a table of its own and then attached, which locks nobody out; for the next nobody who waits for the lock of the changes waits long.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks(ahead boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  chunk bigint;
  called text;
  patience text := current_setting('lock_timeout');
BEGIN
  SELECT last_value INTO newest FROM catalog_internal.change_positions;
  -- Two, or one.
  FOR chunk IN SELECT n FROM generate_series(newest / 5000000, (newest + CASE WHEN ahead THEN 5000000 ELSE 500000 END) / 5000000) n LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN to_regclass('catalog_internal.' || called) IS NOT NULL;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called);
    BEGIN
      IF chunk > newest / 5000000 THEN
        PERFORM set_config('lock_timeout', '100ms', true);
      END IF;
      EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS)', called);
      EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
        called, chunk * 5000000, (chunk + 1) * 5000000);
      INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
      ON CONFLICT DO NOTHING;
      PERFORM set_config('lock_timeout', patience, true);
    EXCEPTION WHEN OTHERS THEN
      IF ahead OR chunk = newest / 5000000 THEN
        RAISE;
      END IF;
    END;
  END LOOP;
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.add_history_chunks(boolean) FROM PUBLIC;
--> statement-breakpoint
-- Sets every sequence that numbers rows to what the rows have: logical replication and a copy of tables leave sequences behind.
-- Each that a column draws from is found in the catalog; numbers of claims are drawn by the daemon. Positions that were dropped
-- reach up to the oldest chunk. The claims of answers are read only where the sequence is known to be behind, as that reads the whole ledger. Under the lock of the changes where one is behind, so that a look costs nobody anything; one that is not behind is left alone, as others draw from it.
CREATE OR REPLACE FUNCTION catalog_internal.mend_sequences() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  drawn record;
  newest bigint;
  upcoming bigint;
BEGIN
  FOR drawn IN
    SELECT s.oid::regclass AS sequence, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass) AS query
    FROM pg_class s
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef f ON f.oid = d.objid
    JOIN pg_class t ON t.oid = f.adrelid AND NOT t.relispartition
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = f.adnum
    WHERE s.relkind = 'S' AND s.relnamespace::regnamespace::text IN ('catalog', 'catalog_internal', 'catalog_queue')
    UNION
    SELECT s.oid::regclass, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass)
    FROM pg_class s
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN pg_class t ON t.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    WHERE s.relkind = 'S' AND s.relnamespace::regnamespace::text IN ('catalog', 'catalog_internal', 'catalog_queue')
    UNION VALUES
      ('catalog_internal.change_positions'::regclass, 'SELECT max(last_id) FROM catalog_internal.change_batches'),
      ('catalog_internal.claim_numbers', 'SELECT greatest(
        (SELECT max(claim) FROM catalog_internal.due WHERE held_until IS NOT NULL), (SELECT max(run) FROM catalog_internal.tasks),
        (SELECT max(number) FROM catalog_internal.instances), (SELECT max(holder) FROM catalog_internal.followers), (SELECT seen_claim FROM catalog_internal.sync),
        (SELECT max(d.asked_claim) FROM catalog_internal.due d
         WHERE (SELECT seen_claim FROM catalog_internal.sync) > coalesce(pg_sequence_last_value(''catalog_internal.claim_numbers''), 0)))'),
      ('catalog_internal.dropped_positions'::regclass, $query$SELECT
        min(substring(pg_get_expr(relpartbound, oid) FROM $re$FROM \('?(\d+)'?\)$re$)::bigint) - 1
        FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass$query$)
  LOOP
    EXECUTE drawn.query INTO newest;
    -- Of one that was never drawn from, too: its last value is the next.
    EXECUTE format('SELECT last_value + is_called::int FROM %s', drawn.sequence) INTO upcoming;
    IF newest >= upcoming THEN
      PERFORM catalog_internal.lock_changes();
      -- Another may have set it while this one waited.
      PERFORM setval(drawn.sequence, greatest(newest, pg_sequence_last_value(drawn.sequence)));
      RAISE WARNING 'the sequence % was behind its rows: set to %', drawn.sequence, newest;
    END IF;
  END LOOP;
  PERFORM catalog_internal.add_history_chunks();
END
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.mend_sequences() FROM PUBLIC;
--> statement-breakpoint
-- Where this is another database than the one that history was last written to (a backup that was restored, a standby that was
-- promoted), the one before may have given out positions that are unknown here. So positions go on far behind all of these, and
-- what lies in between is refused for ever (catalog.changes). After a restart of the server, too: what is the same in all else may be an image of
-- its disk from before, or have lost its last commits (synchronous_commit = off). Ids go on as they were, so that no chunk is left half
-- empty: positions are further by a shift (position_of). Under the lock of the changes, before a position is drawn.
CREATE OR REPLACE FUNCTION catalog_internal.follow_lineage() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known catalog_internal.lineage;
  present record;
  newest bigint;
  drawn bigint;
  shifted bigint;
BEGIN
  SELECT * INTO known FROM catalog_internal.lineage;
  SELECT * INTO present FROM catalog_internal.present_lineage();
  IF present.database = known.database AND present.started = known.started AND coalesce(present.system, known.system) IS NOT DISTINCT FROM known.system
    AND coalesce(present.timeline, known.timeline) IS NOT DISTINCT FROM known.timeline THEN
    RETURN;
  END IF;
  INSERT INTO catalog_internal.lineage AS l (system, database, timeline, started) VALUES (present.system, present.database, present.timeline, present.started)
  ON CONFLICT (id) DO UPDATE SET system = coalesce(excluded.system, l.system), database = excluded.database,
    timeline = coalesce(excluded.timeline, l.timeline), started = excluded.started;
  -- Logical replication copies rows and no sequences, and those who write may never have been stopped.
  IF present.database <> known.database OR present.system <> known.system THEN
    PERFORM catalog_internal.mend_sequences();
  END IF;
  IF present.database <> known.database OR present.system <> known.system OR present.timeline <> known.timeline OR present.started <> known.started THEN
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
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.follow_lineage() FROM PUBLIC;
