CREATE TABLE "catalog_internal"."change_batches" (
	"id" bigint PRIMARY KEY NOT NULL,
	"last_id" bigint NOT NULL,
	"kind" text NOT NULL,
	"skus" text[] NOT NULL,
	"sizes" text[],
	"prices" integer[],
	"fields" text[],
	"old_values" text[],
	"new_values" text[],
	"observed_at" timestamp with time zone NOT NULL,
	CONSTRAINT "change_batches_kind" CHECK ("catalog_internal"."change_batches"."kind" in ('sku', 'price', 'product'))
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."position_shifts" (
	"first_id" bigint PRIMARY KEY NOT NULL,
	"shift" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "catalog_internal"."lineage" ADD COLUMN "started" text;--> statement-breakpoint
CREATE INDEX "change_batches_last_id" ON "catalog_internal"."change_batches" USING btree ("last_id","id");
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.change_batches IS 'Changes of catalog.changes that neither history has: SKUs that appear or become something else, first prices, first metadata. Many in a row, a position each.';
COMMENT ON TABLE catalog_internal.position_shifts IS 'By how much positions of catalog.changes are further than ids, from which id on.';
COMMENT ON COLUMN catalog.price_history.id IS 'Number among all changes, in the order of the commits. Until the server was started anew it is the position in catalog.changes.';
COMMENT ON COLUMN catalog.product_history.id IS 'Number among all changes, in the order of the commits. Until the server was started anew it is the position in catalog.changes.';
DROP FUNCTION catalog_internal.present_lineage();
--> statement-breakpoint
-- Which database this is: what initdb drew for the cluster; the numbers of the database in it and of its sequence of positions,
-- which is made anew where a dump is loaded; and the timeline, which a promoted standby and a recovery to a point in time
-- move on; and when the server was started, because an image of the disk can only be put back while it is not. Null is what this server does
-- not tell this role.
CREATE OR REPLACE FUNCTION catalog_internal.present_lineage(OUT system text, OUT database text, OUT timeline text, OUT started text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT format('%s.%s', d.oid, 'catalog_internal.change_positions'::regclass::oid) INTO database
  FROM pg_database d WHERE d.datname = current_database();
  started := extract(epoch FROM pg_postmaster_start_time())::text;
  BEGIN
    SELECT c.system_identifier::text INTO system FROM pg_control_system() c;
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  BEGIN
    timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.present_lineage() FROM PUBLIC;
--> statement-breakpoint
-- What catalog.changes calls the position of a row with this id: positions leave out what another history than this one may have
-- given out (follow_lineage), and ids do not.
CREATE OR REPLACE FUNCTION catalog_internal.position_of(id bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT position_of.id + coalesce((SELECT max(shift) FROM catalog_internal.position_shifts WHERE first_id <= position_of.id), 0)
$$;

REVOKE ALL ON FUNCTION catalog_internal.position_of(bigint) FROM PUBLIC;
--> statement-breakpoint
-- The id after which the changes after a position begin.
CREATE OR REPLACE FUNCTION catalog_internal.id_before("position" bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT least(id_before.position - coalesce(max(shift) FILTER (WHERE first_id + shift <= id_before.position), 0),
    min(first_id) FILTER (WHERE first_id + shift > id_before.position) - 1)
  FROM catalog_internal.position_shifts
$$;

REVOKE ALL ON FUNCTION catalog_internal.id_before(bigint) FROM PUBLIC;
--> statement-breakpoint
-- The newest position that was dropped. A sequence holds it, because every snapshot sees the same of it. Never within a gap (follow_lineage).
CREATE OR REPLACE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT resumed_at FROM catalog_internal.position_gaps WHERE forked_at < d.oldest AND d.oldest < resumed_at), d.oldest)
  FROM (SELECT catalog_internal.position_of(last_value) AS oldest FROM catalog_internal.dropped_positions) d
$$;

REVOKE ALL ON FUNCTION catalog.changes_oldest() FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_oldest() TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_oldest() IS 'The oldest position that catalog.changes takes.';
--> statement-breakpoint
-- The position from which a reader gets everything that is committed from now on. The newest row that this snapshot
-- sees, not the newest position drawn: what is being committed right now comes after it.
CREATE OR REPLACE FUNCTION catalog.changes_position() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT greatest(catalog.changes_oldest(), catalog_internal.position_of(greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    (SELECT last_id FROM catalog_internal.change_batches ORDER BY last_id DESC LIMIT 1))))
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

REVOKE ALL ON FUNCTION catalog_internal.follow_lineage() FROM PUBLIC;
--> statement-breakpoint
-- For each INSERT, whoever sends it: also a daemon of an earlier version that still runs beside this one, or a
-- person. Before the statement, so before the defaults of its first row draw a position.
-- Without the rest of lock_changes: the table that is being inserted into can get no new partition.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_written() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
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
--> statement-breakpoint
-- Writes many changes in one row, and draws a position for each. Of kind 'sku': each SKU's fields have changed alike, from these old values
-- to these new ones. Of the others, whose old values are null: one change for each element. Under the lock of the changes, as all that draws
-- positions, and therefore last in its transaction (src/store/changes.ts). Returns how many they are.
CREATE OR REPLACE FUNCTION catalog_internal.add_changes(kind text, skus text[], sizes text[], prices integer[], fields text[], old_values text[],
  new_values text[], observed_at timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first bigint;
  last bigint;
BEGIN
  IF skus IS NULL OR cardinality(skus) = 0 THEN
    RETURN 0;
  END IF;
  PERFORM catalog_internal.lock_changes();
  first := nextval('catalog_internal.change_positions');
  last := first + cardinality(skus) * CASE WHEN kind = 'sku' THEN cardinality(fields) ELSE 1 END - 1;
  IF last > first THEN
    PERFORM setval('catalog_internal.change_positions', last);
  END IF;
  INSERT INTO catalog_internal.change_batches (id, last_id, kind, skus, sizes, prices, fields, old_values, new_values, observed_at)
  VALUES (first, last, kind, skus, sizes, prices, fields, old_values, new_values, observed_at);
  RETURN last - first + 1;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_changes(text, text[], text[], integer[], text[], text[], text[], timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- Writes how SKUs differ from what they were (null: they were not there), and returns how many do. Last in its transaction, as every writer of changes.
CREATE OR REPLACE FUNCTION catalog_internal.add_sku_changes(skus text[], states text[], price_sources text[], listed boolean[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  changed bigint;
BEGIN
  SELECT sum(cardinality(g.skus)) INTO changed
  FROM (
    SELECT array_agg(d.sku ORDER BY d.sku) AS skus, d.fields, d.old_values, d.new_values
    FROM (
      SELECT s.sku, array_agg(f.field ORDER BY f.field DESC) AS fields, array_agg(f.old_value ORDER BY f.field DESC) AS old_values,
        array_agg(f.new_value ORDER BY f.field DESC) AS new_values
      FROM unnest(add_sku_changes.skus, states, price_sources, listed) AS o(sku, state, price_source, in_manifest)
      JOIN catalog.skus s ON s.sku = o.sku
      CROSS JOIN LATERAL (VALUES ('state', o.state, s.state), ('price_source', o.price_source, s.price_source),
        ('in_manifest', o.in_manifest::text, s.in_manifest::text)) AS f(field, old_value, new_value)
      WHERE f.old_value IS DISTINCT FROM f.new_value
      GROUP BY s.sku
    ) d
    GROUP BY d.fields, d.old_values, d.new_values
  ) g
  CROSS JOIN LATERAL catalog_internal.add_changes('sku', g.skus, NULL, NULL, g.fields, g.old_values, g.new_values, now());
  RETURN coalesce(changed, 0);
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_sku_changes(text[], text[], text[], boolean[]) FROM PUBLIC;
--> statement-breakpoint
-- Wakes those who follow, with the newest position. Once in a transaction, after its last change.
CREATE OR REPLACE FUNCTION catalog_internal.notify_changes() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_notify('catalog_changes', catalog_internal.position_of(last_value)::text) FROM catalog_internal.change_positions
$$;

REVOKE ALL ON FUNCTION catalog_internal.notify_changes() FROM PUBLIC;
--> statement-breakpoint
-- Sets every sequence that numbers rows to what the rows have: logical replication and a copy of tables leave sequences behind.
-- Each that a column draws from is found in the catalog; numbers of claims are drawn by the daemon. Positions that were dropped
-- reach up to the oldest chunk. Under the lock of the changes; one that is not behind is left alone, as others draw from it.
CREATE OR REPLACE FUNCTION catalog_internal.mend_sequences() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  drawn record;
  newest bigint;
BEGIN
  PERFORM catalog_internal.lock_changes();
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
        (SELECT max(number) FROM catalog_internal.instances))'),
      ('catalog_internal.dropped_positions'::regclass, $query$SELECT
        min(substring(pg_get_expr(relpartbound, oid) FROM $re$FROM \('?(\d+)'?\)$re$)::bigint) - 1
        FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass$query$)
  LOOP
    EXECUTE drawn.query INTO newest;
    IF newest > coalesce(pg_sequence_last_value(drawn.sequence), 0) THEN
      PERFORM setval(drawn.sequence, newest);
      RAISE WARNING 'the sequence % was behind its rows: set to %', drawn.sequence, newest;
    END IF;
  END LOOP;
  PERFORM catalog_internal.add_history_chunks();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mend_sequences() FROM PUBLIC;
--> statement-breakpoint
-- What goes with rows of catalog.skus, whoever deletes them: the ledger, prices with a line in their history, products, rates, draws, hints, requests, kept promises. A trigger
-- and no foreign keys: these would check each row that a baseline or an answer inserts, and lock its SKU for it. The
-- ledger is locked in order of sku, as everyone locks it; history is written last.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog_internal.random_looks, catalog_internal.live_backlog, catalog_internal.hints, catalog_internal.waiting_hints, catalog_internal.refresh_requests, catalog_internal.promise_cases, catalog.products, catalog.prices;
    -- What a reader knows is gone, and nothing tells it: all positions are refused.
    PERFORM catalog_internal.lock_changes();
    -- Of prices from before nothing is known, and of those from now on everything.
    INSERT INTO catalog_internal.history_milestones (position, at) VALUES (nextval('catalog_internal.change_positions'), clock_timestamp())
    ON CONFLICT (position) DO UPDATE SET at = excluded.at;
    PERFORM setval('catalog_internal.dropped_positions', last_value) FROM catalog_internal.change_positions;
    RETURN NULL;
  END IF;
  PERFORM FROM catalog_internal.due WHERE sku IN (SELECT sku FROM gone) ORDER BY sku FOR UPDATE;
  DELETE FROM catalog_internal.due USING gone WHERE due.sku = gone.sku;
  DELETE FROM catalog_internal.unreported_moves USING gone WHERE unreported_moves.sku = gone.sku;
  DELETE FROM catalog_internal.live_rates USING gone WHERE live_rates.sku = gone.sku;
  DELETE FROM catalog_internal.random_looks USING gone WHERE random_looks.sku = gone.sku;
  DELETE FROM catalog_internal.live_backlog USING gone WHERE live_backlog.sku = gone.sku;
  DELETE FROM catalog_internal.hints USING gone WHERE hints.sku = gone.sku;
  DELETE FROM catalog_internal.waiting_hints USING gone WHERE waiting_hints.sku = gone.sku;
  DELETE FROM catalog_internal.refresh_requests USING gone WHERE refresh_requests.sku = gone.sku;
  DELETE FROM catalog_internal.promise_cases USING gone WHERE promise_cases.sku = gone.sku;
  DELETE FROM catalog.products USING gone WHERE products.sku = gone.sku;
  IF EXISTS (SELECT FROM catalog.prices JOIN gone USING (sku)) THEN
    PERFORM catalog_internal.lock_changes(), catalog_internal.add_history_chunks();
    WITH priced AS (DELETE FROM catalog.prices USING gone WHERE prices.sku = gone.sku RETURNING prices.sku, prices.size, prices.price)
    INSERT INTO catalog.price_history (sku, size, old_price, new_price, observed_at)
    SELECT sku, size, price, NULL, now() FROM priced WHERE price IS NOT NULL ORDER BY sku, size;
  END IF;
  PERFORM catalog_internal.add_changes('sku', g.skus, NULL, NULL, ARRAY['state'], ARRAY[g.state], ARRAY[NULL], now())
  FROM (SELECT state, array_agg(sku ORDER BY sku) AS skus FROM gone GROUP BY state ORDER BY state) g;
  PERFORM catalog_internal.notify_changes() WHERE EXISTS (SELECT FROM gone);
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.forget_with_skus() FROM PUBLIC;

CREATE OR REPLACE TRIGGER forget_with_skus AFTER DELETE ON catalog.skus REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.forget_with_skus();
CREATE OR REPLACE TRIGGER forget_all AFTER TRUNCATE ON catalog.skus
FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.forget_with_skus();

-- Also where rows are deleted as a replica does (session_replication_role).
ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_with_skus;
ALTER TABLE catalog.skus ENABLE ALWAYS TRIGGER forget_all;
--> statement-breakpoint
-- Tells the ledger of `most` SKUs what is pending of `watched`, and whether there is more. A SKU that is watched anew is
-- marked, and mirrored whether or not a manifest lists it. One whose weight changed, or that is watched no longer, is not marked
-- for that; it gets its new rank at once where it is urgent, and with its next mark elsewhere. A promise of its age holds from here on: one that was
-- never asked for is to be at once.
-- Locks are taken in the order of everyone: lock_new_skus, known SKUs in order of sku, new SKUs, the ledger in order of
-- sku. Every row of the ledger is locked before its rank is compared, so that a concurrent mark has either read the
-- weight that counts now or is seen here. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.watched_to_ledger(most integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  told text[];
  marked text[];
  added text[];
BEGIN
  SELECT array_agg(sku), array_agg(sku) FILTER (WHERE pending = 'mark') INTO told, marked
  FROM (SELECT sku, pending FROM catalog_internal.watched WHERE pending IS NOT NULL ORDER BY sku LIMIT most) o;
  IF told IS NULL THEN
    RETURN false;
  END IF;
  IF EXISTS (SELECT FROM unnest(marked) AS m(sku) WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = m.sku)) THEN
    PERFORM catalog_internal.lock_new_skus();
  END IF;
  PERFORM FROM catalog.skus WHERE sku = ANY (marked) ORDER BY sku FOR UPDATE;
  WITH new AS (
    INSERT INTO catalog.skus (sku, in_manifest) SELECT sku, false FROM unnest(marked) AS sku ORDER BY sku ON CONFLICT DO NOTHING RETURNING sku
  )
  SELECT array_agg(sku) INTO added FROM new;
  PERFORM FROM catalog_internal.due WHERE sku = ANY (told) ORDER BY sku FOR UPDATE;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM catalog_internal.watched w
  WHERE w.sku = ANY (told) AND d.sku = w.sku AND d.lane = 1 AND d.rank <> coalesce(w.weight, 1) AND d.rank < 'Infinity';
  IF marked IS NOT NULL THEN
    PERFORM catalog_internal.mark_due(marked, 'watched');
  END IF;
  -- Answers that were applied meanwhile are seen, because their rows are locked.
  UPDATE catalog_internal.due d SET promised_at = n.promised_at,
    -- One that is late from the beginning is no more urgent than one that was kept until now.
    promised_by = CASE WHEN n.promised_at IS NOT NULL THEN greatest(n.promised_at, n.promised_since) + (n.max_age - n.every) END
  FROM (
    SELECT w.sku, w.promised_since, make_interval(secs => w.max_age) AS max_age, i.every, CASE
      WHEN NOT w.feasible OR w.max_age IS NULL THEN NULL
      WHEN s.state = 'pending' THEN w.promised_since
      ELSE s.asked_at + i.every
    END AS promised_at
    FROM catalog_internal.watched w JOIN catalog.skus s ON s.sku = w.sku
    CROSS JOIN LATERAL (SELECT make_interval(secs => catalog_internal.promised_interval(w.max_age)) AS every) i
    WHERE w.sku = ANY (told)
  ) n
  WHERE d.sku = n.sku AND (d.promised_at IS NOT NULL OR n.promised_at IS NOT NULL);
  DELETE FROM catalog_internal.promise_cases p USING catalog_internal.watched w
  WHERE w.sku = ANY (told) AND w.max_age IS NULL AND p.sku = w.sku;
  DELETE FROM catalog_internal.watched WHERE sku = ANY (told) AND weight IS NULL;
  UPDATE catalog_internal.watched SET pending = NULL WHERE sku = ANY (told);
  IF catalog_internal.add_sku_changes(added, NULL, NULL, NULL) > 0 THEN
    PERFORM catalog_internal.notify_changes();
  END IF;
  RETURN cardinality(told) = most;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.watched_to_ledger(integer) FROM PUBLIC;
--> statement-breakpoint
-- Reads first and judges then: from the reading on nothing can be dropped until the transaction ends, and what was
-- dropped before is said by a sequence, which is the same in every snapshot.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  start bigint;
  until bigint;
  bound bigint;
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
  start := catalog_internal.id_before(after);
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
        WHERE b.kind = 'sku' AND b.last_id > start AND b.id <= least(until, bound)
        UNION ALL
        SELECT b.id + e.n - 1, b.kind, e.sku, e.size, NULL, e.price, e.field, NULL, e.new_value, false, b.observed_at
        FROM catalog_internal.change_batches b
        CROSS JOIN LATERAL unnest(b.skus, b.sizes, b.prices, b.fields, b.new_values) WITH ORDINALITY AS e(sku, size, price, field, new_value, n)
        WHERE b.kind <> 'sku' AND b.last_id > start AND b.id <= least(until, bound)
      ) a(id, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
      WHERE a.id > start ORDER BY a.id LIMIT left_over;
    GET DIAGNOSTICS found = ROW_COUNT;
    left_over := left_over - found;
    EXIT WHEN left_over <= 0 OR until <= bound;
    start := bound;
  END LOOP;
  SELECT catalog_internal.position_of(last_value) INTO oldest FROM catalog_internal.dropped_positions;
  SELECT catalog_internal.position_of(last_value) INTO drawn FROM catalog_internal.change_positions;
  SELECT resumed_at INTO resumed FROM catalog_internal.position_gaps WHERE forked_at < after AND after < resumed_at;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  END IF;
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
-- The mirror as changes that would make it, SKU by SKU; every row has the position to go on from. What pieces do not show of what came between them
-- comes again with the changes after the first piece.
CREATE OR REPLACE FUNCTION catalog.changes_snapshot(after text DEFAULT '', skus integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
  IF after IS NULL OR skus IS NULL OR skus < 1 THEN
    RAISE EXCEPTION 'catalog.changes_snapshot needs a SKU to go on after, or the empty text, and a number of SKUs from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY
    WITH here AS MATERIALIZED (SELECT catalog.changes_position() AS position),
    piece AS MATERIALIZED (
      SELECT s.sku, s.state, s.price_source, s.in_manifest, s.first_seen_at FROM catalog.skus s
      WHERE s.sku > changes_snapshot.after COLLATE "C" ORDER BY s.sku LIMIT changes_snapshot.skus
    )
    SELECT h.position, c.* FROM here h CROSS JOIN (
      SELECT 'sku', p.sku, NULL::text, NULL::integer, NULL::integer, f.field, NULL::text, f.new_value, false, p.first_seen_at
      FROM piece p CROSS JOIN LATERAL (VALUES ('state', p.state), ('price_source', p.price_source), ('in_manifest', p.in_manifest::text)) f(field, new_value)
      WHERE f.new_value IS NOT NULL
      UNION ALL
      SELECT 'product', p.sku, NULL, NULL, NULL, f.key, NULL, f.value, false, d.changed_at
      FROM piece p JOIN catalog.products d ON d.sku = p.sku
      CROSS JOIN LATERAL jsonb_each_text(to_jsonb(d) - '{sku,refreshed_at,changed_at}'::text[]) f
      WHERE f.value IS NOT NULL
      UNION ALL
      SELECT 'price', p.sku, d.size, NULL, d.price, NULL, NULL, NULL, false, d.changed_at
      FROM piece p JOIN catalog.prices d ON d.sku = p.sku
      WHERE d.price IS NOT NULL
    ) c(kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
    ORDER BY c.sku, c.kind = 'price', c.kind = 'product', c.field DESC, c.size;
END
$$;

REVOKE ALL ON FUNCTION catalog.changes_snapshot(text, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.changes_snapshot(text, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.changes_snapshot(text, integer) IS 'The next so many SKUs after one, in order of sku, with their prices and metadata, in the form of catalog.changes: for a first copy. position is where to go on from after the last piece; of pieces from several transactions, that of the first. No row: there are no more.';
--> statement-breakpoint
-- An object after those of its members that moved are what they are now, given as they were and as they are: members of members, too.
-- What was there and is not any longer is only in the first.
CREATE OR REPLACE FUNCTION catalog_internal.merged(held jsonb, were jsonb, are jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF jsonb_typeof(held) IS DISTINCT FROM 'object' OR jsonb_typeof(were) IS DISTINCT FROM 'object' OR jsonb_typeof(are) IS DISTINCT FROM 'object' THEN
    RETURN are;
  END IF;
  RETURN held - ARRAY(SELECT jsonb_object_keys(were) EXCEPT SELECT jsonb_object_keys(are))
    || coalesce((SELECT jsonb_object_agg(m.key, catalog_internal.merged(held -> m.key, were -> m.key, m.value)) FROM jsonb_each(are) m), '{}');
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.merged(jsonb, jsonb, jsonb) FROM PUBLIC;
--> statement-breakpoint
-- A column's value is the member of its name, too; the size type is none of the product's own.
CREATE OR REPLACE FUNCTION catalog.product_after(product jsonb, field text, old_value text, new_value text) RETURNS jsonb
LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN field = 'product' THEN catalog_internal.merged(product, old_value::jsonb, new_value::jsonb)
    WHEN field = 'size_map_size_type' OR product IS NULL THEN product
    ELSE product || jsonb_build_object(field, new_value)
  END
$$;

REVOKE ALL ON FUNCTION catalog.product_after(jsonb, text, text, text) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.product_after(jsonb, text, text, text) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.product_after(jsonb, text, text, text) IS 'The product object after a change of kind product (catalog.changes), for who keeps a copy of it.';
--> statement-breakpoint
-- Puts right when a clock that was ahead has observed changes. Their positions stay.
CREATE OR REPLACE FUNCTION catalog_internal.redate_history(shift interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment timestamptz := clock_timestamp();
BEGIN
  UPDATE catalog.price_history SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog.product_history SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog_internal.change_batches SET observed_at = catalog_internal.happened(observed_at, moment, shift) WHERE observed_at > moment;
  UPDATE catalog_internal.history_milestones SET at = catalog_internal.happened(at, moment, shift) WHERE at > moment;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.redate_history(interval) FROM PUBLIC;
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error, or for a second answer, is asked again at once. counts_as_live null leaves the live
-- flag as it is.
-- What is out of scope is marked in outside_due_at and stays unclaimed (apply_scope), and SKUs that the ledger does not know yet are sorted by the rules.
-- A SKU that was asked for by name (refresh_skus) stays ahead of all others until it is answered. Any other rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
-- the ledger of another weight (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
  unsorted text[];
  is_scoped boolean;
BEGIN
  -- Until this transaction ends nobody changes what is in scope.
  LOCK TABLE catalog_internal.lock_scope IN ROW EXCLUSIVE MODE;
  is_scoped := (SELECT scoped FROM catalog_internal.scoping);
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.outside_due_at IS NOT NULL THEN d.lane WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE
        WHEN d.reason = 'scope' THEN d.reason
        -- By this apply_scope tells that it was reported.
        WHEN d.lane = 0 AND excluded.reason IN ('new', 'changed') THEN excluded.reason
        WHEN d.lane = 0 AND d.outside_due_at <= now() AND catalog_internal.lane_of(d.reason) <= excluded.lane THEN d.reason
        WHEN d.lane > 0 AND d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason
        ELSE excluded.reason
      END,
      live = coalesce(counts_as_live, d.live),
      due_at = CASE WHEN d.outside_due_at IS NULL THEN least(d.due_at, excluded.due_at) ELSE d.due_at END,
      outside_due_at = CASE WHEN d.outside_due_at IS NOT NULL THEN least(d.outside_due_at, excluded.due_at) END,
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND (d.failures > 0 OR d.doubt IS NOT NULL) AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank, is_scoped AND (generation = 1 OR outside_due_at IS NOT NULL) AS is_unsorted
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1), array_agg(sku) FILTER (WHERE is_unsorted)
  FROM written INTO marked, ranked, unsorted;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog_internal.watched w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1) AND d.rank < 'Infinity';
  IF unsorted IS NOT NULL THEN
    PERFORM catalog_internal.apply_scope(unsorted);
  END IF;
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
