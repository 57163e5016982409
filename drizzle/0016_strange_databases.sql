-- Strange databases: restored ones, promoted standbys, sequences behind their rows, rows deleted by hand, another partner.
CREATE TABLE "catalog_internal"."account" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"base_url" text,
	"salt" text,
	"key_hash" text,
	"key_since" timestamp with time zone,
	"key_replaced" boolean DEFAULT false NOT NULL,
	CONSTRAINT "account_one_row" CHECK ("catalog_internal"."account"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."lineage" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"system" text,
	"database" text,
	"timeline" text,
	CONSTRAINT "lineage_one_row" CHECK ("catalog_internal"."lineage"."id")
);
--> statement-breakpoint
CREATE TABLE "catalog_internal"."position_gaps" (
	"forked_at" bigint PRIMARY KEY NOT NULL,
	"resumed_at" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
INSERT INTO catalog_internal.account DEFAULT VALUES;
INSERT INTO catalog_internal.lineage DEFAULT VALUES;
--> statement-breakpoint
-- Names in keys are compared byte by byte from here on: an upgrade of the operating system moves the rules of its collations, and
-- indexes that are sorted by the old ones then miss rows. No table is rewritten, and every index that holds such a column is built anew.
-- In the order in which everyone locks, so that no daemon of the version before is in the way half-way.
DO $$
DECLARE
  others text;
BEGIN
  SELECT string_agg(DISTINCT v.oid::regclass::text, ', ') INTO others
  FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
  JOIN pg_class t ON t.oid = d.refobjid LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND t.relnamespace = 'catalog'::regnamespace AND v.relnamespace NOT IN ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
    AND (a.attname IN ('sku', 'size') OR t.relname IN ('sku_trust', 'current_prices'));
  IF others IS NOT NULL THEN
    RAISE EXCEPTION 'these views read what has to be made again: %. Keep their definitions (pg_get_viewdef), drop them, migrate, and create them again', others
      USING ERRCODE = 'dependent_objects_still_exist';
  END IF;
END
$$;
--> statement-breakpoint
LOCK TABLE catalog_internal.tasks, catalog.watchlist, catalog_internal.watched, catalog.skus, catalog_internal.due, catalog_internal.unreported_moves,
  catalog_internal.live_rates, catalog.prices, catalog.products, catalog.product_history, catalog.price_history IN ACCESS EXCLUSIVE MODE;
--> statement-breakpoint
-- What others than the mirror's own roles were granted on them.
CREATE TEMPORARY TABLE kept_rights ON COMMIT DROP AS
SELECT format('GRANT %s ON TABLE %s TO %s', privilege_type, c.oid::regclass, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS statement
FROM pg_class c, aclexplode(relacl) WHERE relnamespace = 'catalog'::regnamespace AND relname IN ('current_prices', 'sku_trust') AND grantee <> relowner
UNION ALL
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %s', p.oid::regprocedure, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
FROM pg_proc p, aclexplode(proacl)
WHERE pronamespace = 'catalog'::regnamespace AND proname IN ('lowest_prices', 'movers', 'skus_past_target') AND grantee <> proowner;
--> statement-breakpoint
-- They name the columns, and are made again below.
DROP FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean);
DROP FUNCTION catalog.movers(interval, integer);
DROP FUNCTION catalog.skus_past_target(integer);
DROP FUNCTION catalog_internal.past_moves(text, timestamptz);
DROP VIEW catalog.current_prices;
DROP VIEW catalog.sku_trust;
DROP INDEX catalog.products_brand_model;
--> statement-breakpoint
ALTER TABLE catalog_internal.tasks ALTER COLUMN task TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog.watchlist ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog_internal.watched ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog.skus ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog_internal.due ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog_internal.unreported_moves ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog_internal.live_rates ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog.prices ALTER COLUMN sku TYPE text COLLATE "C", ALTER COLUMN size TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog.products ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog.product_history ALTER COLUMN sku TYPE text COLLATE "C";
--> statement-breakpoint
ALTER TABLE catalog.price_history ALTER COLUMN sku TYPE text COLLATE "C", ALTER COLUMN size TYPE text COLLATE "C";
--> statement-breakpoint
CREATE INDEX products_brand_model ON catalog.products USING btree (left(brand, 200) COLLATE "C", left(model, 200) COLLATE "C");
--> statement-breakpoint
-- Which database this is: what initdb drew for the cluster; the numbers of the database in it and of its sequence of positions,
-- which is made anew where a dump is loaded; and the timeline, which a promoted standby and a recovery to a point in time
-- move on. Null is what this server does not tell this role; a restored image of the disk differs in nothing.
CREATE OR REPLACE FUNCTION catalog_internal.present_lineage(OUT system text, OUT database text, OUT timeline text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT format('%s.%s', d.oid, 'catalog_internal.change_positions'::regclass::oid) INTO database
  FROM pg_database d WHERE d.datname = current_database();
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
-- The newest position that was dropped. A sequence holds it, because every snapshot sees the same of it. Never within a gap (follow_lineage).
CREATE OR REPLACE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT resumed_at FROM catalog_internal.position_gaps WHERE forked_at < d.last_value AND d.last_value < resumed_at), d.last_value)
  FROM catalog_internal.dropped_positions d
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
  SELECT greatest(
    (SELECT id FROM catalog.price_history ORDER BY id DESC LIMIT 1),
    (SELECT id FROM catalog.product_history ORDER BY id DESC LIMIT 1),
    catalog.changes_oldest())
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
--> statement-breakpoint
-- A transaction that writes history takes this lock before it draws a position, and holds it until it ends: so
-- positions come in the order of the commits, and a reader needs to remember one number only. Other ways, and why
-- not: src/store/changes.ts. The first to take it in another database than before makes a gap in the positions.
CREATE OR REPLACE FUNCTION catalog_internal.lock_changes() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE catalog_internal.lock_changes IN EXCLUSIVE MODE;
  PERFORM catalog_internal.follow_lineage();
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.lock_changes() FROM PUBLIC;
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

-- Also where rows are put in as a replica does (session_replication_role).
ALTER TABLE catalog.price_history ENABLE ALWAYS TRIGGER in_order;
ALTER TABLE catalog.product_history ENABLE ALWAYS TRIGGER in_order;
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
      ('catalog_internal.claim_numbers'::regclass, 'SELECT greatest(
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
-- Reads first and judges then: from the reading on nothing can be dropped until the transaction ends, and what was
-- dropped before is said by a sequence, which is the same in every snapshot.
CREATE OR REPLACE FUNCTION catalog.changes(after bigint, most integer DEFAULT 1000)
RETURNS TABLE ("position" bigint, kind text, sku text, size text, old_price integer, new_price integer,
  field text, old_value text, new_value text, meaning_changed boolean, observed_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  oldest bigint;
  drawn bigint;
  resumed bigint;
BEGIN
  IF after IS NULL OR most IS NULL OR most < 1 THEN
    RAISE EXCEPTION 'catalog.changes needs a position and a number of changes from 1 on' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY
    SELECT * FROM (
      (SELECT h.id, 'price', h.sku, h.size, h.old_price, h.new_price, NULL::text, NULL::text, NULL::text, h.size_type_changed, h.observed_at
       FROM catalog.price_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
      UNION ALL
      (SELECT h.id, 'product', h.sku, NULL, NULL, NULL, h.field, h.old_value, h.new_value,
              h.field = 'size_map_size_type' AND h.old_value IS NOT NULL, h.observed_at
       FROM catalog.product_history h WHERE h.id > changes.after ORDER BY h.id LIMIT changes.most)
    ) all_kinds ORDER BY 1 LIMIT changes.most;
  SELECT last_value INTO oldest FROM catalog_internal.dropped_positions;
  SELECT last_value INTO drawn FROM catalog_internal.change_positions;
  SELECT resumed_at INTO resumed FROM catalog_internal.position_gaps WHERE forked_at < after AND after < resumed_at;
  IF after < oldest THEN
    RAISE EXCEPTION 'the changes after position % are no longer kept: the oldest position to go on from is %', after, oldest
      USING ERRCODE = 'CM001', HINT = 'Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Remember catalog.changes_position(), read the tables afresh, and follow from there.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Remember catalog.changes_position(), read the tables afresh, and follow from there.';
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

COMMENT ON FUNCTION catalog.changes(bigint, integer) IS 'Price and product changes after a position, in the order of their commits, at most so many. Remember the last position. Fails with SQLSTATE CM001 where changes after the position are no longer kept, or the position is none of this database.';
--> statement-breakpoint
-- Rows that were left when their SKUs were deleted by hand: asked for again and again, and never answered for.
DELETE FROM catalog_internal.due l WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = l.sku);
DELETE FROM catalog_internal.unreported_moves u WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = u.sku);
DELETE FROM catalog_internal.live_rates r WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = r.sku);
DELETE FROM catalog.products p WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = p.sku);
DELETE FROM catalog.prices p WHERE NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = p.sku);
--> statement-breakpoint
-- Marks SKUs due; nothing else does. Returns how many rows it wrote.
-- A row that is already due keeps its earlier due_at and its better lane. Every mark moves the generation on, so that
-- no answer to an earlier request settles it. The wait of a deferred SKU is not shortened, nor that of one with which a call of
-- its own failed, while a SKU that waits after any other error is tried again at once. counts_as_live null leaves the live
-- flag as it is.
-- The rank is the weight as it stands once the rows are locked, because locking them may have waited for whoever tells
-- the ledger of another weight (watched_to_ledger). Hence PL/pgSQL, in which each statement sees what was committed before it began; in a
-- function in SQL all statements see the same.
CREATE OR REPLACE FUNCTION catalog_internal.mark_due(skus text[], reason text, counts_as_live boolean DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  marked bigint;
  ranked text[];
BEGIN
  WITH written AS (
    INSERT INTO catalog_internal.due AS d (sku, lane, reason, live, due_at, generation)
    SELECT s, catalog_internal.lane_of(mark_due.reason), mark_due.reason, coalesce(counts_as_live, false), now(), 1
    FROM unnest(mark_due.skus) AS s
    ORDER BY s COLLATE "C"
    ON CONFLICT (sku) DO UPDATE SET
      lane = CASE WHEN d.due_at <= now() THEN least(d.lane, excluded.lane) ELSE excluded.lane END,
      reason = CASE WHEN d.due_at <= now() AND d.lane <= excluded.lane THEN d.reason ELSE excluded.reason END,
      live = coalesce(counts_as_live, d.live),
      due_at = least(d.due_at, excluded.due_at),
      generation = d.generation + 1,
      held_until = CASE WHEN d.claim IS NULL AND d.deferrals = 0 AND d.failures > 0 AND d.largest_call IS NULL THEN NULL ELSE d.held_until END
    RETURNING sku, rank
  )
  SELECT count(*), array_agg(sku) FILTER (WHERE rank <> 1) FROM written INTO marked, ranked;
  UPDATE catalog_internal.due d SET rank = coalesce(w.weight, 1)
  FROM (
    SELECT unnest(ranked) AS sku UNION SELECT w.sku FROM catalog_internal.watched w WHERE w.sku = ANY (mark_due.skus)
  ) named LEFT JOIN catalog_internal.watched w USING (sku)
  WHERE d.sku = named.sku AND d.rank <> coalesce(w.weight, 1);
  RETURN marked;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.mark_due(text[], text, boolean) FROM PUBLIC;
--> statement-breakpoint
-- What goes with rows of catalog.skus, whoever deletes them: the ledger, prices with a line in their history, products, rates. A trigger
-- and no foreign keys: these would check each row that a baseline or an answer inserts, and lock its SKU for it. The
-- ledger is locked in order of sku, as everyone locks it; history is written last.
CREATE OR REPLACE FUNCTION catalog_internal.forget_with_skus() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    TRUNCATE catalog_internal.due, catalog_internal.unreported_moves, catalog_internal.live_rates, catalog.products, catalog.prices;
    RETURN NULL;
  END IF;
  PERFORM FROM catalog_internal.due WHERE sku IN (SELECT sku FROM gone) ORDER BY sku FOR UPDATE;
  DELETE FROM catalog_internal.due USING gone WHERE due.sku = gone.sku;
  DELETE FROM catalog_internal.unreported_moves USING gone WHERE unreported_moves.sku = gone.sku;
  DELETE FROM catalog_internal.live_rates USING gone WHERE live_rates.sku = gone.sku;
  DELETE FROM catalog.products USING gone WHERE products.sku = gone.sku;
  IF EXISTS (SELECT FROM catalog.prices JOIN gone USING (sku)) THEN
    PERFORM catalog_internal.lock_changes(), catalog_internal.add_history_chunks();
    WITH priced AS (DELETE FROM catalog.prices USING gone WHERE prices.sku = gone.sku RETURNING prices.sku, prices.size, prices.price)
    INSERT INTO catalog.price_history (sku, size, old_price, new_price, observed_at)
    SELECT sku, size, price, NULL, now() FROM priced WHERE price IS NOT NULL ORDER BY sku, size;
    PERFORM pg_notify('catalog_changes', last_value::text) FROM catalog_internal.change_positions;
  END IF;
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
-- Copies into `watched` what changed in catalog.watchlist since it was last read: what sellers' statements recorded, or, with
-- `everything`, all that differs, as rows do that came by replication and fired no trigger. At most `most` SKUs are watched;
-- those of the greatest weights come first, and others once there is room. Called with the row of `watching` locked.
-- Planned each time: a plan from when there were few rows would read all of them for each.
CREATE OR REPLACE FUNCTION catalog_internal.read_watchlist(everything boolean, most integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  WITH taken AS (
    DELETE FROM catalog_internal.watch_changes RETURNING added, skus
  ), named AS (
    SELECT sku, bool_or(added) AS added FROM (
      SELECT unnest(skus) AS sku, added FROM taken
      UNION ALL SELECT sku, false FROM catalog_internal.watched WHERE everything OR EXISTS (SELECT FROM taken WHERE skus IS NULL)
      UNION ALL SELECT sku, false FROM catalog.watchlist WHERE everything
    ) n GROUP BY sku
  ), present AS MATERIALIZED (
    SELECT n.sku, w.weight, o.weight AS was, n.added OR o.weight IS NULL AS is_new
    FROM named n LEFT JOIN catalog.watchlist w ON w.sku = n.sku LEFT JOIN catalog_internal.watched o ON o.sku = n.sku
    WHERE w.weight IS DISTINCT FROM o.weight OR (n.added AND w.weight IS NOT NULL)
  ), room AS (
    SELECT most - count(weight) + (SELECT count(*) FROM present WHERE weight IS NULL) AS skus FROM catalog_internal.watched
  )
  INSERT INTO catalog_internal.watched AS o (sku, weight, pending)
  SELECT sku, weight, CASE WHEN is_new AND weight IS NOT NULL THEN 'mark' ELSE 'rank' END
  FROM (SELECT *, row_number() OVER (PARTITION BY was IS NULL ORDER BY weight DESC, sku) AS place FROM present) p, room
  WHERE was IS NOT NULL OR place <= room.skus
  ON CONFLICT (sku) DO UPDATE SET weight = excluded.weight,
    pending = CASE WHEN o.pending = 'mark' AND excluded.weight IS NOT NULL THEN 'mark' ELSE excluded.pending END;
  IF everything THEN
    -- Watched, but deleted from the mirror by somebody.
    UPDATE catalog_internal.watched o SET pending = 'mark'
    WHERE weight IS NOT NULL AND pending IS NULL AND NOT EXISTS (SELECT FROM catalog.skus s WHERE s.sku = o.sku);
    UPDATE catalog_internal.watching SET left_out = l.skus
    FROM (SELECT count(*) AS skus FROM catalog.watchlist w WHERE NOT EXISTS (SELECT FROM catalog_internal.watched o WHERE o.sku = w.sku)) l
    WHERE left_out <> l.skus;
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.read_watchlist(boolean, integer) FROM PUBLIC;
--> statement-breakpoint
-- In how many answers of the last three days a price of the SKU had moved, and how many minutes that covers (since
-- its first price, three days at most): what its history says of its rate of change when it becomes live. The
-- condition on id leaves older partitions unopened.
CREATE OR REPLACE FUNCTION catalog_internal.past_moves(of_sku text, first_priced_at timestamptz, OUT moves integer, OUT minutes double precision)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT count(DISTINCT h.observed_at)::integer,
         CASE WHEN first_priced_at IS NULL THEN 0
           ELSE extract(epoch FROM least(now() - first_priced_at, interval '3 days')) / 60
         END
  FROM catalog.price_history h
  WHERE h.sku = of_sku AND h.observed_at > now() - interval '3 days'
    AND h.id > catalog_internal.position_before(now() - interval '3 days');
END;

REVOKE ALL ON FUNCTION catalog_internal.past_moves(text, timestamptz) FROM PUBLIC;
--> statement-breakpoint
-- How far each SKU's prices can be trusted, for every other reader of it. `stale` is what current_prices shows;
-- `fresh` is what the metric fresh_skus counts; `doubt` also covers what these two know nothing of: the catalog as a
-- whole, and what the sizes mean.
CREATE OR REPLACE VIEW catalog.sku_trust AS
SELECT s.sku, s.state, s.price_source, s.in_manifest, s.priced_at,
       CASE WHEN s.state = 'priced' THEN greatest(now() - s.priced_at, interval '0') END AS price_age,
       CASE WHEN s.state = 'priced' THEN k.target END AS target_age,
       b.past_target,
       k.owed,
       CASE WHEN k.owed THEN d.reason END AS owed_reason,
       CASE WHEN NOT k.owed THEN NULL
            WHEN d.deferrals > 0 THEN 'deferred'
            WHEN d.failures > 0 THEN 'error'
            ELSE (catalog_internal.lane_names())[d.lane]
       END AS owed_lane,
       CASE WHEN k.owed THEN d.due_at END AS owed_since,
       coalesce(d.deferrals, 0) AS deferrals,
       coalesce(d.failures, 0) AS failures,
       CASE WHEN NOT t.at_work OR d.due_at = 'infinity' THEN NULL
            WHEN NOT k.owed THEN greatest(d.due_at, d.held_until, t.backoff_until)
            WHEN d.held_until > now() THEN greatest(CASE WHEN d.claim IS NULL THEN d.held_until ELSE now() END, t.backoff_until)
            ELSE greatest(now(), t.backoff_until)
                   + make_interval(secs => (SELECT catalog_internal.seconds_ahead())[CASE WHEN d.live THEN cardinality(catalog_internal.lane_names()) + 1 ELSE d.lane END])
       END AS next_look_at,
       b.stale,
       s.state = 'priced' AND s.priced_at <= u.believable_until AND NOT b.stale AND NOT b.past_target AS fresh,
       c.doubt,
       c.doubt IS NULL AS actionable
FROM catalog.skus s
LEFT JOIN catalog_internal.due d ON d.sku = s.sku
CROSS JOIN catalog_internal.trust_terms() t
CROSS JOIN catalog_internal.believable_until() AS u(believable_until)
CROSS JOIN LATERAL (
  SELECT coalesce(d.due_at <= now(), false) AS owed,
         coalesce(d.due_at <= now() AND d.reason <> 'metadata', false) AS reprice_due,
         s.price_source IS NOT DISTINCT FROM 'live' OR coalesce(d.live AND d.reason = 'live', false)
           OR (s.state = 'priced' AND NOT s.in_manifest) AS refreshed_as_live,
         -- No delta reports the moves of a live SKU, nor those of one that no manifest lists.
         CASE WHEN s.price_source IS NOT DISTINCT FROM 'live' OR NOT s.in_manifest THEN t.live_target
              WHEN d.live AND d.reason = 'live' THEN least(t.live_target, t.snapshot_target)
              ELSE t.snapshot_target
         END AS target
) k
CROSS JOIN LATERAL (
  SELECT s.state = 'priced' AND coalesce(s.priced_at, '-infinity') < now() - k.target AS past_target,
         k.reprice_due OR (k.refreshed_as_live AND coalesce(s.priced_at, '-infinity') < now() - t.live_target) AS stale
) b
CROSS JOIN LATERAL (
  SELECT CASE
           WHEN s.state <> 'priced' THEN s.state
           WHEN s.priced_at > u.believable_until OR k.owed AND d.reason = 'clock' THEN 'clock'
           WHEN k.reprice_due THEN 'owed'
           WHEN b.past_target OR b.stale THEN 'past_target'
           WHEN k.owed THEN 'size_type'
           WHEN t.incident AND s.priced_at < now() - t.live_target THEN 'incident'
           -- While nothing reports its moves, it is as good as a live one: by age.
           WHEN s.price_source IS DISTINCT FROM 'live'
                AND (t.catalog_doubt = 'no_baseline' OR s.priced_at < now() - t.live_target) THEN t.catalog_doubt
         END AS doubt
) c;

COMMENT ON VIEW catalog.sku_trust IS 'How far the prices of each SKU can be trusted, one row a SKU: WHERE actionable leaves those to act on; doubt says why not.';
COMMENT ON COLUMN catalog.sku_trust.sku IS 'SKU in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.state IS 'pending, priced, not_found or removed, as in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.price_source IS 'snapshot, live, or null while unknown, as in catalog.skus.';
COMMENT ON COLUMN catalog.sku_trust.in_manifest IS 'Listed by the newest manifest as corrected since. False: no delta reports its price moves, so it is refreshed and judged by age, as a live SKU is.';
COMMENT ON COLUMN catalog.sku_trust.priced_at IS 'When the partner last answered for this SKU.';
COMMENT ON COLUMN catalog.sku_trust.price_age IS 'Age of its prices; null where it has none (state other than priced).';
COMMENT ON COLUMN catalog.sku_trust.target_age IS 'Age that its prices are not to exceed: LIVE_INTERVAL for a live SKU and for one that is not in_manifest, SWEEP_INTERVAL for any other (METADATA_INTERVAL where that is shorter, or sweeps are off); null where it has none.';
COMMENT ON COLUMN catalog.sku_trust.past_target IS 'True where price_age exceeds target_age.';
COMMENT ON COLUMN catalog.sku_trust.owed IS 'True while a refresh of the SKU is due, also while it waits after being deferred or failing.';
COMMENT ON COLUMN catalog.sku_trust.owed_reason IS 'Why a refresh is due: new, changed, live, unlisted (not in_manifest), sweep, metadata, removed, absent (from a new manifest), watched (catalog.watchlist), refresh (the command), clock (asked while the clock of Postgres was ahead); null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_lane IS 'How the due refresh is served: changed (urgent: also watched and refresh), live (also unlisted), new (also clock), deferred or error (waits, or has waited), metadata, sweep; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.owed_since IS 'Since when the refresh is due; null: none is due.';
COMMENT ON COLUMN catalog.sku_trust.deferrals IS 'How often in a row the partner deferred the SKU.';
COMMENT ON COLUMN catalog.sku_trust.failures IS 'How often in a row the partner named the SKU in errors, its answer could not be read, or a call with this SKU alone failed.';
COMMENT ON COLUMN catalog.sku_trust.next_look_at IS 'Estimate, no promise: the planned time of a refresh that is not due yet (a spare slot in a call can bring it sooner), the end of the wait of a deferred or failed one, else now and what it takes at the present pace to look at all that was at least as urgent at the last count. Null where unknown: nothing planned, no daemon at work, requests refused, or nothing counted within five minutes.';
COMMENT ON COLUMN catalog.sku_trust.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that is not in_manifest, is older than LIVE_INTERVAL: the same as in catalog.current_prices.';
COMMENT ON COLUMN catalog.sku_trust.fresh IS 'True where the SKU is priced, at a time that can be believed, not stale, and not past its target: what the metric fresh_skus counts.';
COMMENT ON COLUMN catalog.sku_trust.doubt IS 'The first reason not to act on its prices: pending, not_found, removed (its state); clock (the clock of Postgres is wrong, or was when it was asked: how old the price is, is not known); owed (a re-price: see owed_reason); past_target (too old); size_type (its metadata is to be read again, so what the sizes mean is not sure); incident (everything is live-priced at present, and the price is older than LIVE_INTERVAL); and but for live SKUs, whose moves the catalog never reports: no_baseline (no manifest applied yet), and where the price is older than LIVE_INTERVAL, catalog_stale (catalog_state of catalog.sync_status) or delta_late (no delta for 30 minutes, or two times DELTA_INTERVAL where that is longer). Null: none.';
COMMENT ON COLUMN catalog.sku_trust.actionable IS 'True where nothing speaks against acting on its prices: doubt is null. Implies fresh. A size without a readable price is no price all the same.';
--> statement-breakpoint
-- `sku` is that of the SKU's row (through sku_trust), not of the prices: where many are named, `sku = any(…)` finds
-- these rows first, by their key, and then the rest; a condition on the SKU of the prices would reach none of the
-- other tables, which would be read from end to end.
CREATE OR REPLACE VIEW catalog.current_prices AS
SELECT t.sku, p.size, p.price, pr.size_map_size_type AS size_type, pr.name, pr.brand, pr.model, pr.gender_size, pr.category,
       t.price_source, t.priced_at, p.changed_at, t.stale,
       t.actionable AND p.price IS NOT NULL AS actionable
FROM catalog.sku_trust t
JOIN catalog.prices p ON p.sku = t.sku
LEFT JOIN catalog.products pr ON pr.sku = t.sku;

COMMENT ON VIEW catalog.current_prices IS 'Prices with what they mean and how far to trust them. Prices to act on: WHERE actionable.';
COMMENT ON COLUMN catalog.current_prices.sku IS 'SKU in catalog.skus. sku = any(...) finds many at once by their key.';
COMMENT ON COLUMN catalog.current_prices.size IS 'Size key as the partner names it; size_type says what it means.';
COMMENT ON COLUMN catalog.current_prices.price IS 'Whole baht (THB); null where the partner''s entry carries no readable price.';
COMMENT ON COLUMN catalog.current_prices.size_type IS 'What the size means (size_map.size_type).';
COMMENT ON COLUMN catalog.current_prices.name IS 'product.name.';
COMMENT ON COLUMN catalog.current_prices.brand IS 'product.brand.';
COMMENT ON COLUMN catalog.current_prices.model IS 'product.model.';
COMMENT ON COLUMN catalog.current_prices.gender_size IS 'product.gender_size.';
COMMENT ON COLUMN catalog.current_prices.category IS 'product.category.';
COMMENT ON COLUMN catalog.current_prices.price_source IS 'snapshot: the delta reports its price moves while a manifest lists it; live: the mirror refreshes by itself; null: unknown.';
COMMENT ON COLUMN catalog.current_prices.priced_at IS 'When the partner last answered for this SKU: the price was right then.';
COMMENT ON COLUMN catalog.current_prices.changed_at IS 'When the mirror saw the price change (or the size appear).';
COMMENT ON COLUMN catalog.current_prices.stale IS 'True while a refresh is known to be pending, and where the price of a live SKU, or of one that no manifest lists, is older than LIVE_INTERVAL.';
COMMENT ON COLUMN catalog.current_prices.actionable IS 'True where the price may be acted on: there is one, and catalog.sku_trust has no doubt of its SKU.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.skus_past_target(most integer DEFAULT 1000) RETURNS SETOF catalog.sku_trust
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000
BEGIN ATOMIC
  SELECT t.* FROM catalog.sku_trust t WHERE t.past_target ORDER BY t.priced_at LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.skus_past_target(integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.skus_past_target(integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.skus_past_target(integer) IS 'SKUs whose prices are older than their target, oldest first, at most so many: rows of catalog.sku_trust.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller. Brand and model are
-- compared by their beginnings too, because the index products_brand_model holds only these.
CREATE OR REPLACE FUNCTION catalog.lowest_prices(
  of_size text, of_brand text DEFAULT NULL, of_model text DEFAULT NULL, of_size_type text DEFAULT NULL,
  most integer DEFAULT 100, only_actionable boolean DEFAULT true
) RETURNS TABLE (sku text, size text, price integer, size_type text, name text, brand text, model text, priced_at timestamptz, actionable boolean)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT p.sku, p.size, p.price, pr.size_map_size_type, pr.name, pr.brand, pr.model, t.priced_at, t.actionable
  FROM catalog.products pr
  JOIN catalog.prices p ON p.sku = pr.sku AND p.size = of_size AND p.price IS NOT NULL
  JOIN catalog.sku_trust t ON t.sku = pr.sku
  WHERE (of_brand IS NULL OR left(pr.brand, 200) COLLATE "C" = left(of_brand, 200) AND pr.brand = of_brand)
    AND (of_model IS NULL OR left(pr.model, 200) COLLATE "C" = left(of_model, 200) AND pr.model = of_model)
    AND (of_size_type IS NULL OR pr.size_map_size_type = of_size_type)
    AND (t.actionable OR NOT only_actionable)
  ORDER BY p.price, p.sku
  LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.lowest_prices(text, text, text, text, integer, boolean) IS 'Who offers a size cheapest: SKUs with that size key by price, of one brand, model or size type where given (exact spelling), at most so many. Prices that are not actionable are left out unless only_actionable is false.';
--> statement-breakpoint
-- A single statement without rights or settings of its own, so that the planner sees through it; ATOMIC, so that its names
-- mean what they meant when it was made, whatever the search path of its caller.
CREATE OR REPLACE FUNCTION catalog.movers(within interval DEFAULT '1 hour', most integer DEFAULT 100)
RETURNS TABLE (sku text, size text, old_price integer, new_price integer, change integer, change_ratio double precision,
  moves bigint, last_moved_at timestamptz, name text, brand text, model text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
BEGIN ATOMIC
  SELECT m.sku, m.size, m.old_price, m.new_price, m.new_price - m.old_price,
         m.new_price::float8 / nullif(m.old_price, 0) - 1, m.moves, m.last_moved_at, pr.name, pr.brand, pr.model
  FROM (
    SELECT h.sku, h.size, count(*) AS moves, max(h.observed_at) AS last_moved_at,
           (array_agg(h.old_price ORDER BY h.id))[1] AS old_price, (array_agg(h.new_price ORDER BY h.id DESC))[1] AS new_price
    FROM catalog.price_history h
    WHERE h.observed_at > now() - within
      -- Up to a correction of what the sizes mean, the prices were of other sizes.
      AND NOT EXISTS (
        SELECT FROM catalog.product_history c
        WHERE c.sku = h.sku AND c.field = 'size_map_size_type' AND c.observed_at >= h.observed_at
      )
    GROUP BY h.sku, h.size
  ) m
  LEFT JOIN catalog.products pr ON pr.sku = m.sku
  WHERE m.old_price <> m.new_price
  ORDER BY abs(m.new_price::float8 / nullif(m.old_price, 0) - 1) DESC NULLS FIRST, m.sku, m.size
  LIMIT most;
END;

REVOKE ALL ON FUNCTION catalog.movers(interval, integer) FROM PUBLIC;
DO $$
BEGIN
  IF to_regrole('catalog_reader') IS NOT NULL THEN
    GRANT EXECUTE ON FUNCTION catalog.movers(interval, integer) TO catalog_reader;
  END IF;
END
$$;

COMMENT ON FUNCTION catalog.movers(interval, integer) IS 'What moved within a time (one hour): sizes by the relative change from the price before it to the newest, largest first. Sizes that only appeared or went are not in it, nor moves up to a correction of size_type: sizes meant something else then.';
--> statement-breakpoint
-- Statements that give catalog_reader and catalog_watcher what they are to have and lack: what a dump gave to roles that were not
-- there when it was loaded is gone, and with it that nobody else may call the functions: both are one command. Of a role that is not there nothing is said.
CREATE OR REPLACE FUNCTION catalog_internal.missing_rights() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH roles AS (
    SELECT rolname::text AS role FROM pg_roles WHERE rolname IN ('catalog_reader', 'catalog_watcher')
  ), relations AS (
    SELECT oid, relname FROM pg_class WHERE relnamespace = 'catalog'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
  ), functions AS (
    SELECT oid, coalesce(proacl, acldefault('f', proowner)) AS acl, CASE proname WHEN 'take_request' THEN 'catalog_watcher' ELSE 'catalog_reader' END AS role
    FROM pg_proc WHERE pronamespace = 'catalog'::regnamespace
  )
  SELECT format('GRANT USAGE ON SCHEMA catalog TO %I', role) FROM roles WHERE NOT has_schema_privilege(role, 'catalog', 'USAGE')
  UNION ALL
  SELECT format('GRANT SELECT ON %s TO %I', oid::regclass, role) FROM roles, relations
  WHERE role = 'catalog_reader' AND NOT has_table_privilege(role, oid, 'SELECT')
  UNION ALL
  SELECT format('GRANT %s ON %s TO %I', privilege, oid::regclass, role)
  FROM roles, relations, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE role = 'catalog_watcher' AND relname = 'watchlist' AND NOT has_table_privilege(role, oid, privilege)
  UNION ALL
  SELECT format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', oid::regprocedure) FROM functions
  WHERE EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = 0)
  UNION ALL
  SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', oid::regprocedure, role) FROM roles JOIN functions USING (role)
  WHERE NOT EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = to_regrole(role))
  UNION ALL
  SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA catalog GRANT SELECT ON TABLES TO %I', role) FROM roles
  WHERE role = 'catalog_reader' AND NOT EXISTS (
    SELECT FROM pg_default_acl, aclexplode(defaclacl)
    WHERE defaclnamespace = 'catalog'::regnamespace AND defaclobjtype = 'r' AND grantee = to_regrole(role) AND privilege_type = 'SELECT'
  )
$$;

REVOKE ALL ON FUNCTION catalog_internal.missing_rights() FROM PUBLIC;
--> statement-breakpoint
-- Makes the roles that sellers are given, and all that they may do, where any of it is missing.
CREATE OR REPLACE FUNCTION catalog_internal.grant_rights() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  role_name text;
  statement text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['catalog_reader', 'catalog_watcher'] LOOP
    CONTINUE WHEN to_regrole(role_name) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
    END;
  END LOOP;
  FOR statement IN SELECT * FROM catalog_internal.missing_rights() LOOP
    EXECUTE statement;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.grant_rights() FROM PUBLIC;
--> statement-breakpoint
DO $$
DECLARE
  granted text;
BEGIN
  FOR granted IN SELECT statement FROM kept_rights LOOP
    EXECUTE granted;
  END LOOP;
END
$$;
--> statement-breakpoint
SELECT catalog_internal.grant_rights();
