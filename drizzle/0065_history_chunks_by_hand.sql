CREATE TABLE "catalog_internal"."history_chunks" (
	"number" bigint PRIMARY KEY NOT NULL
);
--> statement-breakpoint
COMMENT ON TABLE catalog_internal.history_chunks IS 'Chunks of price_history that were made and are not dropped by retention.';
--> statement-breakpoint
INSERT INTO catalog_internal.history_chunks
SELECT substring(relname FROM '^price_history_([0-9]+)$')::bigint FROM pg_inherits JOIN pg_class ON oid = inhrelid
WHERE inhparent = 'catalog.price_history'::regclass AND relname ~ '^price_history_[0-9]{1,13}$' AND relnamespace = 'catalog_internal'::regnamespace;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog_internal.dropped_to(since bigint DEFAULT 0) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT greatest(dropped.last_value, (
    SELECT max(least(c.number * 5000000 + 4999999, drawn.last_value)) FROM catalog_internal.history_chunks c
    WHERE c.number * 5000000 + 4999999 > greatest(since, dropped.last_value) AND c.number * 5000000 <= drawn.last_value
      AND pg_partition_root(to_regclass('catalog_internal.price_history_' || c.number)) IS DISTINCT FROM 'catalog.price_history'::regclass
  )) FROM catalog_internal.dropped_positions dropped, catalog_internal.change_positions drawn
$$;
--> statement-breakpoint
REVOKE ALL ON FUNCTION catalog_internal.dropped_to(bigint) FROM PUBLIC;
--> statement-breakpoint
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
  ELSIF after > drawn THEN
    RAISE EXCEPTION 'position % is of another history: the newest of this one is %', after, drawn
      USING ERRCODE = 'CM001', HINT = 'The database was restored or made anew. Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  ELSIF resumed IS NOT NULL THEN
    RAISE EXCEPTION 'position % is of another history: this database was restored from a state before it, or its server was replaced', after
      USING ERRCODE = 'CM001', HINT = 'Read the mirror afresh with catalog.changes_snapshot(), and follow from its position.';
  END IF;
END
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog.changes_oldest() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT resumed_at FROM catalog_internal.position_gaps WHERE forked_at < d.oldest AND d.oldest < resumed_at), d.oldest)
  FROM (SELECT catalog_internal.position_of(catalog_internal.dropped_to()) AS oldest) d
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog_internal.history_known_from() RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  dropped bigint;
  known timestamptz;
BEGIN
  dropped := catalog_internal.dropped_to();
  IF dropped = 0 THEN
    RETURN '-infinity';
  END IF;
  SELECT max(at) + interval '1 hour' INTO known FROM catalog_internal.history_milestones
  WHERE position <= (SELECT min(position) FROM catalog_internal.history_milestones WHERE position >= dropped);
  -- None: the snapshot is from before it was made.
  RETURN coalesce(known, 'infinity');
END
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION catalog_internal.drop_history_chunk(kept_seconds double precision) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  chunk record;
  is_old text;
  old boolean;
BEGIN
  SELECT inhrelid::regclass AS name, substring(pg_get_expr(relpartbound, oid) FROM $re$ TO \('?(\d+)'?\)$re$)::bigint AS ends
    INTO chunk
    FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'catalog.price_history'::regclass
    ORDER BY ends LIMIT 1;
  IF chunk.ends > (SELECT last_value FROM catalog_internal.change_positions) THEN
    RETURN 'nothing old';
  END IF;
  is_old := format('SELECT NOT EXISTS (
      SELECT FROM (SELECT observed_at FROM catalog_internal.change_batches WHERE last_id < $2 ORDER BY last_id DESC LIMIT 100) b
      WHERE observed_at >= now() - make_interval(secs => $1)
    ) AND NOT EXISTS (
      SELECT FROM (SELECT observed_at FROM catalog.product_history WHERE id < $2 ORDER BY id DESC LIMIT 100) p
      WHERE observed_at >= now() - make_interval(secs => $1)
    ) AND NOT EXISTS (SELECT FROM %s WHERE observed_at >= now() - make_interval(secs => $1))', chunk.name);
  EXECUTE is_old INTO old USING kept_seconds, chunk.ends;
  IF old THEN
    LOCK TABLE ONLY catalog.price_history IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', chunk.name);
    -- Again: who was writing at the first check is done by now.
    EXECUTE is_old INTO old USING kept_seconds, chunk.ends;
  END IF;
  IF NOT old THEN
    RETURN 'nothing old';
  END IF;
  EXECUTE format('DROP TABLE %s', chunk.name);
  DELETE FROM catalog_internal.history_chunks WHERE number < chunk.ends / 5000000;
  -- Never back: what is behind may have been given up for another reason.
  PERFORM setval('catalog_internal.dropped_positions', greatest(chunk.ends - 1, d.last_value)) FROM catalog_internal.dropped_positions d;
  RETURN 'dropped';
EXCEPTION WHEN lock_not_available OR undefined_table THEN
  RETURN 'in use';
END
$$;
--> statement-breakpoint
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
        EXECUTE format('CREATE TABLE catalog_internal.%I (LIKE catalog.price_history INCLUDING DEFAULTS)', called);
      END IF;
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
--> statement-breakpoint
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
  -- A TRUNCATE that is rolled back leaves how far is dropped, and takes back since when all is kept.
  IF NOT EXISTS (SELECT FROM catalog_internal.history_milestones m, catalog_internal.dropped_positions d WHERE m.position >= d.last_value) THEN
    PERFORM catalog_internal.lock_changes();
    INSERT INTO catalog_internal.history_milestones SELECT last_value, clock_timestamp() FROM catalog_internal.change_positions
    ON CONFLICT DO NOTHING;
  END IF;
END
$$;
