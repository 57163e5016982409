-- Whether this is the database that history was last written to, on the same start of its server: follow_lineage. A standby
-- is what its primary is.
CREATE OR REPLACE FUNCTION catalog_internal.lineage_holds() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pg_is_in_recovery() OR EXISTS (
    SELECT FROM catalog_internal.lineage known, catalog_internal.present_lineage() present
    WHERE present.database = known.database AND present.started = known.started AND coalesce(present.system, known.system) IS NOT DISTINCT FROM known.system
      AND coalesce(present.timeline, known.timeline) IS NOT DISTINCT FROM known.timeline);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lineage_holds() FROM PUBLIC;
--> statement-breakpoint
-- Where this is another database than the one that history was last written to (a backup that was restored, a
-- standby that was promoted), the one before may have given out positions that are unknown here. So positions
-- go on far behind all of these, and what lies in between is refused for ever (catalog.changes). After a
-- restart of the server, too: what is the same in all else may be an image of its disk from before, or have
-- lost its last commits (synchronous_commit = off). Ids go on as they were, so that no chunk is left half
-- empty: positions are further by a shift (position_of). Under the lock of the changes, before a position is
-- drawn.
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
--> statement-breakpoint
-- The position from which a reader gets everything that is committed from now on. The newest row that this snapshot
-- sees, not the newest position drawn: what is being committed right now comes after it. Where the history holds less
-- than what was dropped, what was dropped is the position: not in a transaction whose snapshot is from before that,
-- which does not see what came last. And never before the end of a gap (follow_lineage), also while nothing has come
-- after it: the database before may have given out any position below that.
CREATE OR REPLACE FUNCTION catalog.changes_position() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  oldest bigint;
  resumed bigint;
BEGIN
  newest := catalog_internal.position_of(greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    (SELECT last_id FROM catalog_internal.change_batches ORDER BY last_id DESC LIMIT 1)));
  SELECT coalesce(max(resumed_at), 0) INTO resumed FROM catalog_internal.position_gaps;
  -- From the reading on nothing more can be emptied or dropped.
  oldest := catalog.changes_oldest();
  IF newest >= oldest THEN
    RETURN greatest(newest, resumed);
  END IF;
  IF catalog_internal.history_was_taken() THEN
    RAISE EXCEPTION 'the history of changes was emptied after this transaction began, which does not see what came before that'
      USING ERRCODE = 'CM001', HINT = 'Begin a new transaction.';
  END IF;
  RETURN greatest(oldest, resumed);
END
$$;

REVOKE ALL ON FUNCTION catalog.changes_position() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_position() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_position() IS 'The position to follow changes from now on from. Take it before you read the tables.';
--> statement-breakpoint
-- Reads first and judges then: from the reading on nothing can be dropped until the transaction ends, and what was
-- dropped before is said by a sequence, which is the same in every snapshot.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  first bigint;
  start bigint;
  until bigint;
  bound bigint;
  ending bigint;
  here bigint;
  found integer;
  left_over integer := most;
  oldest bigint;
  drawn bigint;
  resumed bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  first := catalog_internal.id_before(after);
  start := first;
  -- Up to here there are as many as are asked for, in one of the tables alone. A batch is read whole, so no more of them than that are.
  SELECT least(
    (SELECT h.id FROM catalog.price_history h WHERE h.id > start ORDER BY h.id OFFSET most - 1 LIMIT 1),
    (SELECT h.id FROM catalog.product_history h WHERE h.id > start ORDER BY h.id OFFSET most - 1 LIMIT 1),
    (SELECT min(b.last_id) FROM (
       SELECT b.last_id, sum(b.last_id - greatest(b.id - 1, start)) OVER (ORDER BY b.last_id) AS changes
       FROM catalog_internal.change_batches b WHERE b.last_id > start ORDER BY b.last_id LIMIT most
     ) b WHERE b.changes >= most)) INTO until;
  -- Usually one: ids with one distance to their positions.
  FOR bound, here IN
    SELECT coalesce(lead(s.first_id) OVER (ORDER BY s.first_id), 9223372036854775807) - 1, s.shift
    FROM (SELECT 0::bigint AS first_id, 0::bigint AS shift UNION ALL SELECT s.first_id, s.shift FROM catalog_internal.position_shifts s) s ORDER BY s.first_id
  LOOP
    CONTINUE WHEN bound <= start;
    -- Batches do not overlap: the last that is read is the first to end there or later. By this its end has two bounds, and
    -- an index finds them; by the end of one and the beginning of another all before or all behind would be read.
    SELECT min(b.last_id) INTO ending FROM catalog_internal.change_batches b WHERE b.last_id >= least(until, bound);
    RETURN QUERY
      SELECT a.id + here, a.kind, a.sku, a.size, a.old_price, a.new_price, a.field, a.old_value, a.new_value, a.meaning_changed, a.observed_at FROM (
        SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
        FROM catalog.price_history h WHERE h.id > start AND h.id <= least(until, bound)
        UNION ALL
        SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value,
          h.field = 'size_map_size_type' AND h.old_value IS NOT NULL, h.observed_at
        FROM catalog.product_history h WHERE h.id > start AND h.id <= least(until, bound)
        UNION ALL
        SELECT b.id + (s.n - 1) * cardinality(b.fields) + f.n - 1, 'sku', s.sku, NULL, NULL, NULL, f.field, f.old_value, f.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus) WITH ORDINALITY AS s(sku, n)
        CROSS JOIN LATERAL unnest(b.fields, b.old_values, b.new_values) WITH ORDINALITY AS f(field, old_value, new_value, n)
        WHERE b.kind = 'sku' AND b.last_id > start AND b.last_id <= coalesce(ending, 9223372036854775807) AND b.id <= least(until, bound)
        UNION ALL
        SELECT b.id + e.n - 1, b.kind, e.sku, e.size, NULL, e.price, e.field, NULL, e.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus, b.sizes, b.prices, b.fields, b.new_values) WITH ORDINALITY AS e(sku, size, price, field, new_value, n)
        WHERE b.kind <> 'sku' AND b.last_id > start AND b.last_id <= coalesce(ending, 9223372036854775807) AND b.id <= least(until, bound)
      ) a(id, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
      WHERE a.id > start ORDER BY a.id LIMIT left_over;
    GET DIAGNOSTICS found = ROW_COUNT;
    left_over := left_over - found;
    EXIT WHEN left_over <= 0 OR until <= bound;
    start := bound;
  END LOOP;
  oldest := catalog_internal.position_of(catalog_internal.dropped_to(first));
  -- The end of a gap is given out before a position behind it is drawn (changes_position).
  SELECT greatest(catalog_internal.position_of(last_value), (SELECT max(resumed_at) FROM catalog_internal.position_gaps))
  INTO drawn FROM catalog_internal.change_positions;
  SELECT resumed_at INTO resumed FROM catalog_internal.position_gaps WHERE forked_at < after AND after < resumed_at;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF after > drawn AND pg_is_in_recovery() THEN
    RAISE EXCEPTION 'position % is not here yet: the newest that this standby has received is %', after, drawn
      USING ERRCODE = 'serialization_failure', HINT = 'Try again once the standby has come so far, or ask the primary.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  END IF;
  PERFORM catalog_internal.refuse_written_anew('{catalog.price_history,catalog.product_history,catalog_internal.change_batches}');
END
$$;

REVOKE ALL ON FUNCTION catalog.changes(bigint, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes(bigint, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'All changes of the mirror after a position, in the order of their commits, at most so many: of prices, products and SKUs. Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
--> statement-breakpoint
-- Statements that give catalog_reader and catalog_watcher what they are to have and lack: what a dump gave to
-- roles that were not there when it was loaded is gone, and with it that nobody else may call the functions:
-- both are one command. Of a role that is not there nothing is said. And what views call as their reader everybody
-- is to have, whatever is by default given to nobody in this cluster. Of what others own in the schema nothing is said:
-- only they may give it.
CREATE OR REPLACE FUNCTION catalog_internal.missing_rights() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH roles AS (
    SELECT rolname::text AS role FROM pg_roles WHERE rolname IN ('catalog_reader', 'catalog_watcher')
  ), relations AS (
    SELECT oid, relname FROM pg_class WHERE relnamespace = 'catalog'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
      AND pg_has_role(relowner, 'USAGE')
  ), functions AS (
    SELECT oid, coalesce(proacl, acldefault('f', proowner)) AS acl, CASE WHEN proname IN ('take_request', 'hint') OR proname LIKE 'refresh%' THEN 'catalog_watcher' ELSE 'catalog_reader' END AS role
    FROM pg_proc WHERE pronamespace = 'catalog'::regnamespace AND pg_has_role(proowner, 'USAGE')
  )
  SELECT format('GRANT USAGE ON SCHEMA catalog TO %I', role) FROM roles WHERE NOT has_schema_privilege(role, 'catalog', 'USAGE')
  UNION ALL
  SELECT format('GRANT SELECT ON %s TO %I', oid::regclass, role) FROM roles, relations
  WHERE (role = 'catalog_reader' OR relname = 'promises') AND NOT has_table_privilege(role, oid, 'SELECT')
  UNION ALL
  SELECT format('GRANT %s ON %s TO %I', privilege, oid::regclass, role)
  FROM roles, relations, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE role = 'catalog_watcher' AND relname IN ('watchlist', 'scope') AND NOT has_table_privilege(role, oid, privilege)
  UNION ALL
  SELECT format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', oid::regprocedure) FROM functions
  WHERE EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = 0)
  UNION ALL
  SELECT format('GRANT EXECUTE ON ROUTINE %s TO %I', oid::regprocedure, role) FROM roles JOIN functions USING (role)
  WHERE NOT EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = to_regrole(role))
  UNION ALL
  SELECT format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', oid::regprocedure) FROM pg_proc
  WHERE pronamespace = 'catalog_internal'::regnamespace AND proname IN ('believable_until', 'catalog_state', 'cohort_of', 'is_waiting', 'lane_names',
      'last_day', 'moment', 'p_right', 'pause_holds', 'present_ceiling', 'price_beliefs', 'promise_capacity', 'seconds_ahead', 'trust_terms')
    AND NOT EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)
  UNION ALL
  SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO %I', role) FROM roles
  WHERE role = 'catalog_reader' AND NOT EXISTS (
    SELECT FROM pg_default_acl, aclexplode(defaclacl)
    WHERE defaclnamespace = 'catalog'::regnamespace AND defaclobjtype = 'r' AND grantee = to_regrole(role) AND privilege_type = 'SELECT'
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.missing_rights() FROM PUBLIC;
--> statement-breakpoint
-- Sets every sequence that numbers rows to what the rows have: logical replication and a copy of tables leave
-- sequences behind. Each that a column draws from is found in the catalog; numbers of claims are drawn by the
-- daemon. Of tables in the schema catalog only the two of the mirror that have such a column, as others are of sellers; elsewhere
-- those that this role may read and set. Positions that were dropped reach up to the oldest chunk. The claims of answers are read only where
-- the sequence is known to be behind, as that reads the whole ledger. Under the lock of the changes where one
-- is behind, so that a look costs nobody anything; one that is not behind is left alone, as others draw from
-- it.
CREATE OR REPLACE FUNCTION catalog_internal.mend_sequences() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  drawn record;
  newest bigint;
  upcoming bigint;
BEGIN
  FOR drawn IN
    WITH tables AS (
      SELECT oid FROM pg_class WHERE NOT relispartition AND has_table_privilege(oid, 'SELECT') AND (
        relnamespace::regnamespace::text IN ('catalog_internal', 'catalog_queue')
        OR oid IN ('catalog.price_history'::regclass, 'catalog.product_history'::regclass))
    ), sequences AS (
      SELECT oid FROM pg_class
      WHERE relnamespace::regnamespace::text IN ('catalog', 'catalog_internal', 'catalog_queue') AND CASE relkind WHEN 'S' THEN has_sequence_privilege(oid, 'UPDATE') END
    )
    SELECT s.oid::regclass AS sequence, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass) AS query
    FROM sequences s
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef f ON f.oid = d.objid
    JOIN tables t ON t.oid = f.adrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = f.adnum
    UNION
    SELECT s.oid::regclass, format('SELECT max(%I) FROM %s', a.attname, t.oid::regclass)
    FROM sequences s
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN tables t ON t.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
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
  -- A TRUNCATE that is rolled back leaves how far is dropped, and takes back since when all is kept.
  IF NOT EXISTS (SELECT FROM catalog_internal.history_milestones m, catalog_internal.dropped_positions d WHERE m.position >= d.last_value) THEN
    PERFORM catalog_internal.lock_changes();
    INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
    ON CONFLICT DO NOTHING;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mend_sequences() FROM PUBLIC;
