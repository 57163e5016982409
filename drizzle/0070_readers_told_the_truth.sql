-- Fails where one of the tables, or a partition of one, was written anew since the snapshot of the reader, as an ALTER TABLE
-- does that rewrites it: its rows are then none of that snapshot, so whoever waited for it has read an empty table. To
-- be asked after the reading, as history_was_taken. In PL/pgSQL, which keeps the plan: it is asked with each reading.
CREATE OR REPLACE FUNCTION catalog_internal.refuse_written_anew(tables regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM (SELECT unnest(tables)::oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = ANY (tables)) t(oid)
    JOIN pg_class c USING (oid)
    WHERE pg_relation_filenode(c.oid) <> c.relfilenode
  ) THEN
    RAISE EXCEPTION 'a table was rewritten after this transaction began, which does not see its rows'
      USING ERRCODE = 'serialization_failure', HINT = 'Try again in a new transaction.';
  END IF;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.refuse_written_anew(regclass[]) FROM PUBLIC;
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
  oldest := catalog_internal.position_of(catalog_internal.dropped_to(first));
  SELECT catalog_internal.position_of(last_value) INTO drawn FROM catalog_internal.change_positions;
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
-- The mirror as changes that would make it, SKU by SKU; every row has the position to go on from. What pieces
-- do not show of what came between them comes again with the changes after the first piece.
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
      SELECT 'product', p.sku, NULL, NULL, NULL, f.field, NULL, f.value, false, d.changed_at
      FROM piece p JOIN catalog.products d ON d.sku = p.sku
      -- By name: a seller may have added columns.
      CROSS JOIN LATERAL (VALUES ('name', d.name), ('model', d.model), ('brand', d.brand), ('gender_size', d.gender_size), ('size_type', d.size_type),
        ('category', d.category), ('size_map_size_type', d.size_map_size_type), ('product', d.product::text)) f(field, value)
      WHERE f.value IS NOT NULL
      UNION ALL
      SELECT 'price', p.sku, d.size, NULL, d.price, NULL, NULL, NULL, false, d.changed_at
      FROM piece p JOIN catalog.prices d ON d.sku = p.sku
      WHERE d.price IS NOT NULL
    ) c(kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed, observed_at)
    -- The object last: a column keeps its value where the member of its name is no text any longer.
    ORDER BY c.sku, c.kind = 'price', c.kind = 'product', c.field = 'product', c.field DESC, c.size;
  PERFORM catalog_internal.refuse_written_anew('{catalog.skus,catalog.products,catalog.prices}');
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
-- Who empties a table of the feed takes away what readers may not have read, and what prices of the past are known by:
-- all positions before are refused, or of one chunk of price_history those up to its end, as where it is dropped. The
-- triggers of the root do not fire for one chunk (add_history_chunks). Retention drops chunks.
CREATE OR REPLACE FUNCTION catalog_internal.history_is_emptied() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ends bigint;
BEGIN
  IF TG_TABLE_NAME LIKE 'price\_history\_%' THEN
    -- What is detached was refused then, and is nobody's.
    IF pg_partition_root(TG_RELID) IS DISTINCT FROM 'catalog.price_history'::regclass THEN
      RETURN NULL;
    END IF;
    ends := substring(TG_TABLE_NAME FROM '\d+$')::bigint * 5000000 + 4999999;
  END IF;
  PERFORM catalog_internal.lock_changes();
  INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
  ON CONFLICT (position) DO UPDATE SET at = excluded.at;
  PERFORM setval('catalog_internal.dropped_positions', greatest(least(ends, drawn.last_value), dropped.last_value))
  FROM catalog_internal.change_positions drawn, catalog_internal.dropped_positions dropped;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.history_is_emptied() FROM PUBLIC;
--> statement-breakpoint
-- Partition n of price_history holds the positions from 5,000,000 n on. Makes the one that is being written,
-- where it is missing, and the next: for maintenance (`ahead`), which is told why it cannot be made, and for
-- a writer who may come to its end. That one goes on without it: what forbids it, or holds the table, is to
-- cost no answer before the positions are there. Whoever writes more than an answer says how many positions
-- are `needed`. Under the lock, because two sessions may find one missing at
-- once. Each is made as a table of its own and then attached, which locks nobody out; for the next nobody who
-- waits for the lock of the changes waits long. One that somebody has detached is attached again, as what is
-- written has to go somewhere. One that somebody has dropped is made anew: what was in it is told by nobody,
-- so all positions before now are refused. What sellers have put upon price_history (a CHECK, a column that is
-- generated) a new one has, too, or Postgres attaches it to none.
CREATE OR REPLACE FUNCTION catalog_internal.add_history_chunks(ahead boolean DEFAULT false, needed bigint DEFAULT 0) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  newest bigint;
  chunk bigint;
  called text;
  attached boolean;
  patience text := current_setting('lock_timeout');
BEGIN
  SELECT last_value INTO newest FROM catalog_internal.change_positions;
  -- Two, or one, and all that are needed.
  FOR chunk IN SELECT n FROM generate_series(newest / 5000000, (newest + greatest(needed, CASE WHEN ahead THEN 5000000 ELSE 500000 END)) / 5000000) n LOOP
    called := format('price_history_%s', chunk);
    CONTINUE WHEN pg_partition_root(to_regclass('catalog_internal.' || called)) = 'catalog.price_history'::regclass;
    PERFORM catalog_internal.lock_changes();
    -- Made by another while this one waited: asked of the catalog itself, as a name once not found is remembered.
    SELECT relispartition INTO attached FROM pg_class WHERE relnamespace = 'catalog_internal'::regnamespace AND relname = called;
    CONTINUE WHEN attached;
    BEGIN
      IF chunk > (newest + needed) / 5000000 THEN
        PERFORM set_config('lock_timeout', '100ms', true);
      END IF;
      IF attached IS NULL THEN
        EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED)', called);
      END IF;
      EXECUTE format('CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON catalog_internal.%I
        FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied()', called);
      -- Also where it is emptied as a replica does (session_replication_role).
      EXECUTE format('ALTER TABLE catalog_internal.%I ENABLE ALWAYS TRIGGER history_is_emptied', called);
      EXECUTE format('ALTER TABLE catalog.price_history ATTACH PARTITION catalog_internal.%I FOR VALUES FROM (%s) TO (%s)',
        called, chunk * 5000000, (chunk + 1) * 5000000);
      IF attached IS NULL AND chunk * 5000000 <= newest AND EXISTS (SELECT FROM catalog_internal.history_chunks WHERE number = chunk) THEN
        PERFORM setval('catalog_internal.dropped_positions', greatest(drawn.last_value, dropped.last_value))
        FROM catalog_internal.change_positions drawn, catalog_internal.dropped_positions dropped;
        RAISE WARNING 'catalog_internal.% was dropped by hand: who has not read all changes before now has to begin again', called;
      END IF;
      INSERT INTO catalog_internal.history_chunks VALUES (chunk) ON CONFLICT DO NOTHING;
      INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
      ON CONFLICT DO NOTHING;
      PERFORM set_config('lock_timeout', patience, true);
    EXCEPTION WHEN OTHERS THEN
      IF ahead OR chunk <= (newest + needed) / 5000000 THEN
        RAISE;
      END IF;
    END;
  END LOOP;
END
$$;

REVOKE ALL ON FUNCTION catalog_internal.add_history_chunks(boolean, bigint) FROM PUBLIC;
--> statement-breakpoint
-- Statements that give catalog_reader and catalog_watcher what they are to have and lack: what a dump gave to
-- roles that were not there when it was loaded is gone, and with it that nobody else may call the functions:
-- both are one command. Of a role that is not there nothing is said. And what views call as their reader everybody
-- is to have, whatever is by default given to nobody in this cluster.
CREATE OR REPLACE FUNCTION catalog_internal.missing_rights() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH roles AS (
    SELECT rolname::text AS role FROM pg_roles WHERE rolname IN ('catalog_reader', 'catalog_watcher')
  ), relations AS (
    SELECT oid, relname FROM pg_class WHERE relnamespace = 'catalog'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
  ), functions AS (
    SELECT oid, coalesce(proacl, acldefault('f', proowner)) AS acl, CASE WHEN proname IN ('take_request', 'hint') OR proname LIKE 'refresh%' THEN 'catalog_watcher' ELSE 'catalog_reader' END AS role
    FROM pg_proc WHERE pronamespace = 'catalog'::regnamespace
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
-- The chunks that there are; add_history_chunks gives it to each that it makes.
DO $$
DECLARE
  chunk regclass;
BEGIN
  FOR chunk IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'catalog.price_history'::regclass ORDER BY inhrelid LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER history_is_emptied AFTER TRUNCATE ON %s
      FOR EACH STATEMENT EXECUTE FUNCTION catalog_internal.history_is_emptied()', chunk);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER history_is_emptied', chunk);
  END LOOP;
END
$$;
